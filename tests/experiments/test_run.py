from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
import torch

from undrift import plugins
from undrift.errors import InputError
from undrift.evaluation.loop import evaluate
from undrift.experiments import run as module
from undrift.experiments.result import Result, load_result, save_result
from undrift.experiments.run import prepare
from undrift.experiments.spec import RunSpec, pinned
from undrift.learners.registry import make_learner
from undrift.streams.stream import TaskStream
from undrift.streams.summary import summarise
from undrift.testing.graphs import tiny_stream

QUICK = {"epochs": 3, "hidden": (4, 4)}


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every stream is the tiny one, so that a run takes a moment."""

    def load(name: str, seed: int = 0) -> TaskStream:
        provenance = {"stand_in": "in part", "file": "x.npz", "sha256": "ab12"}
        return replace(tiny_stream(seed), name=name, provenance=provenance)

    monkeypatch.setattr(module, "load_stream", load)


def run(spec: RunSpec, **how: Any) -> Result:
    """A run of which nothing is written."""
    ready = prepare(spec)
    return ready.result(ready.evaluate(**how))


def spec(**fields: object) -> RunSpec:
    return RunSpec(**({"method": "bare", "params": QUICK} | fields))


def test_a_result_says_what_evaluate_found() -> None:
    found = run(spec(seed=4))
    learner = make_learner("bare", seed=4, **QUICK)
    wanted = evaluate(learner, tiny_stream(4), splits=("test", "val"))
    assert found.by_class == wanted.by_class
    assert found.by_node == wanted.by_node
    assert found.metrics.by_class.a_avg == wanted.by_class.a_avg
    assert found.metrics.by_node.forgetting == wanted.by_node.forgetting
    assert found.validation is not None
    assert found.validation.by_class.a_f == wanted.grades["val"].by_class.a_f
    assert found.drift == pytest.approx(list(wanted.drift))
    assert found.cost.state_mb == wanted.state_bytes[-1] / 1e6
    assert found.cost.state_bytes == list(wanted.state_bytes)


def test_the_imbalance_of_every_task_is_recorded(tmp_path: Path) -> None:
    found = run(spec())
    assert found.imbalance == [task.imbalance for task in summarise(tiny_stream())]
    endless = found.model_copy(update={"imbalance": [1.0, float("inf")]})  # a class without nodes
    assert load_result(save_result(endless, tmp_path)).imbalance == [1.0, float("inf")]


def test_the_same_spec_gives_the_same_numbers() -> None:
    first, second = run(spec()), run(spec())
    assert first.matrix == second.matrix
    assert first.drift == second.drift


def test_a_result_says_what_it_cost_and_with_what() -> None:
    found = run(spec())
    phases = {name: spent for name, spent in found.cost.seconds.items() if name != "total"}
    assert found.cost.seconds["total"] == pytest.approx(sum(phases.values()))
    assert {"prepare", "train", "evaluate"} <= set(phases)
    assert found.cost.threads == torch.get_num_threads()
    assert set(found.versions) == {"undrift", "torch", "numpy", "scipy", "python"}
    # a wheel's own version may lack the build behind the plus
    assert found.versions["torch"] in {str(torch.__version__), torch.__version__.split("+")[0]}
    assert found.provenance == {
        "file": "x.npz",
        "sha256": "ab12",
        "split_sha256": tiny_stream().saved_split().sha256,
        "stand_in": "in part",
    }
    assert found.stand_in


@pytest.mark.parametrize(("protocol", "exams"), [("global", 1), ("local", 3)])
def test_the_protocol_is_the_specs(protocol: str, exams: int) -> None:
    heard: list[tuple[str, int, int]] = []
    run(spec(protocol=protocol), progress=lambda *report: heard.append(report))
    assert heard[-1] == ("evaluate", exams, exams)


def test_a_stream_without_validation_nodes_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = tiny_stream()
    blind = replace(stream, val=torch.zeros_like(stream.val))
    monkeypatch.setattr(module, "load_stream", lambda name, seed: blind)
    assert run(spec()).validation is None


def test_progress_and_after_task_are_passed_on() -> None:
    phases: list[str] = []
    tasks: list[int] = []
    run(
        spec(),
        progress=lambda phase, done, total: phases.append(phase),
        after_task=lambda t, so_far: tasks.append(t),
    )
    assert set(phases) == {"train", "evaluate"}
    assert tasks == [0, 1, 2]


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"params": {"nonsense": 1}}, "unknown parameter of bare 'nonsense'.*epochs"),
        ({"params": {"epochs": "many"}}, "epochs must be a whole number, not 'many'"),
        ({"method": "best"}, "unknown method 'best'"),
        ({"device": "toaster"}, "unknown device 'toaster'"),
    ],
)
def test_bad_input_is_found_before_the_stream_is_loaded(
    fields: dict[str, object], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(module, "load_stream")
    with pytest.raises(InputError, match=what):
        run(spec(**fields))


def test_cuda_without_a_gpu_is_an_input_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="no CUDA GPU is usable; choose cpu"):
        run(spec(device="cuda"))


# stream files ----------------------------------------------------------------------------


@pytest.fixture
def stream_file(tmp_path: Path) -> Path:
    """Thirty nodes in three classes, as two tables and a stream.toml."""
    rows = [f"{i},{i % 3},{i % 3 + 0.01 * i},{i % 2}" for i in range(30)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,label,a,b", *rows]))
    edges = [f"{i},{(i + 3) % 30}" for i in range(30)]
    (tmp_path / "edges.csv").write_text("\n".join(["source,target", *edges]))
    path = tmp_path / "stream.toml"
    path.write_text(
        'name = "mine"\n[graph]\nnodes = "nodes.csv"\nedges = "edges.csv"\n'
        "[tasks]\nbase = 1\nincrement = 1\n"
    )
    return path


def test_a_stream_file_is_run_and_its_spec_pinned(stream_file: Path) -> None:
    found = run(spec(stream=str(stream_file)))
    assert [len(row) for row in found.matrix.by_class] == [1, 2, 3]
    assert found.spec == pinned(spec(stream=str(stream_file)))
    assert found.spec.stream_sha256 == found.provenance["content_sha256"]
    assert found.provenance["nodes"] == "nodes.csv"
    assert len(str(found.provenance["edges_sha256"])) == 64


def test_a_stream_file_that_changed_is_not_run(stream_file: Path) -> None:
    described = pinned(spec(stream=str(stream_file)))
    with (stream_file.parent / "edges.csv").open("a") as file:
        file.write("\n0,1\n")
    with pytest.raises(InputError, match="changed since the run was described"):
        run(described)


def test_a_prepared_run_knows_its_tasks_and_its_split_before_it_starts(stream_file: Path) -> None:
    ready = prepare(spec(stream=str(stream_file), seed=2))
    assert len(ready.stream) == 3
    assert ready.stream.seed == 2
    found = ready.result(ready.evaluate())
    assert found.provenance["split_sha256"] == ready.stream.saved_split().sha256
    assert found.matrix == run(spec(stream=str(stream_file), seed=2)).matrix


def test_a_metric_that_cannot_be_loaded_is_noted_before_training(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    entry = EntryPoint("lost", "no.such.module:LOST", "undrift.metrics")
    found = {"undrift.metrics": {"lost": entry}}
    monkeypatch.setattr(plugins, "_outside", lambda group: found.get(group, {}))
    ready = prepare(spec())
    assert "no.such.module" in caplog.text
    assert ready.result(ready.evaluate()).metrics.by_class.a_f >= 0.0
