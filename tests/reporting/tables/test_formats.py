"""One layout in three forms: Markdown, LaTeX and CSV."""

import csv
import io
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reporting.conftest import Fakes
from undrift.evaluation.metrics import METRICS
from undrift.reporting import names
from undrift.reporting.tables.comparison import Comparison, SeedMean
from undrift.reporting.tables.formats import (
    Markup,
    accuracy_grids,
    cost_grids,
    cost_text,
    csv_table,
    escape_markdown,
    latex_document,
    markdown_table,
)

PLAIN = Markup(str, "%s_%s", "-", "+-", "%s!", "%s?", "*", "+", "%s")
STREAMS = ["cs-cl", "arxiv-cl", "dblp-cl", "photo-cl", "coraml-cl", "citeseer-cl", "physics-cl"]
TITLES = ["CS-CL", "Arxiv-CL", "DBLP-CL", "Photo-CL", "CoraML-CL", "CiteSeer-CL", "Physics-CL"]
entry = Fakes.entry


def table(streams: list[str] | None = None, **changes: Any) -> Comparison:
    """Five rows on some streams: a bound, the best, the second, a beaten one, one without runs."""
    entries = {}
    for stream in ["cs-cl"] if streams is None else streams:
        paper = SeedMean(90.71, 0.22) if stream in ("cs-cl", "arxiv-cl") else None
        entries["joint", stream, "a_avg"] = entry(95.0)
        entries["adr", stream, "a_avg"] = entry(90.0, rank=1, published=paper)
        entries["acil", stream, "a_avg"] = entry(89.0, None, rank=2, significance=0.2)
        entries["ewc", stream, "a_avg"] = entry(70.0, rank=3, significance=0.001)
    spent = {"seconds": 12.3, "memory_mb": 3.0, "kept_bytes": 2e6}
    labels = {"joint": "Joint", "adr": "ADR", "acil": "ACIL", "ewc": "EWC", "mas": "MAS a_b"}
    fields: dict[str, Any] = {"rows": list(labels), "labels": labels, "bounds": {"joint"}}
    fields["costs"] = {("adr", stream): spent for _, stream, _ in entries}
    return Fakes.table(entries, **(fields | {"keeps_examples": {"joint": True}} | changes))


def cells(text: str, start: str, between: str = "|") -> list[str]:
    lines = (line.strip("| ") for line in text.splitlines())
    line = next(line for line in lines if line.startswith(start))
    return [cell.strip() for cell in line.removesuffix(r"\\").split(between)]


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8, 20])
def test_streams_are_packed_in_order_and_never_cut_in_two(width: int) -> None:
    grids = accuracy_grids(table(STREAMS), PLAIN, width=width)
    assert [title for grid in grids for title, _ in grid.streams] == TITLES
    assert all(len(grid.names) <= width or len(grid.streams) == 1 for grid in grids)
    if width == 8:
        assert [len(grid.names) for grid in grids] == [8, 1]


def test_the_paper_gets_columns_only_where_it_has_numbers() -> None:
    (grid,) = accuracy_grids(table(STREAMS[:3]), PLAIN)
    assert grid.names == ["A_avg", "paper", "A_avg", "paper", "A_avg"]
    assert [width for _, width in grid.streams] == [2, 2, 1]
    assert grid.lines[1][:3] == ["ADR", "90.00 +- 1.00!", "90.71 (-0.71)"]
    assert accuracy_grids(table([]), PLAIN) == []


def test_costs_that_no_run_measured_have_no_column() -> None:
    costs = {("adr", stream): {"seconds": 1.0, "kept_bytes": 5.0} for stream in STREAMS[:2]}
    (grid,) = cost_grids(table(STREAMS[:2], costs=costs), PLAIN)
    assert grid.names == ["seconds", "kept"] * 2
    assert grid.lines[1] == ["ADR", "no", "1.0", "5 B", "1.0", "5 B"]
    assert cost_grids(table(STREAMS, costs={}), PLAIN) == []
    found = [cost_text("kept_bytes", 0.0), cost_text("seconds", 0.0), cost_text("memory_mb", None)]
    assert found == ["0 B", "0.0", None]


