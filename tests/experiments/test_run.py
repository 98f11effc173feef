"""A run: what its result says, what lies on disk, and going on where it was cut."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from undrift import InputError, arrange, evaluate, make_learner
from undrift.evaluation import Evaluation
from undrift.experiments import RunSpec, checkpoint, execute, load_records, prepare
from undrift.experiments import run as module
from undrift.experiments.checkpoint import clean
from undrift.experiments.result import Result, load_result, result_path, save_result
from undrift.experiments.spec import pinned
from undrift.storage import files
from undrift.storage.lock import exclusive
from undrift.storage.splits import load_split
from undrift.testing import tiny_stream

QUICK: dict[str, Any] = {"epochs": 3, "hidden": (4, 4)}
SPEC = RunSpec(method="bare", params=QUICK)
FOLDER = SPEC.id
CHECKPOINT = "checkpoint.safetensors"

pytestmark = pytest.mark.usefixtures("tiny")


@pytest.fixture
def run(tmp_path) -> Any:
    """Runs a spec with other fields than `SPEC` has."""

    def run(how: dict[str, Any] | None = None, **fields: Any) -> Result:
        made = RunSpec(**({"method": "bare", "params": QUICK} | fields))
        return execute(prepare(made), tmp_path / "runs", **(how or {}))

    return run


def test_a_result_says_what_evaluate_found(run) -> None:
    found = run(seed=4)
    learner = make_learner("bare", seed=4, **QUICK)
    wanted = evaluate(learner, tiny_stream(4), splits=("test", "val"))
    assert (found.by_class, found.by_node) == (wanted.by_class, wanted.by_node)
    assert found.metrics.by_class.a_avg == wanted.by_class.a_avg
    assert found.metrics.by_node.forgetting == wanted.by_node.forgetting
    assert found.validation.by_class.a_f == wanted.grades["val"].by_class.a_f
    assert found.drift == pytest.approx(list(wanted.drift))
    assert found.cost.state_mb == wanted.state_bytes[-1] / 1e6
    assert found.cost.state_bytes == list(wanted.state_bytes)
    again = run(seed=4)
    assert (again.matrix, again.drift) == (found.matrix, found.drift)


def test_the_imbalance_of_every_task_is_recorded(run, tmp_path) -> None:
    found = run()
    assert found.imbalance == [task.imbalance for task in tiny_stream().describe()]
    endless = found.model_copy(update={"imbalance": [1.0, float("inf")]})  # a class without nodes
    assert load_result(save_result(endless, tmp_path)).imbalance == [1.0, float("inf")]


def test_a_result_says_what_it_cost_and_with_what(run, monkeypatch) -> None:
    came = {"stand_in": "in part", "file": "x.npz", "sha256": "ab12"}
    stream = replace(tiny_stream(), provenance=came)
    monkeypatch.setattr(module, "load_stream", lambda name, seed: stream)
    found = run()
    phases = {name: spent for name, spent in found.cost.seconds.items() if name != "total"}
    assert found.cost.seconds["total"] == pytest.approx(sum(phases.values()))
    assert {"prepare", "train", "evaluate"} <= set(phases)
    assert found.cost.threads == torch.get_num_threads()
    assert set(found.versions) == {"undrift", "torch", "numpy", "scipy", "python"}
    assert found.provenance == came | {"split_sha256": tiny_stream().saved_split().sha256}
    assert found.stand_in


def test_a_stream_without_validation_nodes_runs(run, monkeypatch) -> None:
    stream = tiny_stream()
    blind = replace(stream, val=torch.zeros_like(stream.val))
    monkeypatch.setattr(module, "load_stream", lambda name, seed: blind)
    assert run().validation is None


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"params": {"epochs": "many"}}, "epochs must be a whole number, not 'many'"),
        ({"device": "cuda"}, "no CUDA GPU is usable; choose cpu"),
    ],
)
def test_bad_input_is_found_before_the_stream_is_loaded(run, fields, what, monkeypatch) -> None:
    monkeypatch.delattr(module, "load_stream")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match=what):
        run(**fields)


def test_a_stream_file_is_run_and_its_spec_pinned(run, stream_file: Path) -> None:
    found = run(stream=str(stream_file))
    assert [len(row) for row in found.matrix.by_class] == [1, 2, 3]
    described = pinned(RunSpec(stream=str(stream_file), method="bare", params=QUICK))
    assert found.spec == described
    assert found.spec.stream_sha256 == found.provenance["content_sha256"]
    assert found.provenance["nodes"] == "nodes.csv"
    assert len(str(found.provenance["edges_sha256"])) == 64
    with (stream_file.parent / "edges.csv").open("a") as file:
        file.write("\n0,1\n")
    with pytest.raises(InputError, match="changed since the run was described"):
        prepare(described)


def test_everything_lies_beside_the_result(tmp_path) -> None:
    result = execute(prepare(SPEC), tmp_path)
    path = result_path(SPEC, tmp_path)
    assert load_result(path) == result
    names = ["embedding.npz", "result.json", "split.npz"]
    assert sorted(p.name for p in path.parent.iterdir()) == names
    with np.load(path.with_name("embedding.npz"), allow_pickle=False) as picture:
        assert picture["first"].shape == picture["last"].shape == (20, 2)
        assert set(picture["labels"].tolist()) == {0, 1}
        assert not np.array_equal(picture["first"], picture["last"])


@pytest.mark.parametrize("checkpoints", [True, False])
def test_a_run_that_was_cut_goes_on_and_ends_the_same(tmp_path, checkpoints: bool) -> None:
    tasks: list[int] = []

    def stop(t: int, _: Evaluation) -> None:
        tasks.append(t)
        if tasks == [0, 1]:
            raise KeyboardInterrupt

    how: dict[str, Any] = {"after_task": stop, "checkpoints": checkpoints}
    with pytest.raises(KeyboardInterrupt):
        execute(prepare(SPEC), tmp_path, **how)
    kept = tmp_path / FOLDER / CHECKPOINT
    assert kept.is_file() == checkpoints
    found = execute(prepare(SPEC), tmp_path, **how)
    assert tasks == [0, 1, *range(2 if checkpoints else 0, 3)]
    whole = execute(prepare(SPEC), tmp_path / "whole")
    assert (found.matrix, found.drift) == (whole.matrix, whole.drift)
    assert not kept.exists()


class Disk:
    """Writes of files with these names fail for want of space."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
        self.names, real = names, files.whole_file

        @contextmanager
        def whole_file(path: Path) -> Iterator[Any]:
            if Path(path).name in self.names:
                raise InputError(f"cannot write {path} (No space left on device)")
            with real(path) as file:
                yield file

        monkeypatch.setattr(files, "whole_file", whole_file)


