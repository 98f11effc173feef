from __future__ import annotations

from typing import Any

import pytest

from undrift.reporting.tables.comparison import Comparison, ComparisonEntry, Spread
from undrift.reporting.tables.formats import (
    Grid,
    Markup,
    accuracy_grids,
    cost_grids,
    cost_text,
    legend,
)

PLAIN = Markup(str, "%s_%s", "-", "+-", "%s!", "%s?", "*", "+", "%s")

STREAMS = ["cs-cl", "arxiv-cl", "dblp-cl", "photo-cl", "coraml-cl", "citeseer-cl", "physics-cl"]


def table(streams: list[str], paper: tuple[str, ...] = (), **changes: Any) -> Comparison:
    def entry(stream: str) -> ComparisonEntry:
        number = Spread(89.0, 1.0) if stream in paper else None
        return ComparisonEntry(Spread(90.0, 1.0), (0,), ("r",), 1, number)

    fields: dict[str, Any] = {
        "title": "T",
        "rows": ["adr"],
        "labels": {"adr": "ADR"},
        "streams": streams,
        "metrics": ["a_avg", "a_f"],
        "entries": {("adr", s, m): entry(s) for s in streams for m in ("a_avg", "a_f")},
        "costs": {("adr", s): {"seconds": 1.0, "kept_bytes": 5.0} for s in streams},
        "keeps_examples": {"adr": False},
        "stand_ins": frozenset(),
        "notes": (),
    }
    return Comparison(**(fields | changes))


def titles(grids: list[Grid]) -> list[str]:
    return [title for grid in grids for title, _ in grid.streams]


ALL = ["CS-CL", "Arxiv-CL", "DBLP-CL", "Photo-CL", "CoraML-CL", "CiteSeer-CL", "Physics-CL"]


def test_many_streams_are_split_in_order() -> None:
    grids = accuracy_grids(table(STREAMS), PLAIN, width=8)
    assert [len(grid.names) for grid in grids] == [8, 6]
    assert titles(grids) == ALL


def test_the_paper_gets_columns_only_where_it_has_numbers() -> None:
    (grid,) = accuracy_grids(table(STREAMS[:3], paper=("cs-cl",)), PLAIN)
    assert grid.names[:5] == ["A_avg", "paper", "A_f", "paper", "A_avg"]
    assert [width for _, width in grid.streams] == [4, 2, 2]
    assert grid.lines[0][:3] == ["ADR", "90.00 +- 1.00!", "89.00 (+1.00)"]


@pytest.mark.parametrize("width", [1, 2, 3, 5, 20])
def test_a_stream_is_never_cut_in_two(width: int) -> None:
    grids = accuracy_grids(table(STREAMS, paper=("arxiv-cl",)), PLAIN, width=width)
    assert titles(grids) == ALL
    assert all(len(grid.names) <= width or len(grid.streams) == 1 for grid in grids)


def test_costs_that_no_run_measured_have_no_column() -> None:
    (grid,) = cost_grids(table(STREAMS[:2]), PLAIN)
    assert grid.names == ["seconds", "kept"] * 2
    assert grid.lines == [["ADR", "no", "1.0", "5 B", "1.0", "5 B"]]
    assert cost_grids(table(STREAMS, costs={}), PLAIN) == []


def test_no_stream_no_grid() -> None:
    assert accuracy_grids(table([]), PLAIN) == []


def test_stand_ins_are_named_in_titles() -> None:
    found = accuracy_grids(table(["cs-cl", "dblp-cl"], stand_ins=frozenset({"cs-cl"})), PLAIN)
    assert titles(found) == ["CS-CL (stand-in)", "DBLP-CL"]


def test_a_cost_of_nothing_is_written_too() -> None:
    assert cost_text("kept_bytes", 0.0) == "0 B"
    assert cost_text("seconds", 0.0) == "0.0"
    assert cost_text("memory_mb", None) is None


def test_the_legend_names_the_marks_that_occur() -> None:
    whole = table(["cs-cl"])
    assert legend(whole) == []
    worse = ComparisonEntry(Spread(90.0, 1.0), (0,), ("r",), 2, significance=0.01)
    marked = table(
        ["cs-cl"], entries={("adr", "cs-cl", "a_avg"): worse}, keeps_examples={"adr": True}
    )
    assert [mark for mark, _ in legend(marked)] == ["*", "†", "–"]
