from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from undrift.reporting.tables.comparison import Comparison, ComparisonEntry, Spread
from undrift.reporting.tables.formats import escape_markdown, markdown_table

PAPER: dict[str, Any] = {"published": Spread(90.71, 0.22)}


def table(entries: dict[tuple[str, str, str], ComparisonEntry], **changes: Any) -> Comparison:
    rows = list(dict.fromkeys(row for row, _, _ in entries))
    streams = list(dict.fromkeys(stream for _, stream, _ in entries))
    fields: dict[str, Any] = {
        "title": "A table",
        "rows": rows,
        "labels": {row: row.upper() for row in rows},
        "streams": streams,
        "metrics": ["a_avg"],
        "entries": entries,
        "costs": {},
        "keeps_examples": dict.fromkeys(rows, False),
        "stand_ins": frozenset(),
        "notes": ["A note."],
    }
    return Comparison(**(fields | changes))


def entry(mean: float, deviation: float | None = 1.0, **more: Any) -> ComparisonEntry:
    return ComparisonEntry(Spread(mean, deviation), (0,), ("r",), **more)


def line(text: str, start: str) -> list[str]:
    (found,) = [line for line in text.splitlines() if line.startswith(f"| {start}")]
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_best_second_mark_and_paper() -> None:
    text = markdown_table(
        table(
            {
                ("adr", "cs-cl", "a_avg"): entry(90.0, rank=1, **PAPER),
                ("acil", "cs-cl", "a_avg"): entry(89.0, rank=2, significance=0.2),
                ("ewc", "cs-cl", "a_avg"): entry(70.0, None, rank=3, significance=0.001),
            }
        )
    )
    assert line(text, "ADR") == ["ADR", "**90.00 ± 1.00**", "90.71 (-0.71)"]
    assert line(text, "ACIL") == ["ACIL", "<u>89.00 ± 1.00</u>", ""]
    assert line(text, "EWC") == ["EWC", "70.00 \\*", ""]
    assert "- \\* the best of the column is better" in text
    assert text.startswith("## A table\n\n| ")
    assert text.endswith("- A note.\n")


def test_a_cell_without_a_run_is_a_dash_that_is_explained() -> None:
    found = table({("adr", "cs-cl", "a_avg"): entry(90.0)}, rows=["adr", "ewc"])
    text = markdown_table(found)
    assert line(text, "ewc") == ["ewc", "–"]
    assert "- – no number" in text


def test_stand_ins_are_named_over_every_column() -> None:
    found = table(
        {("adr", "cs-cl", "a_avg"): entry(90.0)},
        stand_ins=frozenset({"cs-cl"}),
        costs={("adr", "cs-cl"): {"seconds": 2.0, "kept_bytes": 9.0, "memory_mb": 3.0}},
    )
    headers = [line for line in markdown_table(found).splitlines() if line.startswith("|  |")]
    assert [header.count("stand-in") for header in headers] == [1, 3]


def test_costs_and_who_keeps_examples() -> None:
    found = table(
        {("adr", "cs-cl", "a_avg"): entry(90.0), ("cat", "cs-cl", "a_avg"): entry(80.0)},
        keeps_examples={"adr": False, "cat": True},
        costs={("adr", "cs-cl"): {"seconds": 12.3, "kept_bytes": 2e6}},
    )
    text = markdown_table(found)
    _, cost = text.split("### Cost")
    assert line(cost, "ADR") == ["ADR", "no", "12", "2.0 MB"]
    assert line(cost, "CAT") == ["CAT †", "yes", "–", "–"]


def test_many_streams_make_several_tables_with_every_row() -> None:
    streams = ["cs-cl", "dblp-cl", "photo-cl", "coraml-cl", "citeseer-cl", "physics-cl"]
    streams += ["computers-cl", "synthetic", "arxiv-cl", "reddit-cl"]
    text = markdown_table(table({("adr", stream, "a_avg"): entry(90.0) for stream in streams}))
    rows = [line for line in text.splitlines() if line.startswith("| ADR")]
    assert [row.count("90.00") for row in rows] == [8, 2]


def test_an_empty_table_keeps_its_notes() -> None:
    text = markdown_table(table({}, notes=["No run of this table is finished."]))
    assert text == "## A table\n\n- No run of this table is finished.\n"


TEXT = st.text(alphabet="ab|*_<>&`\\[]~$ \n\t#é", max_size=12)


@settings(deadline=None, max_examples=80, derandomize=True)
@given(TEXT, TEXT)
def test_no_name_breaks_the_table(label: str, title: str) -> None:
    found = table({("adr", "cs-cl", "a_avg"): entry(90.0)}, labels={"adr": label}, title=title)
    lines = [line for line in markdown_table(found).splitlines() if line.startswith("|")]
    assert len(lines) == 3
    for one in lines:  # a pipe that is not escaped parts cells
        bare = one.replace("\\\\", "").replace("\\|", "")
        assert bare.count("|") == 3


@settings(deadline=None, max_examples=80, derandomize=True)
@given(TEXT)
def test_escaped_text_has_no_live_markdown(text: str) -> None:
    escaped = escape_markdown(text)
    assert "\n" not in escaped
    assert not set("<>") & set(escaped)
    rest = escaped
    for char in "\\`*_[]|~$":  # backslashes first: an escaped one escapes nothing
        rest = rest.replace(f"\\{char}", "")
    assert not set("\\`*_[]|~$") & set(rest)
