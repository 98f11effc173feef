from __future__ import annotations

from pathlib import Path

import pytest

from paper.csv_lines import CsvLine, lines_of, write_lines
from undrift.errors import InputError


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    lines = [{"a": 'x,"y"', "b": True, "c": None}, {"a": "two\nlines", "b": 0.1234567, "c": 3}]
    write_lines(path, ["a", "b", "c"], lines)
    assert path.read_bytes() == b'a,b,c\n"x,""y""",true,\ntwo lines,0.123457,3\n'
    first, second = lines_of(path, ["a", "b", "c"])
    with first, second:
        assert (first["a"], first.flag("b"), first["c"]) == ('x,"y"', True, "")
        assert (second["a"], second.real("b"), second.whole("c")) == ("two lines", 0.123457, 3)
    assert (first.place, second.place) == (2, 3)


@pytest.mark.parametrize(
    ("read", "why"),
    [
        (lambda line: line.whole("a"), "a is 'x', not a whole number"),
        (lambda line: line.real("a"), "a is 'x', not a number"),
        (lambda line: line.flag("a"), "a is 'x', not true or false"),
        (lambda line: line.json("a"), "a is not JSON"),
    ],
)
def test_a_damaged_cell_is_named_with_file_and_line(read, why: str) -> None:  # type: ignore[no-untyped-def]
    with (
        pytest.raises(InputError, match=f"^runs.csv, line 7: {why}"),
        CsvLine(Path("runs.csv"), 7, ["a"], ["x"]) as line,
    ):
        read(line)


@pytest.mark.parametrize("cells", ["1", "1,2,3"])
def test_a_line_with_too_few_or_too_many_cells(tmp_path: Path, cells: str) -> None:
    (tmp_path / "a.csv").write_text(f"a,b\n{cells}\n")
    (line,) = lines_of(tmp_path / "a.csv", ["a", "b"])
    with pytest.raises(InputError, match=rf"line 2: it has {cells.count(',') + 1} cells, not 2"):
        line.__enter__()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"a,c\n1,2\n", r"line 1: .*differ: b, c"),
        (b'a,b\n"x\n', r"a.csv, line 2"),
        (b"\xff\xfe\x00", "it is not text"),
        (None, r"cannot read .*No such file"),
    ],
)
def test_a_file_that_is_no_table_of_these_columns(
    tmp_path: Path, text: bytes | None, why: str
) -> None:
    if text is not None:
        (tmp_path / "a.csv").write_bytes(text)
    with pytest.raises(InputError, match=why):
        list(lines_of(tmp_path / "a.csv", ["a", "b"]))
