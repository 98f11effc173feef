"""What a batch shows that its learner did not know: strange nodes, and classes that moved."""

from contextlib import suppress
from typing import Any

import torch

from undrift.errors import InputError
from undrift.folder.record import Foretold, Held, Noticed, Record
from undrift.graphs import Graph
from undrift.learners.base import Learner
from undrift.learners.novelty import LINKED
from undrift.streams.task import Task

ALARMS = 0.05  # the share of nodes of known classes that may look like none, if nobody says
_MOST_CLASSES = 16  # that are left out in turn after every step: each costs as much as a solution


def graded(learner: Learner, task: Task, record: Record) -> dict[str, Any]:
    """What a learner gets right of a batch before it learns it, and what is strange in it."""
    if record.private:  # how many are right is a count of the data
        return {"tested": 0, "right": 0, "noticed": None}
    known = torch.tensor(learner.classes_, dtype=torch.int64)
    nodes = torch.isin(task.labels, known).nonzero().flatten()
    facts: dict[str, Any] = {"tested": nodes.numel(), "right": 0, "noticed": None}
    if nodes.numel():
        facts["right"] = int((learner.predict(task.graph, nodes) == task.labels[nodes]).sum())
    others = (task.labels < 0).nonzero().flatten()
    if learner.classes_ and others.numel() >= max(record.least, 1):  # else it tells of each
        with suppress(InputError):  # this method cannot tell
            novelty = learner.novelty(task.graph, others)
            facts["noticed"] = counted_strange(novelty, record, task.graph)
    return facts


def counted_strange(
    novelty: Any, record: Record, graph: Graph, rate: float | None = None
) -> Noticed:
    """How many nodes of a graph are stranger than all but this share of known ones."""
    rate = ALARMS if rate is None else rate
    linked = graph.nearest is not None and graph.num_edges > 0  # a table, its rows to their nearest
    strange = int((novelty > 1 - rate).sum())
    expected = record.entry.foretold
    rough = tuple(note for note in expected.notes if "rows" in note) if expected else ()
    rough += (LINKED,) if linked and LINKED not in rough else ()
    return Noticed(unlabelled=len(novelty), strange=strange, rate=rate, rough=rough)


def foretold(learner: Learner, record: Record) -> Foretold | None:
    """What would be called unknown of a new class; None where the sums do not tell."""
    tell = getattr(learner, "novelty_report", None)
    if record.private or tell is None or not learner.classes_:
        return None
    if len(learner.classes_) > _MOST_CLASSES:
        why = f"more than {_MOST_CLASSES} classes: learner.novelty_report() takes its time to tell"
        return Foretold(rate=ALARMS, notes=(why,))
    found = tell(ALARMS)
    if found is None:
        return None
    mean = None if found.mean is None else round(found.mean, 4)
    linked = any(held.edges for held in record.batches)
    notes = tuple(note for note in found.notes if linked or note != LINKED)
    return Foretold(rate=ALARMS, detected=mean, notes=notes)


def moved(
    learner: Learner, before: Any, task: Task, record: Record, held: Held
) -> dict[str, tuple[float, float]]:
    """How far each returning class moved since `before`, but few rows, and how often by chance."""
    if record.private or not hasattr(learner, "drift_since"):
        return {}
    found = learner.drift_since(before, task)
    return {
        record.names[c]: (round(each.moved, 4), float(f"{each.p:.3g}"))
        for c, each in found.items()
        if held.labels.get(record.names[c], 0) >= record.least
    }


def sentences(noticed: Noticed | None, nodes: str = "unlabelled nodes") -> list[str]:
    """What its user should know, a sentence each."""
    if noticed is None:
        return []
    found = []
    if n := noticed.unlabelled:
        expected = f"{noticed.rate * n:,.{0 if noticed.rate * n > 10 else 1}f}"
        found.append(
            f"{noticed.strange:,} of {n:,} {nodes} look like no known class; {expected} would by "
            f"chance (false-alarm rate {100 * noticed.rate:.3g} %)"
            f"{''.join(f'; {why}' for why in noticed.rough)}"
        )
    if noticed.moved:
        sure = set(noticed.beyond_chance)
        each = [
            f"{name} by {far:.2f}{' (more than chance)' * (name in sure)}"
            for name, (far, _) in noticed.moved.items()
        ]
        found.append(f"returning classes moved, in units of their scatter: {', '.join(each)}")
    return found
