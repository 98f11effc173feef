from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from undrift import InputError
from undrift.cells import days
from undrift.datasets import columns
from undrift.datasets.columns import (
    Trouble,
    as_times,
    column_names,
    floats,
    read_pieces,
    texts,
    unusable,
)
from undrift.graphs.inputs import as_class_ids


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def gather(path: Path, name: str) -> list[str]:
    return [text for piece in read_pieces(path, [name]) for text in texts(piece, name)]


def numbers(path: Path, name: str) -> Any:
    found = [floats(piece, name) for piece in read_pieces(path, [name])]
    troubles = [each for each in found if isinstance(each, Trouble)]
    if troubles:
        raise InputError(unusable(path, troubles[:1]))
    return np.concatenate([each for each in found if not isinstance(each, Trouble)])


def test_quotes_blanks_and_a_byte_order_mark_are_read(tmp_path) -> None:
    path = write(tmp_path / "t.csv", '\ufeffid , x\r\n"a, b",1\r\n\r\n c ,2.5\r\n"d\nd",-1e3\r\n')
    assert column_names(path) == ["id", "x"]
    assert gather(path, "id") == ["a, b", "c", "d\nd"]
    np.testing.assert_array_equal(numbers(path, "x"), np.array([1, 2.5, -1000], np.float32))
    path = write(tmp_path / "t.tsv", "id\tx\na,b\t1\n")
    assert gather(path, "id") == ["a,b"]


@pytest.mark.parametrize(
    ("name", "text", "sign"),
    [("t.csv", "id;x\na;1,5\n", ";"), ("t.csv", "id\tx\n", r"\\t"), ("t.tsv", "id,x\n", ",")],
)
def test_another_separator_is_named(tmp_path, name: str, text: str, sign: str) -> None:
    with pytest.raises(InputError, match=f"are separated by '{sign}', not by"):
        column_names(write(tmp_path / name, text))


def test_pieces_are_bounded_and_count_their_rows(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(columns, "CELLS", 4)
    path = write(tmp_path / "t.csv", "a,b\n" + "".join(f"{i},{i}\n" for i in range(5)))
    pieces = list(read_pieces(path, ["b"]))
    assert [piece.first for piece in pieces] == [1, 3, 5]
    assert [piece.columns["b"] for piece in pieces] == [["0", "1"], ["2", "3"], ["4"]]


@pytest.mark.parametrize(
    ("cell", "what"),
    [
        ("red", "row 4 has 'red'"),
        ("", "row 4 has nothing"),
        ("nan", "row 4 has 'nan'"),
        ("1e99", "row 4 has '1e99'"),  # no float32
    ],
)
def test_the_first_cell_that_is_no_number_is_named(cell, what, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(columns, "CELLS", 6)  # three rows a piece: the bad one is in the second
    rows = ["1", "2", "3", cell, "5", "worse"]
    path = write(tmp_path / "t.csv", "id,x\n" + "".join(f"n,{row}\n" for row in rows))
    with pytest.raises(InputError, match=f"column 'x' of .*t.csv must hold numbers, but {what}"):
        numbers(path, "x")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("id,x\nMüller,1\n", "t.csv is not UTF-8 text"),
        ("", "t.csv is empty; its first line must name the columns"),
        ("a,a\n1,2\n", "t.csv has two columns 'a'"),
        ("a,b\n1,2\n3\n", "row 2 of .*t.csv has 1 cells, but the header names 2 columns"),
        ("a,b\n1,2\n3,4,5\n", "row 2 of .*t.csv has 3 cells"),
        ("a,b\n1\n2\n", "row 1 of .*t.csv has 1 cells"),
        (f'a,b\n"{"x" * 200_000}",1\n', "t.csv is not a CSV file .*after row 1"),
    ],
)
def test_a_file_that_is_no_table_is_one_sentence(text: str, what: str, tmp_path) -> None:
    path = write(tmp_path / "t.csv", text, encoding="latin-1")
    with pytest.raises(InputError, match=what) as caught:
        list(read_pieces(path, column_names(path)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("none.csv", "there is no file .*none.csv"),
        ("none.parquet", "there is no file .*none.parquet"),
        ("nodes.xlsx", "give a .csv, .tsv, .arff, .data or .parquet file"),
    ],
)
def test_a_missing_file_and_a_strange_one_are_named(tmp_path, name: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        column_names(tmp_path / name)


def parquet(path: Path, **named: Any) -> Path:
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table(named), path)
    return path


def test_parquet_gives_what_csv_gives(tmp_path) -> None:
    path = parquet(tmp_path / "t.parquet", id=[3, None, 5], name=[" a", None, "b"], x=[1, 2, 3])
    assert column_names(path) == ["id", "name", "x"]
    assert gather(path, "id") == ["3", "", "5"]
    assert gather(path, "name") == ["a", "", "b"]
    np.testing.assert_array_equal(numbers(path, "x"), np.array([1, 2, 3], np.float32))


def test_lists_in_parquet_are_a_matrix(tmp_path) -> None:
    arrow, rows = pytest.importorskip("pyarrow"), [[1, 2], [3, 4], [5, 6]]
    for kind, *size in ((arrow.float64(),), (arrow.float32(), 2), (arrow.int64(),)):
        column = arrow.array(rows, type=arrow.list_(kind, *size))
        path = parquet(tmp_path / "t.parquet", x=column)
        np.testing.assert_array_equal(numbers(path, "x"), rows)