def test_markdown_best_second_mark_and_paper() -> None:
    text, cost = markdown_table(table()).split("### Cost")
    assert cells(text, "ADR") == ["ADR", "**90.00 ± 1.00**", "90.71 (-0.71)"]
    assert cells(text, "ACIL") == ["ACIL", "<u>89.00</u>"]
    assert cells(text, "EWC") == ["EWC", "70.00 ± 1.00 \\*"]
    assert cells(text, "MAS") == ["MAS a\\_b", "–"]
    assert text.startswith("## A table\n\n| ")
    assert cells(cost, "ADR") == ["ADR", "no", "12", "3.0", "2.0 MB"]
    assert cells(cost, "Joint") == ["Joint †", "yes", "–", "–", "–"]
    for note in ("- \\* the best of the column", "- – no number", "- A note: 100 % sure.\n"):
        assert note in cost


def test_stand_ins_are_named_over_every_column() -> None:
    imitated = table(stand_ins=frozenset({"cs-cl"}))
    headers = [line for line in markdown_table(imitated).splitlines() if line.startswith("|  |")]
    assert [header.count("stand-in") for header in headers] == [1, 3]
    assert latex_document(imitated).count("{CS-CL (stand-in)}") == 2


def test_an_empty_table_keeps_its_notes() -> None:
    text = markdown_table(Fakes.table({}, notes=["No run of this table is finished."]))
    assert text == "## A table\n\n- No run of this table is finished.\n"


TEXT = st.text(alphabet="ab|*_<>&`\\[]~$ \n\t#é", max_size=12)


@settings(deadline=None, max_examples=80, derandomize=True)
@given(TEXT, TEXT)
def test_no_name_breaks_a_markdown_table(label: str, title: str) -> None:
    found = Fakes.table({("adr", "cs-cl", "a_avg"): entry()}, labels={"adr": label}, title=title)
    lines = [line for line in markdown_table(found).splitlines() if line.startswith("|")]
    assert len(lines) == 3
    for one in lines:  # a pipe that is not escaped parts cells
        assert one.replace("\\\\", "").replace("\\|", "").count("|") == 3
    escaped = escape_markdown(label)
    assert not set("<>\n") & set(escaped)
    for char in "\\`*_[]|~$":  # backslashes first: an escaped one escapes nothing
        escaped = escaped.replace(f"\\{char}", "")
    assert not set("\\`*_[]|~$") & set(escaped)


def check_structure(text: str) -> None:
    """Environments and braces close in order, and every line of a table has all its columns."""
    open_ones: list[str] = []
    for what, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if what == "begin":
            open_ones.append(name)
        else:
            assert open_ones.pop() == name
    assert not open_ones
    bare = re.sub(r"(?<!\\)%.*", "", text.replace(r"\\", "").replace(r"\{", "").replace(r"\}", ""))
    assert bare.count("{") == bare.count("}")
    assert bare.replace(r"\$", "").count("$") % 2 == 0
    for sides, body in re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", text, re.S):
        lines = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert lines
        for line in lines:
            spans = [int(width) for width in re.findall(r"\\multicolumn\{(\d+)\}", line)]
            parts = len(re.findall(r"(?<!\\)&", line)) + 1
            assert parts - len(spans) + sum(spans) == len(sides)


def test_latex_best_second_mark_paper_and_bounds() -> None:
    text = latex_document(table(costs={}))
    assert cells(text, "ADR", "&")[1:] == [r"\textbf{90.00 $\pm$ 1.00}", "90.71 ($-0.71$)"]
    assert cells(text, "ACIL", "&")[1:] == [r"\underline{89.00}", ""]
    assert cells(text, "EWC", "&")[1:] == [r"70.00 $\pm$ 1.00\rlap{$^{\ast}$}", ""]
    assert cells(text, "MAS", "&")[:2] == [r"MAS a\_b", "--"]
    assert cells(text, "Joint", "&")[0] == r"Joint$^{\dagger}$"
    assert r"A note: 100 \% sure." in text
    lines = text.splitlines()
    joint = next(at for at, line in enumerate(lines) if line.startswith("Joint"))
    assert lines[joint - 1] == lines[joint + 1] == r"\midrule"
    assert lines.count(r"\midrule") == 2


