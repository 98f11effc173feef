from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reporting.conftest import Fakes
from undrift.experiments.result import Result
from undrift.reporting.tables.compare import compare
from undrift.reporting.tables.loose_runs import manifest_of_runs


def runs(*specs: dict[str, Any]) -> dict[str, Result]:
    return {result.spec.id: result for result in map(Fakes.plain, specs)}


def test_one_setting_is_one_row_and_the_rule_names_it() -> None:
    manifest = manifest_of_runs(
        runs({"params": {"alpha": 4}}, {"params": {"alpha": 4}, "seed": 1}, {"method": "ewc"})
    )
    assert manifest.rows == ["ewc", "adr"]  # the order of `undrift methods`
    assert [cell.seed for cell in manifest.cells if cell.row == "adr"] == [0, 1]
    assert manifest.rule.endswith("in every run: adr alpha=4.")


def test_several_settings_are_rows_that_name_what_differs() -> None:
    specs = [{"params": {"epochs": 9, "alpha": alpha}} for alpha in (16, 4, 1.0)]
    manifest = manifest_of_runs(runs(*specs, {"params": {"epochs": 9}}))
    assert manifest.rows == ["adr", "adr alpha=1", "adr alpha=4", "adr alpha=16"]
    assert "adr epochs=9" in manifest.rule


def test_a_merging_rule_and_a_protocol_are_named_even_alone() -> None:
    manifest = manifest_of_runs(runs({"params": {"merging": "none"}}))
    assert manifest.rows == ["adr merging=none"]
    assert manifest_of_runs(runs({"protocol": "local"})).rows == ["adr protocol=local"]


def test_the_ablation_run_by_hand_meets_the_paper() -> None:
    results = runs({}, {"params": {"merging": "none"}})
    table = compare(results, manifest_of_runs(results))
    published = {row: entry.published for (row, _, m), entry in table.entries.items() if m == "a_f"}
    assert {row: number and number.mean for row, number in published.items()} == {
        "adr": 87.21,
        "adr merging=none": 36.63,
    }
    assert table.labels["adr merging=none"] == "ADR merging=none"


def test_a_device_splits_rows_only_where_it_differs() -> None:
    assert manifest_of_runs(runs({"device": "cuda"})).rows == ["adr"]
    assert manifest_of_runs(runs({}, {"device": "cuda"})).rows == ["adr", "adr device=cuda"]


def test_streams_stand_in_the_order_of_their_list() -> None:
    names = ["x/stream.toml", "dblp-cl", "arxiv-cl@directed", "cs-cl", "arxiv-cl"]
    specs = [
        {"stream": name, **({"stream_sha256": "a" * 64} if "/" in name else {})} for name in names
    ]
    manifest = manifest_of_runs(runs(*specs))
    ordered = ["cs-cl", "arxiv-cl", "arxiv-cl@directed", "dblp-cl", "x/stream.toml"]
    assert manifest.streams == ordered


def test_a_stream_file_that_changed_is_two_columns() -> None:
    specs = [{"stream": "x/stream.toml", "stream_sha256": letter * 64} for letter in "ab"]
    columns = ["x/stream.toml#aaaaaaaa", "x/stream.toml#bbbbbbbb"]
    assert manifest_of_runs(runs(*specs)).streams == columns


VALUES = st.sampled_from([None, "none", "None", 1, 1.5, "1", True, (1, 2), (1,), "1,2"])
SPECS = st.fixed_dictionaries(
    {
        "method": st.sampled_from(["adr", "ewc"]),
        "seed": st.integers(0, 1),
        "protocol": st.sampled_from(["global", "local"]),
        "params": st.dictionaries(st.sampled_from(["a", "b", "merging"]), VALUES, max_size=2),
    }
)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.lists(SPECS, max_size=8))
def test_every_run_has_a_cell_of_its_own(specs: list[dict[str, Any]]) -> None:
    results = runs(*specs)
    manifest = manifest_of_runs(results)
    places = {(cell.row, cell.stream, cell.seed): cell.run for cell in manifest.cells}
    assert sorted(run for run in places.values() if run) == sorted(results)
    assert {cell.row for cell in manifest.cells} == set(manifest.rows)
    assert len(set(manifest.rows)) == len(manifest.rows)
