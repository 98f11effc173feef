"""Streams whose classes come back, graded: against a loop that is written out node by node."""

from itertools import pairwise

import pytest
import torch

from tests.experiments.made import gone_on
from tests.harness.references import returning_metrics
from tests.harness.running_mean import RunningMean
from undrift import InputError, TaskStream, arrange, evaluate
from undrift.evaluation.loop import evaluate_together
from undrift.evaluation.metrics import metrics_of
from undrift.evaluation.protocols import MOST, check_gradable, graded_batches
from undrift.testing import tiny_stream

EVERY = ("blurry", "blurry:batches=5,blurry=0.5", "domain", "online:batch=5", "online:batch=2")


def written_out(stream: TaskStream, split: str, *, by_node: bool) -> dict[str, float]:
    """Observe every batch, and ask one node at a time after those that count."""
    learner, labels = RunningMean(), stream.graph.labelled().tolist()
    steps, shares, fresh = [], [], 0
    for t in range(len(stream)):
        learner.observe(stream.task(t))
        fresh += int((stream.train & (stream.task_of == t)).sum())
        if t not in graded_batches(stream):
            continue
        shares.append(fresh / int(stream.train.sum()))
        fresh = 0
        nodes = [v for v, c in enumerate(labels) if c in learner.classes_]
        answers = learner.predict(stream.graph.subgraph(torch.tensor(nodes))).tolist()
        asked = getattr(stream, split).tolist()
        steps.append({v: a for v, a in zip(nodes, answers, strict=True) if asked[v]})
    return returning_metrics(steps, dict(enumerate(labels)), shares, by_node=by_node)


@pytest.mark.parametrize("arrive", EVERY)
def test_the_metrics_are_those_of_a_loop_written_out(arrive: str) -> None:
    stream = arrange(tiny_stream(2), arrive)
    found = evaluate(RunningMean(), stream, splits=("test", "val"))
    for split, grades in found.grades.items():
        for by_node, matrix in ((False, grades.by_class), (True, grades.by_node)):
            wanted = written_out(stream, split, by_node=by_node)
            assert metrics_of(matrix) == pytest.approx(wanted)
            assert sum(matrix.shares) == pytest.approx(1.0)
    assert found.tasks == len(graded_batches(stream))
    together = evaluate_together([RunningMean()], stream, splits=("test",))
    assert together[0].grades["test"] == found.grades["test"]


def test_many_batches_are_graded_at_twenty_even_points() -> None:
    stream = arrange(tiny_stream(nodes=120), "online:batch=1")
    graded = graded_batches(stream)
    assert len(stream) == 72
    assert len(graded) == MOST
    assert graded[-1] == 71
    assert {b - a for a, b in pairwise(graded)} == {3, 4}
    assert graded_batches(tiny_stream()) == (0, 1, 2)


def test_a_run_that_was_cut_off_goes_on(tmp_path) -> None:
    stream = arrange(tiny_stream(1), "online:batch=2")
    found = gone_on((RunningMean(), RunningMean()), stream, tmp_path, graded_batches(stream)[6])
    assert found.grades == evaluate(RunningMean(), stream).grades


def test_local_testing_is_refused() -> None:
    with pytest.raises(InputError, match=r"local testing asks task by task.*use global testing"):
        evaluate(RunningMean(), arrange(tiny_stream(), "domain"), protocol="local")


def test_a_class_without_test_nodes_cannot_be_graded() -> None:
    plain = tiny_stream()
    mine = plain.test & (plain.graph.labelled() == 4)
    stream = arrange(
        TaskStream(plain.graph, plain.classes, plain.train, plain.val, plain.test & ~mine), "domain"
    )
    with pytest.raises(InputError, match=r"class 4 of stream .* has no test node"):
        check_gradable(stream, ("test",))