def test_the_symbol_of_a_metric_is_text(monkeypatch) -> None:
    odd = {"a_avg": replace(METRICS["a_avg"], symbol="50%_a_b"), "a_f": METRICS["a_f"]}
    monkeypatch.setattr(names, "METRICS", odd)
    assert r"$\mathcal{50\%}_{a\_b}$" in latex_document(table())
    assert "CS-CL 50%_a\\_b |" in markdown_table(table())


def test_many_streams_are_numbered_tables_and_notes_stand_once() -> None:
    text = latex_document(table(STREAMS))
    captions = re.findall(r"\\caption\{(.*)\}", text)
    assert captions[:2] == ["A table (1 of 2)", "A table (2 of 2)"]
    assert captions[2:] == [f"A table: cost ({at} of 3)" for at in (1, 2, 3)]
    assert text.count("A note") == 1
    check_structure(text)
    check_structure(latex_document(table([])))


@settings(deadline=None, max_examples=80, derandomize=True)
@given(st.text(alphabet="ab[]*&%$#_{}~^\\<>|\"'`- \n\té×数🙂", max_size=12))
def test_no_name_breaks_the_structure_of_latex(name: str) -> None:
    check_structure(latex_document(table(title=name, labels={"adr": name}, notes=[name])))


def test_csv_has_a_line_per_row_stream_and_metric_with_every_number_in_full() -> None:
    where: dict[str, Any] = {"seeds": (0, 1, 4), "runs": ("aa", "bb", "cc")}
    best = entry(91.123456789, 0.5, rank=1, published=SeedMean(90.71, 0.22), **where)
    second = entry(80.0, None, rank=2, significance=0.0125)
    found = Fakes.table(
        {("adr", "cs-cl", "a_avg"): best, ("cat", "cs-cl", "a_avg"): second},
        rows=["adr", "cat", 'odd, "row"'],
        streams=["cs-cl", "dblp-cl"],
        metrics=["a_avg", "a_f"],
        costs={("adr", "cs-cl"): {"seconds": 1.5, "memory_mb": 10.0, "kept_bytes": 7.0}},
        keeps_examples={"cat": True},
        stand_ins=frozenset({"dblp-cl"}),
        bounds=frozenset({"cat"}),
    )
    text = csv_table(found)
    lines = {(x["row"], x["stream"], x["metric"]): x for x in csv.DictReader(io.StringIO(text))}
    assert len(text.splitlines()) == 1 + len(lines) == 13
    assert ('odd, "row"', "cs-cl", "a_f") in lines
    assert text.splitlines()[:2] == [
        "row,label,bound,keeps_examples,stream,stand_in,metric,grading,mean,deviation,rank,"
        "p_value,published_mean,published_deviation,difference,seconds,memory_mb,kept_bytes,"
        "seeds,runs",
        "adr,ADR,no,no,cs-cl,no,a_avg,class,91.123456789,0.5,1,,90.71,0.22,"
        f"{91.123456789 - 90.71},1.5,10.0,7.0,0 1 4,aa bb cc",
    ]
    cat, missing = lines["cat", "cs-cl", "a_avg"], lines["adr", "dblp-cl", "a_f"]
    assert cat["deviation"] == cat["published_mean"] == cat["seconds"] == ""
    assert [cat["p_value"], cat["bound"], cat["keeps_examples"]] == ["0.0125", "yes", "yes"]
    assert missing["mean"] == missing["runs"] == missing["rank"] == ""
    assert missing["stand_in"] == "yes"
