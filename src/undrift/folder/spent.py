"""What a folder does for a learner with noise: it notes what was spent, and refuses more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from undrift.errors import InputError
from undrift.learners.base import Learner

Array = np.ndarray[Any, np.dtype[Any]]


def spent_epsilon(learner: Learner) -> float | None:
    """Of any one node, by all releases so far; None for a learner without noise."""
    account = getattr(learner, "account_", None)
    return None if account is None else float(account.spent_epsilon)


def names_fit(learner: Learner, classes: Mapping[str, int]) -> bool:
    """Whether the classes that have names can be those that a learner knows.

    With noise a class may be hidden from the learner, and about once in a thousand times that a
    class is absent from a batch it is found there.
    """
    if spent_epsilon(learner) is None:
        return set(learner.classes_) == set(classes.values())
    return True


def check_unspent(learner: Learner, new: Array, known: Mapping[str, Array], where: str) -> None:
    """Refuse nodes that were in a batch before, as far as hashes of node ids are remembered.

    Each batch spends all of epsilon on its nodes.
    """
    if spent_epsilon(learner) is None or not known:
        return
    again = int(np.isin(new, np.concatenate(list(known.values()))).sum())
    if again:
        raise InputError(
            f"the budget is spent: {again:,} of the {new.size:,} nodes of {where} were in a batch "
            "before, and a second release would tell more of them than epsilon allows; leave them "
            "out (nothing was changed)"
        )
