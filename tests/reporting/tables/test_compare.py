import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.reporting.conftest import Fakes
from undrift.experiments.result import Result
from undrift.experiments.store import Manifest, PlannedRun, Skipped
from undrift.plugins import Registry
from undrift.reporting.tables import comparison
from undrift.reporting.tables.compare import compare, holm, manifest_of_runs, paired_t_test
from undrift.reporting.tables.comparison import Comparison, ComparisonEntry, Numbers, SeedMean

Scores = Mapping[str, Sequence[float]]


def result(method: str, stream: str, seed: int, score: float, **changes: Any) -> Result:
    spec = {"stream": stream, "method": method, "seed": seed, **changes.pop("spec", {})}
    by = {"a_avg": score, "a_f": score - 10, "a_l": score + 1, "forgetting": 100 - score}
    node = {name: value + 5 for name, value in by.items()}
    seconds, memory = {"train": 1.0 + seed, "total": 2.0 + seed}, 100.0 + seed
    cost = {"seconds": seconds, "peak_memory_mb": memory, "state_mb": 1.5, "threads": 1}
    return Fakes.plain(spec, **{"metrics": {"class": by, "node": node}, "cost": cost} | changes)


def table(scores: Scores, stream: str = "cs-cl", *, methods: Any = None, **how: Any) -> Comparison:
    """A comparison in which row `r` scored `scores[r][seed]`."""
    results, cells = {}, []
    for row, values in scores.items():
        method = (methods or {}).get(row, row)
        for seed, value in enumerate(values):
            run = f"{row}-{seed}"
            results[run] = result(method, stream, seed, value, spec=how.get("spec", {}))
            cells.append(PlannedRun(row=row, method=method, stream=stream, seed=seed, run=run))
    how = {name: value for name, value in how.items() if name != "spec"}
    return compare(results, plan(list(scores), [stream], cells), **how)


def plan(rows: list[str], streams: list[str], cells: list[PlannedRun], **more: Any) -> Manifest:
    fields = {"plan": "p", "title": "T", "rule": "Chosen so.", "rows": rows, "streams": streams}
    return Manifest.model_validate(fields | {"cells": cells} | more)


def cell(row: str = "adr", seed: int = 0, **more: Any) -> PlannedRun:
    fields = {"row": row, "method": row, "stream": "cs-cl", "seed": seed}
    return PlannedRun.model_validate(fields | more)


def one_run(run: Result, *cells: PlannedRun, **more: Any) -> Comparison:
    """The table of a plan in which `run` is the run `r` of ADR."""
    rows = list(dict.fromkeys(each.row for each in cells)) or ["adr"]
    fields = {"streams": ["cs-cl"], "cells": list(cells) or [cell(run="r")]} | more
    return compare({"r": run}, plan(rows, **fields))


def column(found: Comparison, metric: str = "a_avg") -> dict[str, ComparisonEntry]:
    return {row: e for (row, _, name), e in found.entries.items() if name == metric}


def test_mean_deviation_seeds_and_runs() -> None:
    entry = column(table({"adr": [90.0, 92.0, 97.0]}))["adr"]
    assert entry.ours == SeedMean(93.0, stdev([90.0, 92.0, 97.0]))
    assert entry.seeds == (0, 1, 2)
    assert entry.runs == ("adr-0", "adr-1", "adr-2")


def test_bounds_are_not_ranked_and_rows_that_keep_examples_are() -> None:
    found = table({"joint": [99.0], "bare": [10.0], "er-gnn": [95.0], "adr": [90.0], "ewc": [80.0]})
    ranks = {row: entry.rank for row, entry in column(found).items()}
    assert ranks == {"joint": None, "bare": None, "er-gnn": 1, "adr": 2, "ewc": 3}
    assert found.bounds == {"joint", "bare"}
    assert [row for row, keeps in found.keeps_examples.items() if keeps] == ["joint", "er-gnn"]


