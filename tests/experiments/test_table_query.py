from __future__ import annotations

from pathlib import Path

import pytest

from undrift.errors import InputError
from undrift.experiments.table import ResultTable, Row
from undrift.experiments.table_query import ask, column_of, filtered, ordered

COLUMNS = ("id", "stream", "stand_in", "method", "seed", "param_gamma", "params", "a_f", "drift")
LINES: list[tuple[object, ...]] = [
    ("a1", "cs-cl", False, "adr", 0, 0.1, '{"gamma": 0.1}', 84.5, None),
    ("a2", "cs-cl", False, "adr", 1, 1, '{"gamma": 1}', 80.0, None),
    ("b1", "coraml-cl", True, "bare", 0, None, "{}", 20.0, None),
    ("b2", "cs-cl", False, "bare", 1, None, "{}", 25.0, None),
]


def table() -> ResultTable:
    rows: list[Row] = [dict(zip(COLUMNS, line, strict=True)) for line in LINES]  # type: ignore[arg-type]
    return ResultTable(COLUMNS, rows, [])


def ids(found: ResultTable) -> str:
    return " ".join(str(row["id"]) for row in found.rows)


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ([], "a1 a2 b1 b2"),
        (["method=adr"], "a1 a2"),
        (["method==adr"], "a1 a2"),
        (["method!=adr"], "b1 b2"),
        (["method = 'adr'"], "a1 a2"),
        (["stream=c?-*"], "a1 a2 b2"),
        (["stream!=c?-*"], "b1"),
        (["id=[ab]1"], "a1 b1"),
        (['params={"gamma": 1}'], "a2"),
        (["method=ADR"], ""),
        (["a_f>80"], "a1"),
        (["a_f>=80"], "a1 a2"),
        (["a_f<25"], "b1"),
        (["a_f<=25"], "b1 b2"),
        (["a_f = 80"], "a2"),
        (["a_f!=80.0"], "a1 b1 b2"),
        (["a_f>=2e1", "a_f<=8.0e1"], "a2 b1 b2"),
        (["stand_in=yes"], "b1"),
        (["stand_in!=True"], "a1 a2 b2"),
        (["gamma=1"], "a2"),
        (["param.gamma=0.1"], "a1"),
        (["param_gamma!=1"], "a1 b1 b2"),
        (["gamma<5"], "a1 a2"),
        (["gamma="], "b1 b2"),
        (["gamma!="], "a1 a2"),
        (["drift<1"], ""),
        (["drift!=1"], "a1 a2 b1 b2"),
        (["method=adr", "seed=1"], "a2"),
        (["method=nothing", "a_f>1"], ""),
    ],
)
def test_filters(filters: list[str], found: str) -> None:
    assert ids(filtered(table(), filters)) == found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a_f", "takes a column, one of = != < <= > >= and a value"),
        ("", "takes a column"),
        (">=80", "takes a column"),
        ("a_ff>=80", r"unknown column 'a_ff' \(did you mean 'a_f'\?\); choose one of: a_f, drift"),
        ("a_f>=high", "column a_f holds numbers, and 'high'"),
        ("stand_in=1", "column stand_in holds true or false, and '1'"),
        ("method>adr", "column method holds text, which > cannot compare"),
        ("a_f>=", "has no value"),
    ],
)
def test_a_bad_filter_says_what_is_wrong(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why) as caught:
        filtered(table(), [text])
    assert "\n" not in str(caught.value)


def test_an_empty_table_can_be_filtered_by_anything() -> None:
    nothing = ResultTable(COLUMNS, [], [])
    assert filtered(nothing, ["a_f>=80", "method=adr"]) == nothing


@pytest.mark.parametrize(
    ("column", "reverse", "found"),
    [
        ("a_f", False, "a1 a2 b2 b1"),
        ("a_f", True, "b1 b2 a2 a1"),
        ("stream", False, "b1 a1 a2 b2"),
        ("stream", True, "a1 a2 b2 b1"),
        ("gamma", False, "a2 a1 b1 b2"),
        ("gamma", True, "a1 a2 b1 b2"),
        ("drift", False, "a1 a2 b1 b2"),
    ],
)
def test_the_order_of_a_column(column: str, reverse: bool, found: str) -> None:
    assert ids(ordered(table(), column, reverse=reverse)) == found


def test_an_own_column_goes_before_a_hyperparameter() -> None:
    both = ResultTable(("seed", "param_seed", "param_x"), [], [])
    assert column_of(both, "seed") == "seed"
    assert column_of(both, " X ") == "param_x"


def test_a_query_is_answered() -> None:
    names, rows = ask(
        table(),
        "SELECT method, count(*) AS n, avg(a_f), stdev(a_f) AS spread FROM results "
        "GROUP BY method ORDER BY 3 DESC",
    )
    assert names == ("method", "n", "avg(a_f)", "spread")
    assert [row[:3] for row in rows] == [("adr", 2, 82.25), ("bare", 2, 22.5)]
    assert rows[0][3] == pytest.approx(4.5 / 2**0.5)
    assert ask(table(), "SELECT stdev(a_f) FROM results WHERE id = 'a1'") == (
        ("stdev(a_f)",),
        [(None,)],
    )
    assert ask(table(), "WITH x AS (SELECT 1 AS y) SELECT y FROM x")[1] == [(1,)]


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT speed FROM results", r"no such column: speed.*id, stream, stand_in"),
        ("SELECT id FROM runs", r"no such table: runs.*its table is results"),
        ("SELEC id", "syntax error"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("DELETE FROM results", r"not authorized.*one SELECT"),
        ("CREATE TABLE x (y)", "not authorized"),
        ("PRAGMA table_info(results)", "not authorized"),
        ("SELECT load_extension('x')", "the query failed"),
        ("", "the query is empty"),
        ("SELECT '\0'", "the query failed"),
    ],
)
def test_a_bad_query_says_what_is_wrong(query: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        ask(table(), query)


def test_a_query_cannot_make_a_file(tmp_path: Path) -> None:
    for query in (f"ATTACH '{tmp_path}/x.db' AS y", f"VACUUM INTO '{tmp_path}/x.db'"):
        with pytest.raises(InputError, match="the query failed"):
            ask(table(), query)
    assert list(tmp_path.iterdir()) == []
