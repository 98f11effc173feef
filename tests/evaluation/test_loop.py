import re
import sys
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from tests.experiments.made import gone_on
from tests.harness.running_mean import RunningMean, Sums
from undrift import Graph, InputError, Learner, Task, TaskStream, evaluate
from undrift.evaluation import AccuracyMatrix, Evaluation
from undrift.evaluation.loop import Grades
from undrift.evaluation.matrix import class_accuracy, node_accuracy
from undrift.testing import tiny_stream
from undrift.typing import Progress


@dataclass(kw_only=True)
class Drifting(RunningMean):
    """Its embeddings are the features times the number of tasks: drift t after task t."""

    def _learn(self, task: Task, progress: Progress) -> Sums:
        progress("means", 0, 1)
        return super()._learn(task, progress)

    def embed(self, graph: Graph) -> Tensor:
        assert graph.num_nodes == 20  # the base task alone
        return graph.features.to_dense() * (len(self.classes_) / 2)


def test_the_matrices_are_those_of_a_loop_written_out() -> None:
    stream = tiny_stream()
    found = evaluate(RunningMean(), stream, splits=("test", "val"))
    assert found.grades["val"] == evaluate(RunningMean(), stream, splits=("val",)).grades["val"]
    learner = RunningMean()
    for t in range(len(stream)):
        learner.observe(stream.task(t))
        nodes = stream.nodes(range(t + 1))
        predicted = learner.predict(stream.graph.subgraph(nodes))
        truth = stream.graph.labels[nodes]
        for i in range(t + 1):
            mask = (stream.test & (stream.task_of == i))[nodes]
            by_class = class_accuracy(predicted[mask], truth[mask], stream.classes[i])
            assert found.by_class.rows[t][i] == by_class
            assert found.by_node.rows[t][i] == node_accuracy(predicted[mask], truth[mask])
    assert len(found.by_class) == 3


def test_drift_is_measured_on_the_base_task_from_task_zero_on() -> None:
    moved, still = evaluate(Drifting(), tiny_stream()), evaluate(RunningMean(), tiny_stream())
    assert moved.drift == pytest.approx((0.0, 1.0, 2.0))
    first, last = moved.embeddings
    assert torch.equal(last, 3 * first)
    assert (still.drift, still.embeddings) == ((), ())


def test_cost_is_recorded() -> None:
    found = evaluate(Drifting(), tiny_stream())
    assert set(found.seconds) == {"prepare", "learn", "means", "evaluate"}
    assert all(spent >= 0 for spent in found.seconds.values())
    width = tiny_stream().graph.num_features + 1  # the features, and how many rows
    assert found.state_bytes == tuple(4 * width * classes for classes in (2, 4, 6))
    assert found.peak_memory_mb is None or found.peak_memory_mb > 0


def measured(learner: Learner, stream: TaskStream, t: int) -> dict[str, float]:
    return {"late": 2.0} if t == 1 else {"b": t + 1.0}


def test_an_evaluation_that_was_cut_off_goes_on(tmp_path) -> None:
    both, kept = (Drifting(), Drifting()), []
    found = gone_on(both, tiny_stream(), tmp_path, measures=[measured])
    whole = evaluate(
        Drifting(), tiny_stream(), measures=[measured], after_task=lambda _, each: kept.append(each)
    )
    wanted = "{'b': (1.0, nan, 3.0), 'late': (nan, 2.0, nan)}"
    assert str(dict(found.series)) == str(dict(whole.series)) == wanted
    assert (found.grades, found.drift, found.tasks) == (whole.grades, whole.drift, 3)
    assert [len(each.by_class) for each in kept] == [1, 2, 3]


def test_what_cannot_be_graded_is_not_run() -> None:
    stream, learner = tiny_stream(), RunningMean()
    with pytest.raises(InputError, match="at least one split"):
        evaluate(learner, stream, splits=())
    with pytest.raises(InputError, match="has no test node"):
        evaluate(learner, replace(stream, test=torch.zeros_like(stream.test)))
    for pair in ((learner, stream.graph), (RunningMean, stream), (stream, learner)):
        with pytest.raises(InputError, match=r"from_graph\(data, base=2|a learner comes first"):
            evaluate(*pair)  # type: ignore[arg-type]
    assert learner.classes_ == ()


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


def test_an_evaluation_is_plotted(tmp_path, monkeypatch) -> None:
    pytest.importorskip("matplotlib")
    found = graded(AccuracyMatrix([[100.0], [70.0, 80.0]]))
    assert re.fullmatch(r"AccuracyMatrix\(\[\[\d+\.\d\], \[.*\]\]\)", repr(found.by_class))
    figure = found.plot(tmp_path / "curve.svg")
    assert (tmp_path / "curve.svg").read_text().count("<svg") == 1
    assert figure.axes[0].lines[0].get_ydata().tolist() == [100.0, 75.0]
    with pytest.raises(InputError, match=r"unknown kind of figure 'xyz'; choose one of: .*svg"):
        found.plot(tmp_path / "curve.xyz")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"need matplotlib; .*undrift\[figures\]"):
        found.plot()