def test_less_forgetting_is_better() -> None:
    found = table({"adr": [90.0, 91.0], "ewc": [80.0, 84.0]}, metrics=("forgetting",))
    entries = column(found, "forgetting")
    assert entries["adr"].ours.mean < entries["ewc"].ours.mean
    assert (entries["adr"].rank, entries["ewc"].rank) == (1, 2)
    assert entries["ewc"].significance is not None
    assert any("Lower is better for forgetting" in note for note in found.notes)


NONE = {"params": {"merging": "none"}}


@pytest.mark.parametrize(
    ("row", "grading", "spec", "number"),
    [
        ("adr", "class", {}, SeedMean(90.71, 0.22)),
        ("ham", "class", {}, SeedMean(90.71, 0.22)),  # a row of the ablation
        ("none", "class", NONE, SeedMean(52.28, 1.27)),
        ("adr", "node", {}, None),  # what the paper did not run has no number
        ("adr", "class", {"protocol": "local"}, None),
        ("adr", "class", {"params": {"merging": "average"}}, None),
        ("adr nodes=all", "class", {"params": {"nodes": "all"}}, None),
        ("none", "class", {"params": {"merging": "average"}}, None),
    ],
)
def test_the_papers_number(row: str, grading: Any, spec: Any, number: SeedMean | None) -> None:
    found = table({row: [91.0, 93.0]}, methods={row: "adr"}, spec=spec, grading=grading)
    entry = column(found)[row]
    assert entry.ours.mean == (97.0 if grading == "node" else 92.0)
    assert entry.published == number
    assert entry.difference == (None if number is None else 92.0 - number.mean)


def test_imitated_data_never_stands_beside_the_paper() -> None:
    found = one_run(result("adr", "cs-cl", 0, 90.0, provenance={"stand_in": True}))
    assert found.stand_ins == {"cs-cl"}
    assert column(found)["adr"].published is None
    assert any("CS-CL (stand-in)" in note and "imitates" in note for note in found.notes)
    named = table({"adr": [90.0]}, stream="arxiv-cl-stand-in")
    assert named.stand_ins == {"arxiv-cl-stand-in"}


def test_the_test_is_paired_over_shared_seeds_and_corrected() -> None:
    scores = {"adr": [90.0, 92.0, 94.0], "acil": [88.0, 91.0, 92.5], "ewc": [70.0, 75.0, 71.0]}
    entries = column(table(scores))
    adr, *others = scores.values()
    ahead = [[a - b for a, b in zip(adr, other, strict=True)] for other in others]
    raw = dict(zip(("acil", "ewc"), map(paired_t_test, ahead), strict=True))
    expected = holm({row: p for row, p in raw.items() if p is not None})
    assert {row: entries[row].significance for row in raw} == pytest.approx(expected)
    assert entries["adr"].significance is None
    assert entries["ewc"].beaten
    assert not entries["adr"].beaten


def test_a_best_row_that_is_behind_on_shared_seeds_beats_nobody() -> None:
    # the third seed alone makes adr the best
    entries = column(table({"adr": [80.0, 81.0, 99.0], "ewc": [82.0, 83.5]}))
    assert entries["adr"].rank == 1
    assert entries["ewc"].significance is None


def test_costs_are_means_and_what_was_not_measured_is_left_out() -> None:
    found = table({"adr": [90.0, 91.0]})
    means = {"seconds": 2.5, "memory_mb": 100.5, "kept_bytes": 1_500_000.0}
    assert found.costs["adr", "cs-cl"] == means
    cost = {"seconds": {"train": 3.0}, "peak_memory_mb": None, "state_mb": 9.0, "threads": 2}
    found = one_run(result("adr", "cs-cl", 0, 90.0, cost=cost | {"state_bytes": [5, 7]}))
    assert found.costs["adr", "cs-cl"] == {"seconds": 3.0, "kept_bytes": 7.0}


