"""A folder of results: what was saved comes back, what was damaged is named."""

import json
import re
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.made import ROWS, made
from undrift import InputError, plugins
from undrift.evaluation.metrics import Metric
from undrift.experiments import RunSpec, load_records
from undrift.experiments.plan import is_done
from undrift.experiments.result import result_path, save_result
from undrift.experiments.search import Search, SearchSpec, Trial, save_search
from undrift.experiments.store import Manifest, PlannedRun, manifest_path, save_manifest


def manifest() -> Manifest:
    cell = PlannedRun(row="adr", method="adr", stream="cs-cl", seed=0, run=made().spec.id)
    return Manifest(
        plan="smoke", title="Small", rule="defaults", rows=["adr"], streams=["cs-cl"], cells=[cell]
    )


def search() -> Search:
    spec = SearchSpec(base=RunSpec(), grid={"gamma": (0.1, 1.0)})
    trials = [Trial(params={"gamma": gamma}, validation=None) for gamma in (0.1, 1.0)]
    return Search(spec=spec, trials=trials, chosen={"gamma": 1.0}, seconds=2.0)


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_all_that_was_saved_comes_back_and_nothing_else(tmp_path) -> None:
    saved = [made(seed=seed) for seed in range(3)]
    for one in saved:
        save_result(one, tmp_path)
    save_manifest(manifest(), tmp_path)
    save_search(search(), tmp_path)
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "unfinished" / ".result.json.0a.part").write_bytes(b"{")
    (tmp_path / "leakage-cs-cl-adr-0.json").write_text("{}")
    records = load_records(str(tmp_path))
    assert records.results == {one.spec.id: one for one in saved}
    assert list(records.results) == sorted(records.results)
    assert (records.manifests, records.searches) == ([manifest()], [search()])
    assert (records.damaged, records.folder) == ([], tmp_path)


def test_damaged_files_are_named_and_the_rest_is_read(tmp_path) -> None:
    save_result(made(), tmp_path)
    broken = [
        save_result(made(seed=7), tmp_path),
        save_manifest(manifest(), tmp_path),
        save_search(search(), tmp_path),
    ]
    for path in broken:
        path.write_bytes(path.read_bytes()[:-20])
    foreign = tmp_path / "plans" / "shopping.json"
    foreign.write_text('["bread"]')
    calls: list[tuple[str, int, int]] = []
    records = load_records(tmp_path, progress=lambda *call: calls.append(call))
    assert calls == [("reading results", done, 5) for done in range(6)]
    assert list(records.results) == [made().spec.id]
    assert (records.manifests, records.searches) == ([], [])
    assert len(records.damaged) == 4
    for path in [*broken, foreign]:
        (sentence,) = [s for s in records.damaged if str(path) in s]
        assert "\n" not in sentence


def test_what_was_moved_is_damaged(tmp_path) -> None:
    save_result(made(), tmp_path).parent.rename(tmp_path / "copy")
    save_manifest(manifest(), tmp_path).rename(manifest_path("other", tmp_path))
    path = save_search(search(), tmp_path)
    path.rename(path.with_stem("0" * 12))
    damaged = load_records(tmp_path).damaged
    assert ["moved or edited" in sentence for sentence in damaged] == [True] * 3
    assert made().spec.id in damaged[0]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"spec": {"stream": "cs-cl", "seed": 5}}, "moved or edited"),
        ({"spec": {"stream": "papers/stream.toml"}}, "damaged .*no id"),
        ({"matrix": {"class": [[90.0], [70.0]], "node": ROWS}}, "damaged .*row 1"),
        ({"matrix": {"class": [], "node": []}}, "damaged .*empty"),
        ({"matrix": {"class": ROWS, "node": [[90.0], [70.0, 81.0]]}}, "edited .*metrics"),
        ({"format": 99}, "newer undrift"),
    ],
)
def test_an_edited_result_is_damaged(tmp_path, changes: dict[str, Any], why: str) -> None:
    edit(save_result(made(), tmp_path), **changes)
    records = load_records(tmp_path)
    assert records.results == {}
    assert re.search(why, records.damaged[0])


@pytest.mark.parametrize("installed", [True, False])
def test_a_metric_of_another_package_damages_no_result(tmp_path, monkeypatch, installed) -> None:
    """Whether it gives another value by now, or cannot be loaded."""
    entry = EntryPoint("theirs", "no.such.module:METRIC", "undrift.metrics")
    found = {"undrift.metrics": {"theirs": entry}}
    monkeypatch.setattr(plugins, "_outside", lambda group: found.get(group, {}))
    if installed:
        now = Metric("theirs", "T", "theirs", "up", "T", lambda matrix: 7.0)
        monkeypatch.setattr(plugins, "_imported", lambda *where: now)
    path = save_result(made(), tmp_path)
    graded = json.loads(path.read_text())["metrics"]
    edit(path, metrics={by: values | {"theirs": 12.5} for by, values in graded.items()})
    records = load_records(tmp_path)
    assert records.damaged == []
    assert [one.metrics.by_class.theirs for one in records.results.values()] == [12.5]
    assert is_done(made().spec, tmp_path)  # bench does not make it again


def test_what_is_no_folder_of_results_is_refused(tmp_path) -> None:
    with pytest.raises(InputError, match=r"there is no folder of results .*undrift bench smoke"):
        load_records(tmp_path / "runs")
    path = save_result(made(), tmp_path / "runs")
    with pytest.raises(InputError, match="is a file"):
        load_records(path)
    with pytest.raises(InputError, match=f"folder of one run; .*{tmp_path / 'runs'}$"):
        load_records(result_path(made().spec, tmp_path / "runs").parent)
