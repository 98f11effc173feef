from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from undrift import plugins
from undrift.errors import InputError
from undrift.evaluation.matrix import AccuracyMatrix
from undrift.evaluation.metrics import Metric
from undrift.experiments.jobs import Job, is_done
from undrift.experiments.manifest import Manifest, PlannedRun, manifest_path, save_manifest
from undrift.experiments.result import (
    Cost,
    Graded,
    Metrics,
    Result,
    load_result,
    result_path,
    save_result,
)
from undrift.experiments.search_record import Search, SearchSpec, Trial, save_search
from undrift.experiments.spec import RunSpec
from undrift.experiments.store import load_records

ROWS = [[90.0], [70.0, 80.0]]


def result(**spec: Any) -> Result:
    metrics = Metrics.of(AccuracyMatrix(ROWS))
    return Result(
        spec=RunSpec(**spec),
        matrix=Graded[list[list[float]]](by_class=ROWS, by_node=ROWS),
        metrics=Graded[Metrics](by_class=metrics, by_node=metrics),
        validation=None,
        drift=[0.0, 0.5],
        cost=Cost(seconds={"total": 1.0}, peak_memory_mb=None, state_mb=0.1, threads=1),
        versions={"undrift": "0.1.0"},
        provenance={"stand_in": False},
    )


def manifest() -> Manifest:
    cell = PlannedRun(row="adr", method="adr", stream="cs-cl", seed=0, run=result().spec.id)
    return Manifest(
        plan="smoke", title="Small", rule="defaults", rows=["adr"], streams=["cs-cl"], cells=[cell]
    )


def search() -> Search:
    spec = SearchSpec(base=RunSpec(), grid={"gamma": (0.1, 1.0)})
    trials = [Trial(params={"gamma": gamma}, validation=None) for gamma in (0.1, 1.0)]
    return Search(spec=spec, trials=trials, chosen={"gamma": 1.0}, seconds=2.0)


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_all_that_was_saved_comes_back(tmp_path: Path) -> None:
    saved = [result(seed=seed) for seed in range(3)]
    for one in saved:
        save_result(one, tmp_path)
    save_manifest(manifest(), tmp_path)
    save_search(search(), tmp_path)
    records = load_records(tmp_path)
    assert records.results == {one.spec.id: one for one in saved}
    assert list(records.results) == sorted(records.results)
    assert records.manifests == [manifest()]
    assert records.searches == [search()]
    assert records.damaged == []
    assert records.folder == tmp_path


def test_an_empty_folder_has_no_records(tmp_path: Path) -> None:
    records = load_records(str(tmp_path))
    assert (records.results, records.manifests, records.searches) == ({}, [], [])
    assert records.folder == tmp_path


def test_what_is_no_record_is_passed_over(tmp_path: Path) -> None:
    save_result(result(), tmp_path)
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "unfinished" / "state.safetensors").write_bytes(b"")
    (tmp_path / "unfinished" / ".result.json.0a.part").write_bytes(b"{")
    (tmp_path / "results.parquet").write_bytes(b"")
    (tmp_path / "leakage-cs-cl-adr-0.json").write_text("{}")
    records = load_records(tmp_path)
    assert list(records.results) == [result().spec.id]
    assert records.damaged == []


def test_damaged_files_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    save_result(result(), tmp_path)
    broken = [
        save_result(result(seed=7), tmp_path),
        save_manifest(manifest(), tmp_path),
        save_search(search(), tmp_path),
    ]
    for path in broken:
        path.write_bytes(path.read_bytes()[:-20])
    foreign = tmp_path / "plans" / "shopping.json"
    foreign.write_text('["bread"]')
    records = load_records(tmp_path)
    assert list(records.results) == [result().spec.id]
    assert (records.manifests, records.searches) == ([], [])
    assert len(records.damaged) == 4
    for path in [*broken, foreign]:
        (sentence,) = [s for s in records.damaged if str(path) in s]
        assert "\n" not in sentence


def test_a_moved_result_is_damaged(tmp_path: Path) -> None:
    path = save_result(result(), tmp_path)
    path.parent.rename(tmp_path / "copy")
    records = load_records(tmp_path)
    assert records.results == {}
    (sentence,) = records.damaged
    assert "copy/result.json was moved or edited" in sentence
    assert result().spec.id in sentence