def test_a_result_takes_the_space_of_checkpoints_that_nobody_is_at(tmp_path, monkeypatch) -> None:
    disk = Disk(monkeypatch)
    left, busy = (tmp_path / name / CHECKPOINT for name in ("left", "busy"))
    for path in (left, busy):
        path.parent.mkdir()
        path.write_bytes(b"x")
    real = checkpoint.free_space

    def freed(out: Path) -> None:
        real(out)
        disk.names = ()

    def fill(t: int, _: Evaluation) -> None:
        disk.names = ("split.npz",)

    monkeypatch.setattr(checkpoint, "free_space", freed)
    (tmp_path / "locks").mkdir()
    with exclusive(tmp_path / "locks" / "busy.lock", "running"):
        execute(prepare(SPEC), tmp_path, after_task=fill, checkpoints=True)
    assert (left.exists(), busy.exists()) == (False, True)
    assert result_path(SPEC, tmp_path).is_file()


def test_what_killed_runs_left_is_cleaned_away(tmp_path) -> None:
    execute(prepare(SPEC), tmp_path)
    (tmp_path / "other").mkdir()
    for place in (tmp_path / FOLDER, tmp_path / "other"):
        (place / CHECKPOINT).write_bytes(b"x")
        (place / f".{CHECKPOINT}.0123abcd.part").write_bytes(b"half")
    clean(tmp_path)
    assert not list(tmp_path.rglob("*.part"))
    assert not (tmp_path / FOLDER / CHECKPOINT).exists()  # its result is there
    assert (tmp_path / "other" / CHECKPOINT).exists()  # a run that may go on


def test_a_run_where_classes_come_back_is_whole_on_disk(tmp_path) -> None:
    spec = RunSpec(method="tests.harness.running_mean:RunningMean", arrive="online:batch=2", seed=1)
    result = execute(prepare(spec), tmp_path, checkpoints=True)
    records = load_records(tmp_path)
    assert records.damaged == []
    assert records.results == {spec.id: result}
    stream = arrange(tiny_stream(1), "online:batch=2")
    split = load_split(
        result_path(spec, tmp_path).with_name("split.npz"), stream.saved_split().sha256
    )
    assert split.arrives.tolist() == stream.task_of.tolist()
    assert set(result.validation.by_class.model_dump()) == set(result.metrics.by_class.model_dump())
