"""Classes: their names and numbers, those that are too small, and the public list under noise.

A new class must bring `least_rows` training nodes at once; a known one may bring any number. What
was done is recorded with each batch (`Held.instead`), so forgetting subtracts what was added.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, TypeVar
from unicodedata import normalize

from undrift.cells import as_category
from undrift.checks import checked
from undrift.errors import InputError
from undrift.folder.record import Record
from undrift.formatting import counted, some_of
from undrift.learners.base import Learner
from undrift.learners.small_classes import SmallClasses

if TYPE_CHECKING:
    from undrift.folder.batch import Batch, LargeBatch
    from undrift.learners.private_propagation import PrivatePropagation

AnyBatch = TypeVar("AnyBatch", bound="Batch | LargeBatch")

POOL = "(small classes)"  # the class that small classes are learned as where they are pooled
WAYS = {  # what is done with small classes
    "refuse": "the batch is refused",
    "context": "it is left out, and its nodes count as nodes without a label",
    "pool": f"all such classes are learned as one, called {POOL!r}",
    "allow": "it is learned as any other",
}

_NOTHING = frozenset({"nan", "na", "n/a", "null", "none", "nil", "?", "-", "unknown", "unlabelled"})


def numbered(
    names: Iterable[str], known: Mapping[str, int], past: Collection[int]
) -> dict[str, int]:
    """The known classes and the new ones: a number is its own id while that is free.

    Any other new name has the next id; no id is used twice, even if its class was forgotten.
    """
    ids = dict(known)
    for name in names:
        if name not in ids:
            taken = {*ids.values(), *past}
            number = name.isdecimal() and len(name) < 16 and str(int(name)) == name
            own = number and int(name) not in taken
            ids[name] = int(name) if own else max(taken, default=-1) + 1
    return ids


def _alias(name: str, other: str) -> str:
    """How to say that a class is another, in Python and on the command line."""
    return f"aliases={{{name!r}: {other!r}}} (--alias {quote(f'{name}={other}')})"


def look_alikes(names: Iterable[str], known: Collection[str]) -> list[str]:
    """A sentence for every new class that is named like a known one, or like no label."""
    found = []
    for name in names:
        if name in known:
            continue
        if other := same_but_for_case(name, known):
            alias = _alias(name, other)
            found.append(
                f"class {name!r} is new and differs from {other!r} in case, spaces or Unicode form "
                f"only; if they are one, forget this batch and observe it with {alias}, or "
                "correct it"
            )
        elif folded(name) in _NOTHING:
            found.append(
                f"class {name!r} is new; if it means that the label is not known, forget this "
                "batch and observe it with empty cells there"
            )
    return found


def same_but_for_case(name: str, known: Iterable[str]) -> str | None:
    """The known name that differs in case, spaces or Unicode form only."""
    return {folded(other): other for other in known}.get(folded(name))


def folded(name: str) -> str:
    """A name without case and spaces, in one Unicode form."""
    return "".join(normalize("NFC", name).casefold().split())


def check_ways(small_classes: str, least_rows: int) -> None:
    """Reject a way that there is not."""
    if small_classes not in WAYS:
        ways = ", ".join(map(repr, WAYS))
        raise InputError(f"small classes can be {ways}, not {small_classes!r}")
    if checked("least_rows", int, least_rows) < 1:
        raise InputError(f"least_rows must be at least 1, not {least_rows}")


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
    """What classes are learned as that are new and have few of the `rows` of their batch."""
    few = {name: n for name, n in rows.items() if 0 < n < least_rows and not known.get(name, 0) > 0}
    if not few or small_classes == "allow":
        return {}
    if small_classes == "refuse":
        others = {name: same_but_for_case(name, known) for name in few}
        hints = [f"{a!r} is {b!r}: {_alias(a, b)}" for a, b in others.items() if b]
        hint = f" (if {hints[0]})" if hints else ""
        raise InputError(
            f"{where} brings {_list(few)}{hint}, and a new class of fewer than {least_rows} "
            "training nodes could reveal them; give more of them at once, or say "
            "small_classes='context' (--small-classes context: leave the class out), 'pool' (learn "
            "all such classes as one) or 'allow'; nothing was changed"
        )
    pooled = sum(few.values()) + known.get(POOL, 0)
    return dict.fromkeys(few, POOL if small_classes == "pool" and pooled >= least_rows else "")


def small_class_notes(instead: Mapping[str, str], batch: AnyBatch, least_rows: int) -> list[str]:
    """A sentence about what was done with small classes; a batch of nothing else is an error."""
    if not instead:
        return []
    counts = batch.counts
    if all(instead.get(name, name) == "" for name in counts):
        raise InputError(
            f"no class of {batch.where} has {least_rows} training nodes, so there is nothing to "
            f"learn from it ({', '.join(map(repr, instead))}); give more of them at once; nothing "
            "was changed"
        )
    few = _list({name: counts[name] for name in instead})
    which = "it is" if len(instead) == 1 else "they are"
    how = f"learned as {POOL!r}" if POOL in instead.values() else "left out as if without a label"
    return [f"{few}: fewer than {least_rows} training nodes, so {which} {how}"]


def left_small(record: Record) -> list[str]:
    """A sentence about classes that have become small because something was forgotten."""
    few = {name: n for name, n in record.counts.items() if 0 < n < record.least}
    if not few:
        return []
    steps = sorted({held.step for held in record.batches if few.keys() & held.labels.keys()})
    which = f"the batch{'es' * (len(steps) > 1)} of step {' and '.join(map(str, steps))}"
    return [
        f"{_list(few)} left, fewer than {record.least_rows}, and what is kept could reveal them; "
        f"observe more of them, or revise {which} with these labels empty"
    ]


def _list(few: Mapping[str, int]) -> str:
    parts = [f"class {name!r} with {counted(n, 'node')}" for name, n in few.items()]
    return some_of(parts, 4, "more such classes")


def public_classes(learner: Learner) -> dict[str, int] | None:
    """The id of every class of `class_list`, as those that came are data; None without noise."""
    if getattr(learner, "account_", None) is None:
        return None
    private: PrivatePropagation = learner  # type: ignore[assignment]  # who has an account is one
    ids = {as_category(name): c for name, c in private.class_ids.items()}
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
    hint = f" (if it is {other!r}: {_alias(strange[0], other)})" if other else ""
    raise InputError(
        f"{where} has class {strange[0]!r}, which is not in class_list {list(known)}{hint}, and "
        "with epsilon no class is added later; correct the label, leave its cell empty, or make a "
        "learner whose class_list has it; nothing was changed"
    )
