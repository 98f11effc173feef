"""Open-world grades: who is unknown when, and the numbers of a loop written out."""

from dataclasses import replace

import pytest
import torch

from paper.novelty_study import exam
from tests.experiments.made import gone_on
from undrift import InputError, Propagation, arrange, make_learner
from undrift.evaluation.detection import anomalies, aupr, auroc, fpr95, open_exam, open_world, oscr
from undrift.experiments.result import load_result, result_path
from undrift.experiments.run import PreparedRun, execute
from undrift.experiments.spec import RunSpec
from undrift.reporting.tables.compare import compare, manifest_of_runs
from undrift.streams.stream import TaskStream
from undrift.testing.graphs import tiny_graph, tiny_stream


def test_unknown_are_all_nodes_of_the_next_task_and_known_are_test_nodes() -> None:
    stream = tiny_stream()
    for t in range(len(stream) - 1):
        graph, unknown, known = exam(stream, t)
        found = open_exam(stream, t)
        assert torch.equal(found.masks["unknown"], unknown)
        assert torch.equal(found.masks["known"], known)
        assert torch.equal(found.graph.features, graph.features)
        assert found.graph.labels is None
    assert not open_exam(stream, len(stream) - 1).masks["unknown"].any()


def test_where_classes_come_back_the_next_new_classes_are_unknown() -> None:
    stream = arrange(tiny_stream(), "blurry:disjoint=0.5,blurry=0.5,batches=4")
    labels = stream.graph.labelled()
    for t in range(len(stream)):
        found, seen = open_exam(stream, t), set(stream.seen(t))
        new = next((set(c) - seen for c in stream.classes[t:] if set(c) - seen), set())
        assert set(found.truth[found.masks["unknown"]].tolist()) == new
        assert found.truth.numel() == sum(int((labels == c).sum()) for c in seen | new)
        assert not set(found.truth[found.masks["known"]].tolist()) - seen


@pytest.mark.parametrize("method", ["propagation", "bare"])
def test_the_series_are_those_of_a_loop_written_out_and_of_a_run_that_goes_on(method, tmp_path):
    stream = tiny_stream()
    *both, again = (make_learner(method) for _ in range(3))
    found = gone_on(both, stream, tmp_path, measures=[open_world]).series
    for t in range(len(stream) - 1):
        again.observe(stream.task(t))
        graph, unknown, known = exam(stream, t)
        strange = again.strangeness(graph)
        both = strange[known], strange[unknown]
        right = (again.predict(graph) == graph.labels)[known]
        wanted = [auroc(*both), aupr(*both), fpr95(*both), oscr(*both, right)]
        assert [series[t] for series in found.values()] == pytest.approx(wanted, abs=1e-6)
    assert all(len(series) == 3 and series[2] != series[2] for series in found.values())


def test_anomalies_are_ranked_by_strangeness_and_once_some_are_known_by_odds() -> None:
    stream = TaskStream.from_graph(tiny_graph(), base=1, increment=2, normal=0)
    learner = Propagation()
    for t, task in enumerate(stream):
        learner.observe(task)
        exam = open_exam(stream, t)
        odd = exam.truth[exam.masks["test"]] != 0
        score = learner.strangeness(exam.graph, exam.masks["test"])
        if t:
            score = 1 - learner.predict_proba(exam.graph, exam.masks["test"])[:, 0]
        found = anomalies(learner, stream, t)
        assert found["anomaly_auroc"] == pytest.approx(auroc(score[~odd], score[odd]))
        assert found["anomaly_ap"] == pytest.approx(aupr(score[~odd], score[odd]))
    assert anomalies(learner, replace(stream, normal=None), 1) == {}
    assert anomalies(learner, replace(stream, normal=5), 0) == {}  # not known yet
    for wrong in (99, -1, 0.5, True):
        with pytest.raises(InputError, match=f"normal must be.*{wrong}"):
            replace(stream, normal=wrong)


def test_a_stream_of_anomalies_has_their_metrics_in_its_result(tmp_path) -> None:
    stream = TaskStream.from_graph(tiny_graph(), base=1, increment=2, normal=0)
    result = execute(PreparedRun(RunSpec(open_world=True), Propagation(), stream), tmp_path)
    of_it = ["anomaly_auroc", "anomaly_ap"]  # what the stream is about comes first
    assert list(result.series) == [*of_it, "auroc", "aupr", "fpr95", "oscr"]
    assert compare({"one": result}, manifest_of_runs({"one": result})).metrics[-2:] == of_it
    assert load_result(result_path(result.spec, tmp_path)) == result
