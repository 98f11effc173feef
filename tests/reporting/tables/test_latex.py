from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift.reporting.tables.comparison import Comparison, ComparisonEntry, Spread
from undrift.reporting.tables.formats import escape_latex, latex_document, latex_table

STREAMS = ["cs-cl", "arxiv-cl", "dblp-cl", "photo-cl", "coraml-cl", "citeseer-cl", "physics-cl"]
NASTY = [
    "[4pt] 50% of $a_b$ & {c} #1 ~ ^ \\x",
    "*--- -- <a|b> \"q\" 'r' `s`",
    "éüßÆø × ÷ ± † – … γ ðþ 数 🙂 \u0301",
    "".join(map(chr, range(0x20, 0x180))),
]


def entry(mean: float, deviation: float | None = 1.0, **more: Any) -> ComparisonEntry:
    return ComparisonEntry(Spread(mean, deviation), (0,), ("r",), **more)


PAPER: dict[str, Any] = {"published": Spread(90.71, 0.22)}


def table(streams: list[str] | None = None, **changes: Any) -> Comparison:
    streams = ["cs-cl"] if streams is None else streams
    entries = {}
    for stream in streams:
        paper = PAPER if stream in ("cs-cl", "arxiv-cl") else {}
        entries["joint", stream, "a_avg"] = entry(95.0)
        entries["adr", stream, "a_avg"] = entry(90.0, rank=1, **paper)
        entries["acil", stream, "a_avg"] = entry(89.0, None, rank=2)
        entries["ewc", stream, "a_avg"] = entry(70.0, rank=3, significance=0.001)
    fields: dict[str, Any] = {
        "title": "A table",
        "rows": ["joint", "adr", "acil", "ewc", "mas"],
        "labels": {
            "joint": "Joint",
            "adr": "ADR",
            "acil": "ACIL",
            "ewc": "EWC",
            "mas": "MAS a_b",
        },
        "streams": streams,
        "metrics": ["a_avg"],
        "entries": entries,
        "costs": {
            ("adr", s): {"seconds": 2.0, "memory_mb": 3.0, "kept_bytes": 9.0} for s in streams
        },
        "keeps_examples": {"joint": True},
        "stand_ins": frozenset(),
        "notes": ["A note: 100 % sure."],
        "bounds": frozenset({"joint"}),
    }
    return Comparison(**(fields | changes))


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


def cells(text: str, start: str) -> list[str]:
    found = [line for line in text.splitlines() if line.startswith(start)]
    return [cell.strip() for cell in found[0].removesuffix(r"\\").split("&")]


def test_best_second_mark_and_paper() -> None:
    text = latex_table(table())
    assert cells(text, "ADR")[1:] == [r"\textbf{90.00 $\pm$ 1.00}", "90.71 ($-0.71$)"]
    assert cells(text, "ACIL")[1:] == [r"\underline{89.00}", ""]
    assert cells(text, "EWC")[1:] == [r"70.00 $\pm$ 1.00\rlap{$^{\ast}$}", ""]
    assert cells(text, "MAS")[:2] == [r"MAS a\_b", "--"]
    assert cells(text, "Joint")[0] == r"Joint$^{\dagger}$"
    assert r"A note: 100 \% sure." in text


def test_bounds_are_ruled_off() -> None:
    lines = latex_table(table(costs={})).splitlines()
    joint = next(at for at, line in enumerate(lines) if line.startswith("Joint"))
    assert lines[joint - 1] == lines[joint + 1] == r"\midrule"
    assert lines.count(r"\midrule") == 2


def test_a_stand_in_is_named_over_accuracy_and_cost() -> None:
    text = latex_table(table(stand_ins=frozenset({"cs-cl"})))
    assert text.count("{CS-CL (stand-in)}") == 2


def test_many_streams_are_numbered_tables_and_notes_stand_once() -> None:
    text = latex_table(table(STREAMS))
    captions = re.findall(r"\\caption\{(.*)\}", text)
    assert captions[:2] == ["A table (1 of 2)", "A table (2 of 2)"]
    assert captions[2:] == [f"A table: cost ({at} of 3)" for at in (1, 2, 3)]
    assert text.count("A note") == 1


@pytest.mark.parametrize("streams", [[], ["cs-cl"], STREAMS])
def test_the_structure_holds(streams: list[str]) -> None:
    check_structure(latex_table(table(streams)))
    check_structure(latex_document(table(streams)))


def test_the_structure_check_can_fail() -> None:
    text = latex_table(table())
    for broken in (
        text.replace("90.71", "90.71 &"),
        text.replace(r"\end{tabular}", "", 1),
        text.replace(r"\textbf{", r"\textbf{{", 1),
    ):
        with pytest.raises((AssertionError, IndexError)):
            check_structure(broken)


@settings(deadline=None, max_examples=80, derandomize=True)
@given(st.text(alphabet="ab[]*&%$#_{}~^\\<>|\"'`- \n\té×数🙂", max_size=12))
def test_no_name_breaks_the_structure(name: str) -> None:
    check_structure(latex_table(table(title=name, labels={"adr": name}, notes=[name])))


def test_hyphens_stay_hyphens() -> None:
    assert escape_latex("cs-cl") == "cs-cl"
    assert escape_latex("a---b") == "a-{}-{}-b"


def test_a_document_compiles(tmp_path: Path) -> None:
    compiler = shutil.which("pdflatex")
    if compiler is None:
        pytest.skip("needs pdflatex: apt-get install texlive-latex-recommended")
    labels = dict(zip(["joint", "adr", "acil", "ewc"], NASTY, strict=True))
    nasty = table(title=NASTY[0], labels=labels, notes=NASTY)
    text = latex_document(nasty)
    (tmp_path / "t.tex").write_text(text, encoding="utf-8")
    options = ["-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape"]
    done = subprocess.run(
        [compiler, *options, "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    assert (tmp_path / "t.pdf").read_bytes().startswith(b"%PDF")
    assert "Missing character" not in (tmp_path / "t.log").read_text(errors="replace")
