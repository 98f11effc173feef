"""What a batch shows that its learner did not know: strange nodes, and classes that moved."""

from __future__ import annotations

from typing import Any

from undrift.folder.record import Held, Noticed, Record
from undrift.learners.base import Learner
from undrift.streams.task import Task

SURE = 0.01
"""How seldom chance may move one of the returning classes so far before it is called a change."""


def moved(
    learner: Learner, before: Any, task: Task, record: Record, held: Held
) -> dict[str, tuple[float, float]]:
    """How far each returning class of a batch moved, and how often chance does that.

    `before`: what was known then. Of a few rows nothing is told, as it would tell of each.
    """
    if record.private or not hasattr(learner, "drift_since"):
        return {}
    least = 1 if record.small_classes == "allow" else record.least_rows
    found = learner.drift_since(before, task)
    return {
        record.names[c]: (round(each.moved, 4), float(f"{each.p:.3g}"))
        for c, each in found.items()
        if held.labels.get(record.names[c], 0) >= least
    }


def beyond_chance(noticed: Noticed) -> list[str]:
    """The classes whose move chance does not explain, all returning ones considered."""
    return [name for name, (_, p) in noticed.moved.items() if p * len(noticed.moved) < SURE]


def sentences(noticed: Noticed | None) -> list[str]:
    """What its user should know, a sentence each."""
    if noticed is None:
        return []
    told = []
    if noticed.moved:
        sure = set(beyond_chance(noticed))
        each = [
            f"{name} {far:.2f}{' (more than chance)' * (name in sure)}"
            for name, (far, _) in noticed.moved.items()
        ]
        told.append(f"returning classes moved, in units of their scatter: {', '.join(each)}")
    return told
