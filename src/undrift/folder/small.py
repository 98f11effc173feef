"""Classes with few training nodes: what is kept of such a class would give them away.

A class that a folder does not know yet must bring `least_rows` training nodes at once. One that it
knows may bring any number. What is kept is then a function of the batches and of what is recorded
with each of them (`Held.instead`): forgetting a batch subtracts what observing it added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from shlex import quote
from typing import TypeVar, get_args

from undrift.errors import InputError
from undrift.folder.batch import Batch
from undrift.folder.large_batch import LargeBatch
from undrift.folder.names import same_but_for_case
from undrift.folder.record import Record
from undrift.formatting import counted
from undrift.learners.small_classes import SmallClasses

AnyBatch = TypeVar("AnyBatch", bound=Batch | LargeBatch)

POOL = "(small classes)"
"""The class that small classes are learned as where they are pooled."""

_WAYS = {
    "refuse": "the batch is refused",
    "context": "it is left out, and its nodes count as nodes without a label",
    "pool": f"all such classes are learned as one, called {POOL!r}",
    "allow": "it is learned as any other",
}


def check_ways(small_classes: str, least_rows: int) -> None:
    """Reject a way that there is not."""
    if small_classes not in get_args(SmallClasses):
        raise InputError(
            f"small classes can be {', '.join(map(repr, get_args(SmallClasses)))}, not "
            f"{small_classes!r}"
        )
    if least_rows < 1:
        raise InputError(f"least_rows must be at least 1, not {least_rows}")


def way(small_classes: SmallClasses) -> str:
    """What is done with small classes, as a phrase."""
    return _WAYS[small_classes]


def replaced(batch: AnyBatch, instead: Mapping[str, str]) -> AnyBatch:
    """The batch with other classes in the place of some; without any where that is empty."""
    names = {c: instead.get(name, name) for c, name in batch.class_names.items()}
    return replace(batch, class_names={c: name for c, name in names.items() if name})


def instead_of_small(
    rows: Mapping[str, int],
    known: Mapping[str, int],
    small_classes: SmallClasses,
    least_rows: int,
    where: str,
) -> dict[str, str]:
    """What the classes of a batch are learned as that are new and have too few rows.

    `rows` are the training nodes of each class of the batch, `known` those there are without it.
    """
    few = {name: n for name, n in rows.items() if 0 < n < least_rows and not known.get(name, 0) > 0}
    if not few or small_classes == "allow":
        return {}
    if small_classes == "refuse":
        raise _refused(few, known, least_rows, where)
    pooled = sum(few.values()) + known.get(POOL, 0)
    name = POOL if small_classes == "pool" and pooled >= least_rows else ""
    return dict.fromkeys(few, name)


def nothing_left(instead: Mapping[str, str], where: str, least_rows: int) -> InputError:
    """The error for a batch of small classes alone."""
    return InputError(
        f"no class of {where} has {least_rows} training nodes, so there is nothing to learn from "
        f"it ({', '.join(map(repr, instead))}); give more of them at once; nothing was changed"
    )


def told(instead: Mapping[str, str], counts: Mapping[str, int], least_rows: int) -> list[str]:
    """A sentence about what was done with small classes."""
    if not instead:
        return []
    few = _list({name: counts[name] for name in instead})
    which = "it is" if len(instead) == 1 else "they are"
    how = f"learned as {POOL!r}" if POOL in instead.values() else "left out as if without a label"
    return [f"{few}: fewer than {least_rows} training nodes, so {which} {how}"]


def left_small(record: Record) -> list[str]:
    """A sentence about classes that have become small because something was forgotten."""
    few = {name: n for name, n in record.counts.items() if 0 < n < record.least_rows}
    if not few or record.small_classes == "allow":
        return []
    steps = sorted({held.step for held in record.batches if few.keys() & held.labels.keys()})
    which = f"the batch{'es' * (len(steps) > 1)} of step {' and '.join(map(str, steps))}"
    return [
        f"{_list(few)} left, fewer than {record.least_rows}: what is kept gives them away; observe "
        f"more, or revise {which} with these labels empty"
    ]


def _refused(
    few: Mapping[str, int], known: Mapping[str, int], least_rows: int, where: str
) -> InputError:
    others = {name: same_but_for_case(name, known) for name in few}
    hints = [f"{a!r} is {b!r}: --alias {quote(f'{a}={b}')}" for a, b in others.items() if b]
    hint = f" (if {hints[0]})" if hints else ""
    return InputError(
        f"{where} brings {_list(few)}{hint}, and what is kept of a new class with fewer than "
        f"{least_rows} gives them away; give more at once, or say --small-classes context (left "
        "out), pool (learned as one) or allow; nothing was changed"
    )


def _list(few: Mapping[str, int], shown: int = 4) -> str:
    parts = [f"class {name!r} with {counted(n, 'node')}" for name, n in list(few.items())[:shown]]
    more = [f"{len(few) - shown} more such classes"] if len(few) > shown else []
    return ", ".join([*parts, *more])
