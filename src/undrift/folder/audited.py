"""The audit of a folder: of its learner, with the names and the batches of its record."""

from __future__ import annotations

from collections.abc import Iterable

from undrift.folder.record import Record
from undrift.formatting import counted
from undrift.learners.base import Learner
from undrift.privacy.attacks import kept_sums
from undrift.privacy.audit import Audit, audit
from undrift.streams.task import Task


def audited(record: Record, learner: Learner, tasks: Iterable[Task] = ()) -> Audit:
    """What the learner of a folder gives away, classes by their names."""
    least = 1 if record.small_classes == "allow" else record.least_rows
    names = {c: name for name, c in record.classes.items()}
    return audit(learner, tasks, least_rows=least, names=names)


def widest(learner: Learner) -> int:
    """The columns of the widest sum of products; 0 without any."""
    return max((each.columns for each in kept_sums(learner) if each.has_products), default=0)


def few_rows(rows: int, columns: int) -> list[str]:
    """A sentence about a batch of fewer rows than columns."""
    if not 0 < rows < columns:
        return []
    return [
        f"{counted(rows, 'row')} for {columns:,} columns: whoever has the states before and after "
        "this step can compute them; larger batches or fewer columns (sketch, rank) help"
    ]