def test_runs_that_are_not_there_leave_no_entry() -> None:
    planned = [cell(run="r"), cell(seed=1, run="lost"), cell("mas")]
    failed = cell("ewc", failed="no memory\nat all")
    found = one_run(result("adr", "cs-cl", 0, 90.0), *planned, failed)
    assert {row: entry.seeds for row, entry in column(found).items()} == {"adr": (0,)}
    assert "Failed: EWC on CS-CL (seed 0): no memory" in found.notes
    assert "No finished run on CS-CL: ADR (seed 1), MAS (seed 0)." in found.notes


def test_a_run_that_failed_and_was_repeated_counts() -> None:
    found = one_run(result("adr", "cs-cl", 0, 90.0), cell(run="r", failed="no memory"))
    assert column(found)["adr"].runs == ("r",)
    assert not any("Failed" in note or "No finished" in note for note in found.notes)


def test_a_skipped_stream_is_a_note_and_no_column() -> None:
    gone = Skipped(stream="reddit-cl", why="its files are not there")
    streams = ["cs-cl", "reddit-cl", "dblp-cl"]
    found = one_run(result("adr", "cs-cl", 0, 90.0), streams=streams, skipped=[gone])
    assert found.streams == ["cs-cl", "dblp-cl"]
    assert "Reddit-CL was skipped: its files are not there." in found.notes


def test_a_plan_without_runs_gives_an_empty_table() -> None:
    found = compare({}, plan([], [], []))
    assert found.entries == {}
    assert found.notes[0] == "No run of this table is finished."


ROWS = ("joint", "ewc", "mas", "acil", "adr")
HEIGHTS = st.lists(st.sampled_from([50.0, 50.001, 60.0, 75.5, 100.0]), min_size=1, max_size=4)
SCORES = st.dictionaries(st.sampled_from(ROWS), HEIGHTS)


@settings(deadline=None, max_examples=80, derandomize=True)
@given(SCORES)
def test_ranks_and_p_values_of_any_column(scores: dict[str, list[float]]) -> None:
    entries = column(table(scores, stream="dblp-cl"))
    ranked = {row: entry for row, entry in entries.items() if row != "joint"}
    shown = {row: round(entry.ours.mean, 2) for row, entry in ranked.items()}
    assert set(entries) == set(scores)
    assert min((entry.rank for entry in ranked.values()), default=1) == 1
    for row, entry in ranked.items():
        assert entry.ours.mean == pytest.approx(fmean(scores[row]))
        assert (entry.rank == 1) == (shown[row] == max(shown.values()))
        for other, its in ranked.items():
            assert (shown[row] == shown[other]) == (entry.rank == its.rank)
    for entry in entries.values():
        numbers = [entry.ours.mean, entry.ours.deviation, entry.significance]
        assert all(math.isfinite(number) for number in numbers if number is not None)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.lists(st.floats(-50, 50).map(lambda x: round(x, 4)), min_size=2, max_size=8))
def test_it_is_the_paired_t_test_of_scipy(differences: list[float]) -> None:
    ours = paired_t_test(differences)
    assert ours == paired_t_test([-value for value in differences])
    if len(set(differences)) == 1:
        assert ours == (1.0 if differences[0] == 0 else None)
    else:
        theirs = stats.ttest_rel(differences, [0.0] * len(differences)).pvalue
        assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-15)


def test_without_two_seeds_or_without_deviation_there_is_no_test() -> None:
    assert paired_t_test([]) is None
    assert paired_t_test([3.0]) is None
    assert paired_t_test([0.1 + 0.2, 0.3, 0.3]) is None  # the same but for rounding
    assert paired_t_test([1e-12, -1e-12]) == 1.0  # nothing but rounding


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1), max_size=8))
def test_holm_raises_keeps_order_and_stays_a_probability(values: dict[str, float]) -> None:
    corrected = holm(values)
    assert corrected.keys() == values.keys()
    for a, p in values.items():
        assert p <= corrected[a] <= 1
        assert corrected[a] <= min(1.0, len(values) * p)  # never more than Bonferroni
        for b, other in values.items():
            assert p > other or corrected[a] <= corrected[b]
    assert holm({"x": 0.02, "y": 0.001, "z": 0.5}) == {"x": 0.04, "y": 0.003, "z": 0.5}


