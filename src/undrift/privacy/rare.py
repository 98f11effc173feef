"""`audit_items`: on how few sessions the items and pairs of a recommender stand."""

from typing import Any

import numpy as np

from undrift.privacy.audit import Audit, AuditedSum, Behind
from undrift.recommend.base import LEAST_SESSIONS, Recommender
from undrift.recommend.sums import counting
from undrift.storage.state import pack


def audit_items(learner: Recommender, *, least_sessions: int = LEAST_SESSIONS) -> Audit:
    """Look at what a recommender keeps: a pair that one session has gives that session away.

    Broken is an item or a pair with fewer than `least_sessions` sessions, in a period of its own
    where periods are kept apart. `past` and `next` are pairs within a few clicks: both before one
    more, and in this order. Cost: a pass over the sums.

    >>> from undrift.recommend import NextItem, as_interactions
    >>> shop = NextItem().observe(as_interactions((["s", "s"], ["tea", "cup"])))
    >>> audit_items(shop).broken[1]
    'pairs: 1 of 1 with fewer than 5 sessions'
    """
    layers = learner.kept_.layers
    behind, broken = [], []
    parts = {"items": [sums.counts.numpy() for sums in layers.values()]}
    for sums in layers.values():
        for key, name in counting(sums.pairs).items():
            beside = sums.pairs[key].half().tocoo()
            parts.setdefault(name, []).append(beside.data[beside.row != beside.col])
    for name, found in parts.items():
        counts = np.concatenate([*(part[part > 0] for part in found), np.zeros(0, np.int64)])
        counted: Any = {}
        if len(counts):
            counted = {"thinnest": float(counts.min()), "typical": float(np.median(counts))}
        behind.append(Behind(name, learner.sessions_, len(counts), **counted))
        if few := int((counts < least_sessions).sum()):
            broken.append(
                f"{name}: {few:,} of {len(counts):,} with fewer than {least_sessions} sessions"
            )
    return Audit(
        learner.name,
        tuple(AuditedSum(n, tuple(t.shape), t.nbytes) for n, t in pack(layers)[0].items()),
        tuple(behind),
        (),
        tuple(broken),
    )
