from __future__ import annotations

from typing import Any

import pytest

from undrift.reporting.tables.comparison import Comparison, Entry, Spread
from undrift.reporting.tables.layout import accuracy_blocks, cost_blocks, cost_text, legend, titles

STREAMS = ["cs-cl", "arxiv-cl", "dblp-cl", "photo-cl", "coraml-cl", "citeseer-cl", "physics-cl"]


def table(streams: list[str], paper: tuple[str, ...] = (), **changes: Any) -> Comparison:
    def entry(stream: str) -> Entry:
        number = Spread(89.0, 1.0) if stream in paper else None
        return Entry(Spread(90.0, 1.0), (0,), ("r",), 1, number, 1.0 if number else None)

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


def test_many_streams_are_split_into_blocks_in_order() -> None:
    blocks = accuracy_blocks(table(STREAMS), width=8)
    assert [len(block.columns) for block in blocks] == [8, 6]
    assert [stream for block in blocks for stream in block.streams] == STREAMS


def test_the_paper_gets_columns_only_where_it_has_numbers() -> None:
    (block,) = accuracy_blocks(table(STREAMS[:3], paper=("cs-cl",)))
    kinds = [(column.stream, column.kind, column.what) for column in block.columns]
    assert kinds[:5] == [
        ("cs-cl", "ours", "a_avg"),
        ("cs-cl", "paper", "a_avg"),
        ("cs-cl", "ours", "a_f"),
        ("cs-cl", "paper", "a_f"),
        ("arxiv-cl", "ours", "a_avg"),
    ]
    assert [block.width(stream) for stream in block.streams] == [4, 2, 2]


@pytest.mark.parametrize("width", [1, 2, 3, 5, 20])
def test_a_stream_is_never_cut_in_two(width: int) -> None:
    blocks = accuracy_blocks(table(STREAMS, paper=("arxiv-cl",)), width=width)
    placed = [stream for block in blocks for stream in block.streams]
    assert placed == STREAMS
    assert all(len(block.columns) <= width or len(block.streams) == 1 for block in blocks)


def test_costs_that_no_run_measured_have_no_column() -> None:
    (block,) = cost_blocks(table(STREAMS[:2]))
    assert [column.what for column in block.columns] == ["seconds", "kept_bytes"] * 2
    assert cost_blocks(table(STREAMS, costs={})) == []


def test_no_stream_no_block() -> None:
    assert accuracy_blocks(table([])) == []


def test_stand_ins_are_named_in_titles() -> None:
    found = titles(table(["cs-cl", "dblp-cl"], stand_ins=frozenset({"cs-cl"})))
    assert found == {"cs-cl": "CS-CL (stand-in)", "dblp-cl": "DBLP-CL"}


def test_a_cost_of_nothing_is_written_too() -> None:
    assert cost_text("kept_bytes", 0.0) == "0 B"
    assert cost_text("seconds", 0.0) == "0.0"
    assert cost_text("memory_mb", None) is None


def test_the_legend_names_the_marks_that_occur() -> None:
    whole = table(["cs-cl"])
    assert legend(whole) == []
    worse = Entry(Spread(90.0, 1.0), (0,), ("r",), 2, significance=0.01)
    marked = table(
        ["cs-cl"], entries={("adr", "cs-cl", "a_avg"): worse}, keeps_examples={"adr": True}
    )
    assert [mark for mark, _ in legend(marked)] == ["*", "†", "–"]
