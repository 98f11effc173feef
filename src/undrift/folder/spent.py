"""What a folder does for a learner with noise: public names, an account, no second release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from undrift.errors import InputError
from undrift.folder.names import class_name, same_but_for_case
from undrift.learners.base import Learner

if TYPE_CHECKING:
    from undrift.propagation.private import PrivatePropagation

Array = np.ndarray[Any, np.dtype[Any]]


def spent_epsilon(learner: Learner) -> float | None:
    """Of any one node, by all releases so far; None for a learner without noise."""
    account = getattr(learner, "account_", None)
    return None if account is None else float(account.spent_epsilon)


def public_classes(learner: Learner) -> dict[str, int] | None:
    """The id of every class of `class_list`; None for a learner without noise.

    Which classes came, and in which order, is data. So names and ids come from the list alone.
    """
    if getattr(learner, "account_", None) is None:
        return None
    private: PrivatePropagation = learner  # type: ignore[assignment]  # who has an account is one
    ids = {class_name(name): c for name, c in private.class_ids.items()}
    if len(ids) != len(private.class_list) or "" in ids:
        raise InputError(
            f"class_list has a name that is empty or stands twice: {list(private.class_list)}; "
            "give every class once"
        )
    return ids


def check_listed(learner: Learner, names: Iterable[str], where: str) -> None:
    """Refuse a batch with a class that is not in the public list, before anything is learned."""
    known = public_classes(learner)
    strange = [] if known is None else [name for name in names if name not in known]
    if known is None or not strange:
        return
    other = same_but_for_case(strange[0], known)
    hint = f"; if it is {other!r}: --alias {quote(f'{strange[0]}={other}')}" if other else ""
    raise InputError(
        f"{where} has class {strange[0]!r}, which is not in class_list {list(known)}{hint}; with "
        "noise the list is fixed beforehand, as the classes that come tell of single nodes. "
        "Correct the label, leave its cell empty, or make a learner whose class_list has it; "
        "nothing was changed"
    )


def names_fit(learner: Learner, classes: Mapping[str, int]) -> bool:
    """Whether the classes that have names can be those that a learner knows.

    With noise the names are those of the public list, whether or not a class was found.
    """
    known = public_classes(learner)
    if known is None:
        return set(learner.classes_) == set(classes.values())
    return known == dict(classes)


def check_unspent(learner: Learner, new: Array, known: Mapping[str, Array], where: str) -> None:
    """Refuse nodes that were in a release before, as far as hashes of node ids are remembered.

    Each release spends all of epsilon on its nodes.
    """
    again = _in_common(learner, new, known)
    if again:
        raise InputError(
            f"the budget is spent: {again:,} of the {new.size:,} nodes of {where} were in a batch "
            "before, and a second release would tell more of them than epsilon allows; leave them "
            "out (nothing was changed)"
        )


def check_disjoint(
    learner: Learner, mine: Mapping[str, Array], theirs: Mapping[str, Array], where: str
) -> None:
    """Refuse to merge releases that have nodes in common, as far as hashes are remembered."""
    new = np.concatenate(list(theirs.values())) if theirs else np.zeros(0, dtype=np.int64)
    again = _in_common(learner, new, mine)
    if again:
        raise InputError(
            f"{again:,} nodes of {where} are in both folders, and two releases tell more of them "
            "than epsilon allows; merge sites that have no node in common (nothing was changed)"
        )


def _in_common(learner: Learner, new: Array, known: Mapping[str, Array]) -> int:
    if spent_epsilon(learner) is None or not known:
        return 0
    return int(np.isin(new, np.concatenate(list(known.values()))).sum())
