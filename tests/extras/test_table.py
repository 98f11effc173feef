"""Questions to a folder of results: what DuckDB is asked, and what it may not do."""

from typing import Any

import pytest

from extras.flat import Row, flat
from extras.table import ResultTable, load_table
from tests.experiments.made import METRICS, made
from undrift.errors import InputError
from undrift.evaluation.metrics import METRICS as ALL
from undrift.experiments.result import Result, save_result

COLUMNS = ["id", "stream", "stand_in", "method", "seed", "param_gamma", "params", "a_f"]
COLUMNS += ["drift_last"]
LINES: list[tuple[object, ...]] = [
    ("a1", "cs-cl", False, "adr", 0, 0.1, '{"gamma": 0.1}', 84.5, None),
    ("a2", "cs-cl", False, "adr", 1, 1, '{"gamma": 1}', 80.0, None),
    ("b1", "coraml-cl", True, "bare", 0, None, "{}", 20.0, None),
    ("b2", "cs-cl", False, "bare", 1, None, "{}", 25.0, None),
]


def table() -> ResultTable:
    rows: list[Row] = [dict(zip(COLUMNS, line, strict=True)) for line in LINES]  # type: ignore[arg-type]
    return ResultTable(rows)


def ids(found: ResultTable, sort: str | None = "id", *, reverse: bool = True) -> str:
    return " ".join(str(row[0]) for row in found.rows(["id"], sort, reverse=reverse))


def result(*, phases: tuple[str, ...] = ("train",), **spec: Any) -> Result:
    cost = {"seconds": dict.fromkeys((*phases, "total"), 1.5), "peak_memory_mb": None}
    provenance = {"sha256": "ab", "split_sha256": "cd", "stand_in": True}
    fields = {"cost": cost | {"state_mb": 0.1, "threads": 1}, "provenance": provenance}
    return made(fields=fields, **spec)


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ([], "a1 a2 b1 b2"),
        (["method!=adr"], "b1 b2"),
        (["stream=c?-*"], "a1 a2 b2"),
        (["id=[ab]1"], "a1 b1"),
        (['params={"gamma": 1}'], "a2"),
        (["method=ADR"], ""),
        (["a_f>80"], "a1"),
        (["a_f!=80.0"], "a1 b1 b2"),
        (["a_f>=2e1", "a_f<=8.0e1"], "a2 b1 b2"),
        (["stand_in=yes"], "b1"),
        (["gamma=1"], "a2"),
        (["gamma="], "b1 b2"),
        (["gamma!="], "a1 a2"),
        (["method=adr", "seed=1"], "a2"),
    ],
)
def test_filters(filters: list[str], found: str) -> None:
    some = table()
    some.keep(filters)
    assert ids(some, reverse=False) == found
    assert len(some) == len(found.split())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a_f", "takes a column, one of = != < <= > >= and a value"),
        (">=80", "takes a column"),
        ("a_ff>=80", r"unknown column 'a_ff' .*a_f"),
        ("a_f>=high", "column a_f holds numbers, and 'high'"),
        ("stand_in=1", "column stand_in holds true or false, and '1'"),
        ("method>adr", "column method holds text, which > cannot compare"),
        ("a_f>=", "has no value"),
    ],
)
def test_a_bad_filter_says_what_is_wrong(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why) as caught:
        table().keep([text])
    assert "\n" not in str(caught.value)


def test_text_of_a_filter_is_never_sql() -> None:
    some = table()
    some.keep(["method!=x' OR 1=1; DROP TABLE results; --", "stream=*/*", 'id!="'])
    assert len(some) == 0
    some = ResultTable([{"id": "x", "stream": "my/graph[1].toml"}])
    some.keep(["stream=my/*", "stream=my/graph[1].toml", "stream=my/graph[[]1].toml"])
    assert len(some) == 1


@pytest.mark.parametrize(
    ("column", "down", "up"),
    [
        ("a_f", "a1 a2 b2 b1", "b1 b2 a2 a1"),
        ("stream", "b1 a1 a2 b2", "a1 a2 b2 b1"),
        ("gamma", "a2 a1 b1 b2", "a1 a2 b1 b2"),
    ],
)
def test_the_order_of_a_column(column: str, down: str, up: str) -> None:
    # of equals, by stream, method, params and seed
    assert ids(table(), column, reverse=False) == down
    assert ids(table(), column, reverse=True) == up


def test_every_row_has_every_column_in_one_order(tmp_path) -> None:
    save_result(result(params={"gamma": 1.0}, phases=("train", "merge")), tmp_path)
    save_result(result(method="bare", params={"alpha": 2}), tmp_path)
    found = load_table(tmp_path)
    at = found.columns.index
    assert at("params") + 1 == at("param_alpha") == at("param_gamma") - 1
    assert at("seconds_total") + 1 == at("seconds_merge") == at("seconds_train") - 1
    found.keep(["method=bare"])
    assert found.rows(["param_gamma", "seconds_merge", "alpha"]) == [(None, None, 2)]


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ((1, 0.5), [1, 0.5]),
        ((True, None), [True, None]),
        ((True, 1), ["true", "1"]),
        (("ham", 0.5), ["ham", "0.5"]),
        (((8, 8), 4), ["[8, 8]", "4"]),
        ((2**70, 1), [str(2**70), "1"]),
    ],
)
def test_a_column_holds_one_kind(values: tuple[Any, ...], kept: list[Any]) -> None:
    rows: list[Row] = [{"id": str(k), "param_x": value} for k, value in enumerate(values)]
    found = ResultTable(rows).rows(["param_x"], "id")
    assert [row[0] for row in found] == kept


