from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.evaluation.loop import Evaluation, Grades, evaluate
from undrift.evaluation.matrix import AccuracyMatrix, class_accuracy, node_accuracy
from undrift.graphs import Graph
from undrift.learners.base import Learner, at_nodes
from undrift.streams.task import Task
from undrift.testing.graphs import tiny_stream
from undrift.typing import Progress


@dataclass(frozen=True)
class Means:
    classes: tuple[int, ...]
    num_features: int
    centres: Tensor


@dataclass(kw_only=True)
class NearestMean(Learner):
    """The class whose mean feature vector is nearest. Looks at no edge."""

    name: ClassVar[str] = "nearest-mean"
    learned_type: ClassVar[type] = Means

    def _learn(self, task: Task, progress: Progress) -> Means:
        assert task.graph.labels is not None
        x = task.graph.features
        assert isinstance(x, Tensor)
        rows = [x[task.train & (task.graph.labels == c)].mean(dim=0) for c in task.classes]
        progress("means", 0, 1)
        old = self.learned_
        known = [] if old is None else [old.centres]
        classes = (*self.classes_, *task.classes)
        return Means(classes, task.graph.num_features, torch.cat([*known, torch.stack(rows)]))

    def _scores(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        assert isinstance(graph.features, Tensor)
        return -torch.cdist(at_nodes(graph.features, nodes), learned.centres)


@dataclass(kw_only=True)
class Drifting(NearestMean):
    """Its embeddings are the features times the number of tasks: drift t after task t."""

    def embed(self, graph: Graph) -> Tensor:
        assert isinstance(graph.features, Tensor)
        assert graph.num_nodes == 20  # the base task alone
        return graph.features * (len(self.classes_) / 2)


@dataclass(kw_only=True)
class Spy(NearestMean):
    """Notes every graph it has to predict."""

    def _scores(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        SEEN.append(graph)
        return super()._scores(learned, graph, nodes)


SEEN: list[Graph] = []


def test_the_matrices_are_those_of_a_loop_written_out() -> None:
    stream = tiny_stream()
    found = evaluate(NearestMean(), stream)
    learner = NearestMean()
    for t in range(len(stream)):
        learner.observe(stream.task(t))
        nodes = stream.nodes(range(t + 1))
        predicted = learner.predict(stream.graph.subgraph(nodes))
        assert stream.graph.labels is not None
        truth = stream.graph.labels[nodes]
        for i in range(t + 1):
            mask = (stream.test & (stream.task_of == i))[nodes]
            by_class = class_accuracy(predicted[mask], truth[mask], stream.classes[i])
            assert found.by_class.rows[t][i] == by_class
            assert found.by_node.rows[t][i] == node_accuracy(predicted[mask], truth[mask])
    assert len(found.by_class) == 3


def test_both_splits_come_from_one_prediction_per_exam() -> None:
    stream = tiny_stream()
    SEEN.clear()
    both = evaluate(Spy(), stream, splits=("test", "val"))
    assert len(SEEN) == 3
    assert both.grades["test"] == evaluate(NearestMean(), stream).grades["test"]
    assert both.grades["val"] == evaluate(NearestMean(), stream, splits=("val",)).grades["val"]
    assert both.by_class == both.grades["test"].by_class


def test_drift_is_measured_on_the_base_task_from_task_zero_on() -> None:
    moved, still = evaluate(Drifting(), tiny_stream()), evaluate(NearestMean(), tiny_stream())
    assert moved.drift == pytest.approx((0.0, 1.0, 2.0))
    first, last = moved.embeddings
    assert torch.equal(last, 3 * first)
    assert (still.drift, still.embeddings) == ((), ())


def test_cost_is_recorded() -> None:
    found = evaluate(NearestMean(), tiny_stream())
    assert set(found.seconds) == {"prepare", "learn", "means", "evaluate"}
    assert all(spent >= 0 for spent in found.seconds.values())
    width = tiny_stream().graph.num_features
    assert found.state_bytes == tuple(4 * width * classes for classes in (2, 4, 6))
    assert found.peak_memory_mb is None or found.peak_memory_mb > 0


def test_after_task_sees_the_run_so_far() -> None:
    told: list[tuple[int, Evaluation]] = []
    found = evaluate(NearestMean(), tiny_stream(), after_task=lambda t, e: told.append((t, e)))
    assert [t for t, _ in told] == [0, 1, 2]
    assert [len(so_far.by_class) for _, so_far in told] == [1, 2, 3]
    assert told[-1][1] == found
    assert told[0][1].by_class.rows == found.by_class.rows[:1]


@pytest.mark.parametrize("cut", [1, 2])
def test_an_evaluation_that_was_cut_off_goes_on(cut: int) -> None:
    stream = tiny_stream()
    kept: list[Evaluation] = []

    def stop(t: int, so_far: Evaluation) -> None:
        kept.append(so_far)
        if t + 1 == cut:
            raise KeyboardInterrupt

    learner = Drifting()
    with pytest.raises(KeyboardInterrupt):
        evaluate(learner, stream, after_task=stop)
    found = evaluate(learner, stream, so_far=kept[-1])
    whole = evaluate(Drifting(), stream)
    assert found.grades == whole.grades
    assert found.drift == whole.drift
    assert found.state_bytes == whole.state_bytes
    assert found.seconds["means"] >= kept[-1].seconds["means"]
    assert all(torch.equal(a, b) for a, b in zip(found.embeddings, whole.embeddings, strict=True))
    assert found.tasks == 3


def test_what_cannot_be_graded_is_not_run() -> None:
    stream, learner = tiny_stream(), NearestMean()
    with pytest.raises(InputError, match="at least one split"):
        evaluate(learner, stream, splits=())
    with pytest.raises(InputError, match="has no test node"):
        evaluate(learner, replace(stream, test=torch.zeros_like(stream.test)))
    assert learner.classes_ == ()


# what a person sees ----------------------------------------------------------------------


def graded(matrix: AccuracyMatrix) -> Evaluation:
    return Evaluation({"test": Grades(matrix, matrix)}, state_bytes=(8,) * len(matrix))


def test_an_evaluation_is_a_line_and_a_table() -> None:
    found = graded(AccuracyMatrix([[100.0], [70.0, 80.0]]))
    assert repr(found) == "Evaluation(2 tasks, A_avg 87.5, A_f 75.0, forgetting 30.0)"
    assert (
        found.table() == "after    T0    T1   A_t\nT0    100.0       100.0\nT1     70.0  80.0  75.0"
    )
    back = graded(AccuracyMatrix([[90.0, 50.0], [70.0, 80.0]], "classes", shares=(0.2, 0.8)))
    assert repr(back) == "Evaluation(2 batches, A_avg 72.5, A_f 75.0, forgetting -5.0)"
    assert back.table().splitlines()[1] == "S0     90.0  50.0  70.0"
    empty = graded(AccuracyMatrix())
    assert (repr(empty), empty.table()) == ("Evaluation(0 tasks)", "after   A_t")


def test_an_evaluation_is_plotted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    found = graded(AccuracyMatrix([[100.0], [70.0, 80.0]]))
    figure = found.plot(tmp_path / "curve.svg")
    assert (tmp_path / "curve.svg").read_text().count("<svg") == 1
    assert figure.axes[0].lines[0].get_ydata().tolist() == [100.0, 75.0]
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"need matplotlib; .*undrift\[figures\]"):
        found.plot()