def noted(seeds: dict[str, int], *cells: PlannedRun, **more: Any) -> list[str]:
    """The notes under a table whose rows have so many seeds."""
    entries = {row: Fakes.entry(seeds=tuple(range(n)), **more) for row, n in seeds.items()}
    found = {(row, "cs-cl", "a_avg"): entry for row, entry in entries.items()}
    return comparison.notes_of(Fakes.table(found), plan(["adr"], ["cs-cl"], list(cells)), [])


def test_seeds_that_all_cells_share_are_named() -> None:
    assert noted({"adr": 5, "ewc": 5})[0].endswith("over seeds 0-4.")
    assert "the seeds that finished, at most 5" in noted({"adr": 5, "ewc": 3})[0]
    assert noted({"adr": 1})[0].endswith(", seed 0.")
    assert "Chosen so." in noted({"adr": 1})  # the rule, as it was written


def test_failures_are_named_once_and_cut_short() -> None:
    notes = noted({}, *(cell(seed=seed, failed="no memory") for seed in range(5)))
    assert notes[-1] == "Failed: ADR on CS-CL (seed 0-4): no memory"
    cells = [cell(seed=seed, failed=f"reason {seed} " + "x" * 300) for seed in range(12)]
    notes = [note for note in noted({}, *cells) if note.startswith("Failed")]
    assert len(notes) == 9
    assert notes[-1] == "Failed: 4 more runs."
    assert max(map(len, notes)) < 220
    assert noted({}, cell(failed="\n"))[-1].endswith("no message")


def test_published_numbers_have_a_source_and_notes(monkeypatch) -> None:
    numbers = Numbers(lambda *_: None, "Doe 2030", {"cs-": "CS is small."})
    monkeypatch.setattr(comparison, "PUBLISHED", Registry("numbers", "none", {"doe": numbers}))
    notes = noted({"adr": 2}, published=SeedMean(90.0, 1.0))
    assert "Doe 2030" in next(note for note in notes if note.startswith("Paper:"))
    assert "CS is small." in notes


def runs(*specs: dict[str, Any]) -> dict[str, Result]:
    return {result.spec.id: result for result in map(Fakes.plain, specs)}


ALPHAS: list[dict[str, Any]] = [{"params": {"epochs": 9, "alpha": a}} for a in (16, 4, 1.0)]
FILE = {"stream": "x/stream.toml"}


@pytest.mark.parametrize(
    ("specs", "rows", "rule"),
    [
        ([{"params": {"alpha": 4}}, {"method": "ewc"}], ["ewc", "adr"], "run: adr alpha=4."),
        (ALPHAS, ["adr alpha=1", "adr alpha=4", "adr alpha=16"], "run: adr epochs=9."),
        ([{}, {"device": "cuda"}], ["adr", "adr device=cuda"], "defaults."),
        ([{"device": "cuda"}], ["adr"], "run: adr device=cuda."),
    ],
)
def test_rows_name_what_differs_the_rule_the_rest(specs: Any, rows: list[str], rule: str) -> None:
    manifest = manifest_of_runs(runs(*specs, specs[0] | {"seed": 1}))
    assert manifest.rows == rows
    assert [cell.seed for cell in manifest.cells].count(1) == 1
    assert manifest.rule.endswith(rule)


def test_streams_stand_in_the_order_of_their_list_and_a_changed_file_is_two() -> None:
    names = ("dblp-cl", "arxiv-cl@directed", "cs-cl", "arxiv-cl")
    files = [FILE | {"stream_sha256": letter * 64} for letter in "ab"]
    manifest = manifest_of_runs(runs(*files, *({"stream": name} for name in names)))
    ordered = ["cs-cl", "arxiv-cl", "arxiv-cl@directed", "dblp-cl"]
    assert manifest.streams == [*ordered, "x/stream.toml#aaaaaaaa", "x/stream.toml#bbbbbbbb"]
    assert manifest_of_runs(runs(files[0])).streams == ["x/stream.toml"]


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