def test_a_query_is_answered() -> None:
    some = table()
    query = "SELECT method, count(*) AS n, avg(a_f) FROM results GROUP BY method ORDER BY 3 DESC"
    names, rows = some.ask(query)
    assert names == ("method", "n", "avg(a_f)")
    assert rows == [("adr", 2, 82.25), ("bare", 2, 22.5)]
    assert some.ask("SELECT stdev(a_f) FROM results WHERE id = 'a1'")[1] == [(None,)]
    assert some.ask("WITH x AS (SELECT 1 AS y) SELECT y FROM x")[1] == [(1,)]
    assert some.ask("SELECT 0.5, 1 / 0, 'nan'::DOUBLE, [1, 2]")[1] == [(0.5, None, None, "[1, 2]")]


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT speed FROM results", r'"speed" not found.*id, stream, arrive, stand_in'),
        ("SELECT id FROM runs", r"runs does not exist.*its table is results"),
        ("SELEC id", "syntax error"),
        ("SELECT 1; SELECT 2", "not one SELECT"),
        ("DELETE FROM results", r"not one SELECT.*must be one SELECT"),
        ("SET lock_configuration = false", "not one SELECT"),
        ("INSTALL httpfs", "not one SELECT"),
        ("SELECT load_extension('x')", "the query failed"),
        ("SELECT * FROM query('DELETE FROM results')", "the query failed"),
        ("-- nothing", "the query is empty"),
    ],
)
def test_a_bad_query_says_what_is_wrong(query: str, why: str) -> None:
    some = table()
    with pytest.raises(InputError, match=why) as caught:
        some.ask(query)
    assert "\n" not in str(caught.value)
    assert len(some) == len(LINES)


def test_a_query_reaches_no_file_and_no_variable(tmp_path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n")
    outside = {"secret": [1]}  # a variable of this process, which DuckDB could look for
    for query in (
        f"SELECT * FROM read_csv('{secret}')",
        f"SELECT * FROM read_text('{secret}')",
        f"SELECT * FROM '{secret}'",
        f"SELECT * FROM glob('{tmp_path}/*')",
        f"SELECT * FROM query('FROM read_csv(''{secret}'')')",
        "SELECT * FROM outside",
        f"ATTACH '{tmp_path}/x.db' AS y",
        f"COPY results TO '{tmp_path}/x.csv'",
        f"EXPORT DATABASE '{tmp_path}/x'",
    ):
        with pytest.raises(InputError, match="the query failed"):
            table().ask(query)
    assert outside
    assert list(tmp_path.iterdir()) == [secret]


def test_the_table_as_parquet(tmp_path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    save_result(result(params={"gamma": 0.1}), tmp_path)
    save_result(result(seed=1, params={"gamma": 1}), tmp_path)
    path = tmp_path / "it's.parquet"
    load_table(tmp_path).parquet(path)
    stored = parquet.read_table(path)
    kinds = {field.name: str(field.type) for field in stored.schema}
    wanted = {"param_gamma": "double", "seed": "int64", "stand_in": "bool", "stream": "string"}
    assert wanted.items() <= kinds.items()
    assert stored.column("seed").to_pylist() == [0, 1]
    with pytest.raises(InputError, match="cannot write"):
        load_table(tmp_path).parquet(tmp_path)


def test_a_row_says_all_about_its_run() -> None:
    params = {"gamma": 0.1, "hidden": (8, 8), "merging": "ham"}
    row = flat(result(method="er-gnn", stream="cs-cl", seed=3, params=params))
    said = {"stream": "cs-cl", "stand_in": True, "seed": 3, "param_hidden": "[8, 8]", "tasks": 2}
    said |= {"drift_last": 0.5, "seconds_train": 1.5, "state_mb": 0.1, "keeps_examples": True}
    said |= {"version_torch": "2", "data_sha256": "ab", "split_sha256": "cd"}
    for prefix in ("", "node_", "val_", "val_node_"):
        said |= {f"{prefix}{name}": value for name, value in METRICS.items()}
    assert said.items() <= row.items()
    assert {key for key, metric in ALL.items() if metric.of is None} <= row.keys()


def test_a_row_without_validation_drift_or_a_known_method() -> None:
    provenance = {"x_sha256": "1", "y_sha256": "2", "stand_in": False}
    fields = {"drift": [], "validation": None, "provenance": provenance}
    row = flat(made(fields=fields, method="mine"))
    assert row["val_a_avg"] is row["drift_last"] is row["keeps_examples"] is None
    assert row["data_sha256"] == "1 2"


def test_names_of_columns_need_no_quotes_in_sql() -> None:
    row = flat(result(params={"Half Life": 1}, phases=("merge-fit",)))
    assert row["param_half_life"] == 1
    assert row["seconds_merge_fit"] == 1.5
