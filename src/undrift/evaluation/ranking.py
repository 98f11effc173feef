"""How well recommenders rank: sessions are tested first and learned afterwards.

Period t is tested by a learner of all before it, or batch by batch. Every click after the first
of a session is a case: its item is ranked among all known items by the clicks before it. No
negatives are sampled, and every item with the same score is counted as ahead. Clicks on items
that are not known yet are left out, and counted.
"""

from dataclasses import dataclass, field
from math import nan

import numpy as np
import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.evaluation.cost import PhaseClock, reset_peak_memory
from undrift.evaluation.loop import AfterTask, Evaluation
from undrift.evaluation.protocols import Protocol
from undrift.learners.reading import EXACT
from undrift.recommend.base import Recommender
from undrift.recommend.interactions import Interactions
from undrift.recommend.stream import SessionStream
from undrift.typing import Progress, silent

CUTS = (20, 10)
"""The k of recall@k, MRR@k and NDCG@k; lists of the first are looked at."""

_AT_ONCE = {"cpu": 2**24, "cuda": 2**28}  # scores in memory at a time


@dataclass
class Ranked:
    """What came of some cases: the rank of each target, and what was listed.

    `new[i]`: the target first appeared in the newest learned period. `listed` counts how often an
    item was among the first 20 with a score above 0, `popularity` sums their shares of sessions.
    """

    ranks: list[Tensor] = field(default_factory=list)
    new: list[Tensor] = field(default_factory=list)
    listed: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))
    popularity: float = 0.0
    clicks: int = 0
    left_out: int = 0

    def measures(self, items: int) -> dict[str, float]:
        """Every measure in percent, by the key of its metric, and the number of cases."""
        rank = torch.cat([torch.zeros(0, dtype=torch.float64), *self.ranks])
        new = torch.cat([torch.zeros(0, dtype=torch.bool), *self.new])
        found: dict[str, float] = {}
        for k in CUTS:
            hit = rank <= k
            found[f"recall_{k}"] = _percent(hit)
            found[f"mrr_{k}"] = _percent(hit / rank)
            found[f"ndcg_{k}"] = _percent(hit / torch.log2(rank + 1))
        found[f"new_recall_{CUTS[0]}"] = _percent(rank[new] <= CUTS[0])
        shown, asked = int(self.listed.sum()), self.clicks + self.left_out
        found["coverage"] = 100.0 * int((self.listed > 0).sum()) / max(items, 1)
        found["popularity"] = 100.0 * self.popularity / shown if shown else nan
        found["left_out"] = 100.0 * self.left_out / asked if asked else nan
        return found | {"cases": float(len(rank))}


def _percent(values: Tensor) -> float:
    return 100.0 * float(values.double().mean()) if values.numel() else nan


def rank_sessions(
    learner: Recommender,
    test: Interactions,
    new: frozenset[str] = frozenset(),
    *,
    progress: Progress = silent,
    before: Ranked | None = None,
) -> Ranked:
    """Rank the target of every case in these sessions, by at most the last 20 clicks before it.

    The cases of `before` are in it too. Cost: a score per case and known item, some at a time.
    """
    column = {name: i for i, name in enumerate(learner.items_)}
    there = np.array([name in column for name in test.items.tolist()])[test.item]
    found = Ranked() if before is None else before
    found.clicks += int(there.sum())
    found.left_out += int((~there).sum())
    more = len(column) - found.listed.numel()
    found.listed = torch.cat([found.listed, found.listed.new_zeros(more)])
    if not there.any():
        return found
    seen = test.where(there)
    histories, targets = seen.cases(most=20)
    names = seen.items.tolist()
    place = torch.tensor([column[name] for name in names])[torch.from_numpy(targets)]
    fresh = torch.tensor([name in new for name in names])[torch.from_numpy(targets)]
    progress("solve", 0, len(histories))
    learner.expect(histories)
    share = learner.counts_.double() / max(learner.sessions_, 1)
    width = max(1, _AT_ONCE["cpu" if learner.device == "cpu" else "cuda"] // len(column))
    for at in range(0, len(histories), width):
        progress("evaluate", at, len(histories))
        scores = learner.scores(histories[at : at + width])
        own = scores.gather(1, place[at : at + width, None].to(scores.device))
        # what is not less is ahead, what is not a number among it; nor is what rounding makes less
        near = EXACT * scores.nan_to_num().abs().amax(dim=1, keepdim=True)
        found.ranks.append((~(scores < own - near)).sum(dim=1).cpu())
        best = scores.topk(min(CUTS[0], len(column)), dim=1)
        shown = best.indices[best.values > 0].cpu()
        found.listed += torch.bincount(shown, minlength=len(column))
        found.popularity += float(share[shown].sum())
    found.new.append(fresh)
    return found


def evaluate_ranking(
    learner: Recommender,
    stream: SessionStream,
    *,
    protocol: Protocol = "global",
    open_world: bool = False,
    progress: Progress = silent,
    after_task: AfterTask = lambda t, so_far: None,
    so_far: Evaluation | None = None,
) -> Evaluation:
    """Let a recommender learn all before period t and test it on period t, for every t from 1.

    What came of each period is in `series`. The last sessions are tested and not learned. With
    `so_far`, an evaluation that was cut off goes on.
    """
    if protocol != "global":
        raise InputError(
            f"sessions are ranked among all known items, and {protocol} testing would ask among "
            "some; leave the protocol out"
        )
    if open_world:
        raise InputError(
            "sessions have no classes that are still to come; leave out open_world (--open-world)"
        )
    so_far = so_far or Evaluation({})
    first, learned = stream.first_periods(), so_far.tasks  # learned: the period of what is pending
    clock = PhaseClock(progress, device=learner.device)
    clock.seconds.update(so_far.seconds)
    reset_peak_memory()
    *_, pending = stream.batches(learned)
    for t in range(learned + 1, len(stream.periods)):
        every = Ranked()
        for batch in stream.batches(t):
            clock("learn", t - 1, len(stream))
            learner.observe(pending)
            new = frozenset(name for name in learner.items_ if first[name] == learned)
            rank_sessions(learner, batch, new, progress=clock, before=every)
            pending, learned = batch, t
        so_far = so_far.then(learner, clock, every.measures(len(learner.items_)))
        after_task(t - 1, so_far)
    return so_far