def test_a_moved_plan_and_search_are_damaged(tmp_path: Path) -> None:
    save_manifest(manifest(), tmp_path).rename(manifest_path("other", tmp_path))
    path = save_search(search(), tmp_path)
    path.rename(path.with_stem("0" * 12))
    assert ["moved or edited" in s for s in load_records(tmp_path).damaged] == [True, True]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"spec": {"stream": "cs-cl", "seed": 5}}, "moved or edited"),
        ({"spec": {"stream": "papers/stream.toml"}}, "damaged .*no id"),
        ({"matrix": {"class": [[90.0], [70.0]], "node": ROWS}}, "damaged .*row 1"),
        ({"matrix": {"class": [], "node": ROWS}}, "damaged .*without rows"),
        ({"matrix": {"class": ROWS, "node": [[90.0], [70.0, 81.0]]}}, "edited .*metrics"),
        ({"format": 99}, "newer undrift"),
    ],
)
def test_an_edited_result_is_damaged(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    edit(save_result(result(), tmp_path), **changes)
    records = load_records(tmp_path)
    assert records.results == {}
    (sentence,) = records.damaged
    assert re.search(why, sentence)


@pytest.mark.parametrize("name", ["state_mb", "peak_memory_mb"])
@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_cost_that_is_no_number_is_damage(tmp_path: Path, name: str, value: str) -> None:
    path = save_result(result(), tmp_path)
    edit(path, cost=json.loads(path.read_text())["cost"] | {name: float(value)})
    records = load_records(tmp_path)
    assert records.results == {}
    assert f"cost.{name}: input should be a finite number" in records.damaged[0].lower()


def test_results_of_the_first_format_are_read(tmp_path: Path) -> None:
    path = save_result(result(), tmp_path)
    old = json.loads(path.read_text())
    del old["format"], old["cost"]["state_bytes"]
    path.write_text(json.dumps(old))
    assert load_records(tmp_path).results == {result().spec.id: load_result(path)}


@pytest.fixture
def broken_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package brings a metric that cannot be loaded."""
    entry = EntryPoint("gone", "no.such.module:GONE", "undrift.metrics")
    found = {"undrift.metrics": {"gone": entry}}
    monkeypatch.setattr(plugins, "_outside", lambda group: found.get(group, {}))


@pytest.mark.usefixtures("broken_metric")
def test_a_metric_that_cannot_be_loaded_damages_no_result(tmp_path: Path) -> None:
    path = save_result(result(), tmp_path)
    graded = json.loads(path.read_text())["metrics"]
    edit(path, metrics={by: values | {"gone": 12.5} for by, values in graded.items()})
    records = load_records(tmp_path)
    assert records.damaged == []
    (found,) = records.results.values()
    assert found.metrics.by_class.gone == 12.5  # a plain number
    assert is_done(Job(run=result().spec), tmp_path)  # bench does not make it again


def test_a_metric_of_a_package_that_has_changed_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = Metric("theirs", "T", "theirs", "up", "T", lambda matrix: 7.0)
    entry = EntryPoint("theirs", "theirs:METRIC", "undrift.metrics")
    found = {"undrift.metrics": {"theirs": entry}}
    monkeypatch.setattr(plugins, "_outside", lambda group: found.get(group, {}))
    monkeypatch.setattr(plugins, "_imported", lambda *where: now)
    path = save_result(result(), tmp_path)
    graded = json.loads(path.read_text())["metrics"]
    edit(path, metrics={by: values | {"theirs": 12.5} for by, values in graded.items()})
    records = load_records(tmp_path)
    assert records.damaged == []
    assert [one.metrics.by_class.theirs for one in records.results.values()] == [12.5]


def test_a_missing_folder_says_how_to_fill_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no folder of results .*undrift bench smoke"):
        load_records(tmp_path / "runs")


def test_a_file_or_the_folder_of_one_run_is_refused(tmp_path: Path) -> None:
    path = save_result(result(), tmp_path / "runs")
    with pytest.raises(InputError, match="is a file"):
        load_records(path)
    with pytest.raises(InputError, match=f"folder of one run; .*{tmp_path / 'runs'}$"):
        load_records(result_path(result().spec, tmp_path / "runs").parent)


def test_progress_counts_every_file(tmp_path: Path) -> None:
    for seed in range(2):
        save_result(result(seed=seed), tmp_path)
    save_manifest(manifest(), tmp_path)
    save_search(search(), tmp_path).write_text("{")
    calls: list[tuple[str, int, int]] = []
    load_records(tmp_path, progress=lambda *call: calls.append(call))
    assert calls == [("read", done, 4) for done in range(5)]


def test_the_store_does_not_import_torch() -> None:
    code = "import sys, undrift.experiments.store; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
