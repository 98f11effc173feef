from __future__ import annotations

from typing import Any

import pytest

from undrift.experiments.manifest import Manifest, PlannedRun
from undrift.plugins import Registry
from undrift.reporting.tables import comparison
from undrift.reporting.tables.comparison import Comparison, ComparisonEntry, Numbers, Spread
from undrift.reporting.tables.notes import notes_of


def table(**changes: Any) -> Comparison:
    fields: dict[str, Any] = {
        "title": "T",
        "rows": ["adr", "ewc"],
        "labels": {"adr": "ADR", "ewc": "EWC"},
        "streams": ["cs-cl"],
        "metrics": ["a_avg"],
        "entries": {},
        "costs": {},
        "keeps_examples": {},
        "stand_ins": frozenset(),
        "notes": (),
    }
    return Comparison(**(fields | changes))


def entry(seeds: int, **more: Any) -> ComparisonEntry:
    names = tuple(str(seed) for seed in range(seeds))
    return ComparisonEntry(Spread(90.0, 1.0), tuple(range(seeds)), names, **more)


def plan(*cells: PlannedRun, rule: str = "") -> Manifest:
    return Manifest(
        plan="p", title="T", rule=rule, rows=["adr"], streams=["cs-cl"], cells=list(cells)
    )


def failed(seed: int, why: str, stream: str = "cs-cl") -> PlannedRun:
    return PlannedRun(row="adr", method="adr", stream=stream, seed=seed, failed=why)


def test_seeds_that_all_cells_share_are_named() -> None:
    entries = {("adr", "cs-cl", "a_avg"): entry(5), ("ewc", "cs-cl", "a_avg"): entry(5)}
    assert notes_of(table(entries=entries), plan(), [])[0].endswith("over seeds 0-4.")
    entries["ewc", "cs-cl", "a_avg"] = entry(3)
    assert "the seeds that finished, at most 5" in notes_of(table(entries=entries), plan(), [])[0]
    one = {("adr", "cs-cl", "a_avg"): entry(1)}
    assert notes_of(table(entries=one), plan(), [])[0].endswith(", seed 0.")


def test_the_test_is_stated_with_its_reason() -> None:
    entries = {("ewc", "cs-cl", "a_avg"): entry(5, rank=2, significance=0.01)}
    text = " ".join(notes_of(table(entries=entries), plan(), []))
    for words in ("paired t-test", "two-sided", "Holm", "5 seeds", "0.0625"):
        assert words in text
    entries = {("ewc", "cs-cl", "a_avg"): entry(6, rank=2, significance=0.01)}
    assert "sign-flip" not in " ".join(notes_of(table(entries=entries), plan(), []))


def test_the_rule_stands_as_it_was_written() -> None:
    assert "By validation, 28 settings each." in notes_of(
        table(), plan(rule="By validation, 28 settings each."), []
    )


def test_failures_with_one_reason_are_one_note() -> None:
    notes = notes_of(table(), plan(*(failed(seed, "no memory") for seed in range(5))), [])
    assert notes[-1] == "Failed: ADR on CS-CL (seed 0-4): no memory"


def test_many_failures_are_counted_and_long_ones_cut() -> None:
    cells = [failed(seed, f"reason {seed} " + "x" * 300) for seed in range(12)]
    notes = [note for note in notes_of(table(), plan(*cells), []) if note.startswith("Failed")]
    assert len(notes) == 9
    assert notes[-1] == "Failed: 4 more runs."
    assert max(map(len, notes)) < 220


def test_an_error_without_a_message_still_makes_a_note() -> None:
    assert notes_of(table(), plan(failed(0, "\n")), [])[-1].endswith("no message")


def test_published_numbers_name_their_source_and_what_is_to_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = Numbers(lambda *_: None, "Doe 2030", {"cs-": "CS is small."})
    monkeypatch.setattr(comparison, "PUBLISHED", Registry("numbers", "none", {"doe": numbers}))
    cells = {("adr", "cs-cl", "a_avg"): entry(2, published=Spread(90.0, 1.0))}
    notes = notes_of(table(entries=cells), plan(), [])
    assert "Doe 2030" in next(note for note in notes if note.startswith("Paper:"))
    assert "CS is small." in notes
