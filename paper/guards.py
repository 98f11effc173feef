"""The numbers of docs/privacy/guards.md: `python -m paper.guards small` and `... columns`.

`small`: a class of the last task is learned from n nodes only, all others whole. How near is the
mean of its rows to one of them, and how often is the class right? Three draws of nodes for every
class of the last task. `columns`: membership from one row alone, against rows per column, by the
best of four statistics. `directions`: the same where R is seen through a few directions.
"""

import sys
from collections.abc import Iterator, Sequence
from statistics import fmean

import torch
from torch import Tensor

import undrift
from paper.attack_methods import nearest
from undrift.privacy.attacks import Candidates, auc, kept_sums
from undrift.privacy.membership import Distance, Seen, from_one_row
from undrift.propagation.learner import Propagation
from undrift.streams.stream import TaskStream
from undrift.streams.task import Task

STREAMS = ("coraml-cl", "citeseer-cl", "photo-cl", "dblp-cl", "cs-cl")
SIZES = (1, 2, 3, 4, 5, 8, 10, 20)
RANKS = (16, 32, 64, 128)
WIDTHS = (64, 128, 256, 512, 1024, 2048)
DRAWS = 3


def small(stream: TaskStream) -> Iterator[tuple[int, float, float, float]]:
    """Nodes of the class, its nearest cosine, its accuracy and the others' mean, per draw."""
    *earlier, last = stream
    before = Propagation(sketch=512, fourier=0, rank=0)
    for task in earlier:
        before.observe(task)
    for c in last.classes:
        mine = (last.train & (last.labels == c)).nonzero().flatten()
        for draw in range(DRAWS):
            order = mine[torch.randperm(len(mine), generator=torch.Generator().manual_seed(draw))]
            for n in SIZES:
                train = last.train.clone()
                train[order[n:]] = False
                task = Task(last.graph, train, None, None, last.classes)
                learner = before.clone()
                learner.learned_ = before.learned_
                yield n, *_outcome(learner.observe(task), stream, task, c)


def _outcome(
    learner: Propagation, stream: TaskStream, task: Task, c: int
) -> tuple[float, float, float]:
    kept, *_ = kept_sums(learner)
    rows = kept.rows_of(task, task.train & (task.labels == c))
    read = _there(kept.means).T[[kept.classes.index(c)]]
    labels = stream.graph.labelled()
    right = (learner.predict(stream.graph) == labels).double()
    each = {k: float(right[stream.test & (labels == k)].mean()) for k in learner.classes_}
    own = each.pop(c)
    return float(nearest(read, rows)), 100 * own, 100 * fmean(each.values())


def columns(stream: TaskStream) -> Iterator[tuple[int, float, dict[str, float]]]:
    """Columns, rows per column, and the AUC of each statistic."""
    for width in WIDTHS:
        if width <= stream.graph.num_features:
            learner = Propagation(sketch=width, fourier=0, rank=0)
            for task in stream:
                learner.observe(task)
            kept, *_ = kept_sums(learner)
            tried = Candidates.of(kept, list(stream))
            metric = Distance(_there(kept.gram))
            values = from_one_row(metric, tried.rows, kept.count)
            values["normalised"] = values.pop("normalised leverage")
            found = {name: auc(value, tried.members) for name, value in values.items()}
            yield kept.width, kept.count / kept.width, found


def directions(stream: TaskStream) -> Iterator[tuple[int, float, dict[str, float]]]:
    """Directions, rows per direction, and the AUC of what a regression on them leaves."""
    for rank in RANKS:
        learner = Propagation(rank=rank)
        for task in stream:
            learner.observe(task)
        kept, *_ = kept_sums(learner)
        tried = Candidates.of(kept, list(stream))
        if kept.seen is not None:
            unexplained = Seen.of(kept.seen).unexplained(tried.rows)
            yield rank, kept.count / rank, {"unexplained": auc(unexplained, tried.members)}


def _there(table: Tensor | None) -> Tensor:
    if table is None:
        raise ValueError("this learner keeps no such sum")
    return table


def main(what: str, streams: Sequence[str]) -> None:
    """Print a line per stream and number."""
    for name in streams or STREAMS:
        stream = undrift.load_stream(name, seed=0)
        if what in ("columns", "directions"):
            for width, share, found in (columns if what == "columns" else directions)(stream):
                numbers = ", ".join(f"{which} {figure:.2f}" for which, figure in found.items())
                sys.stdout.write(f"{name} {width} {what}, {share:.1f} rows each: {numbers}\n")
                sys.stdout.flush()
            continue
        lines = list(small(stream))
        for n in SIZES:
            numbers = ", ".join(
                f"{which} {fmean(line[i] for line in lines if line[0] == n):.2f}"
                for i, which in enumerate(("cosine", "right", "others"), start=1)
            )
            sys.stdout.write(f"{name} {n} nodes: {numbers}\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