@pytest.mark.parametrize(
    ("column", "what"),
    [
        ([1.0, None, 3.0], "row 2 has nothing"),
        ([[1.0, 2.0], [3.0]], "row 2 has a list of 1"),
        ([[1.0, 2.0], [3.0, None]], "row 2 has a list of 2"),
        ([[1.0], None], "row 2 has nothing"),
    ],
)
def test_a_bad_cell_in_parquet_is_named(column: list[Any], what: str, tmp_path) -> None:
    path = parquet(tmp_path / "t.parquet", x=column)
    told = f"column 'x' of .*t.parquet must hold numbers, but {what}"
    with pytest.raises(InputError, match=told):
        numbers(path, "x")


def test_two_equal_columns_in_parquet_are_named(tmp_path) -> None:
    arrow = pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    table = arrow.table([[1], [2]], names=["x", "x"])
    pytest.importorskip("pyarrow.parquet").write_table(table, path)
    with pytest.raises(InputError, match=r"t.parquet has two columns 'x'"):
        column_names(path)


def test_a_time_with_a_zone_is_read_in_utc(tmp_path) -> None:
    arrow = pytest.importorskip("pyarrow")
    moments = arrow.array([0, 3600], arrow.timestamp("s", tz="Europe/Berlin"))
    path = parquet(tmp_path / "t.parquet", when=moments)
    assert gather(path, "when") == ["1970-01-01 00:00:00", "1970-01-01 01:00:00"]


def test_a_damaged_parquet_file_is_named(tmp_path) -> None:
    path = parquet(tmp_path / "t.parquet", x=list(range(1000)))
    whole = path.read_bytes()
    for data in (b"", whole[:100], b"id,x\n1,2\n"):
        path.write_bytes(data)
        with pytest.raises(InputError, match=r"t.parquet is damaged, empty or not a Parquet file"):
            column_names(path)
    path.write_bytes(whole[:8] + bytes(200) + whole[208:])
    with pytest.raises(InputError, match=r"t.parquet is damaged"):
        numbers(path, "x")


@pytest.mark.parametrize(
    ("labels", "ids", "names"),
    [
        (["b", "10", "", "a", "b"], [2, 0, -1, 1, 2], {0: "10", 1: "a", 2: "b"}),
        (["30", "4.0", "", "-1", "4"], [30, 4, -1, -1, 4], {4: "4", 30: "30"}),  # gaps stay
        (["", ""], [-1, -1], {}),
    ],
)
def test_labels_become_class_ids(labels: list[str], ids: list[int], names: dict[int, str]) -> None:
    found, called = as_class_ids(labels, "labels")
    assert (found.tolist(), called) == (ids, names)


@pytest.mark.parametrize("label", ["1.5", "-2", "inf", "1e30"])
def test_numbers_that_are_no_class_are_refused(label: str) -> None:
    with pytest.raises(InputError, match=f"column 'y' holds '{label}'; write classes as whole"):
        as_class_ids(["0", label, "1"], "column 'y'")


def test_numbers_stay_and_dates_become_days() -> None:
    np.testing.assert_array_equal(as_times(["2001", " 2002.5 "], "t"), [2001, 2002.5])
    np.testing.assert_array_equal(as_times(["1970-01-02", "1969-12-31"], "t"), [1, -1])
    moments = [date(1970, 1, 2), datetime(1970, 1, 1, 6)]
    np.testing.assert_array_equal(as_times(moments, "t"), [1, 0.25])
    east = timezone(timedelta(hours=6))
    assert days("1970-01-02T00:00:00Z") == 1
    assert days(datetime(1970, 1, 2, tzinfo=east)) == days("1970-01-02T00:00+06:00") == 0.75
    assert days(datetime(1970, 1, 2, tzinfo=UTC)) == days("1970-01-02")


@pytest.mark.parametrize(
    ("values", "what"),
    [
        (["2001", "soon"], "t must hold a number in every row, .* row 2 has 'soon'"),
        ([2001.0, None], "row 2 has nothing"),
        (["2001", "2001-01-01"], "row 2 has '2001-01-01'"),
        (["2001-01-01", "2001"], "a date like 2021-03-31 in every row, .* row 2 has '2001'"),
        (["2001-01-01", 5], "row 2 has 5"),
        (["", "2001"], "row 1 has nothing"),
    ],
)
def test_an_unknown_time_is_named(values: list[Any], what: str) -> None:
    with pytest.raises(InputError, match=what):
        as_times(values, "t")


def test_weka_and_uci_files_are_tables(tmp_path) -> None:
    text = "% a note\n@RELATION r\n@attribute 'leaf spot' {a,'b, c'}\n@attribute age numeric\n"
    weka = write(tmp_path / "w.arff", f"{text}@DATA\n% another\n'b, c',?\na, 3\n")
    (piece,) = read_pieces(weka, column_names(weka))
    assert piece.columns == {"leaf spot": ["b, c", "a"], "age": ["?", "3"]}
    bare, headed = (write(tmp_path / f"{i}.data", s) for i, s in enumerate(("1,?\n", "a,b\n1,?\n")))
    for path, names in ((bare, ["f1", "f2"]), (headed, ["a", "b"])):
        (piece,) = read_pieces(path, column_names(path))
        assert list(piece.columns.items()) == [(names[0], ["1"]), (names[1], ["?"])]
