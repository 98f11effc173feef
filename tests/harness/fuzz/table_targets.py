"""Targets: what people write by hand or export: tables, streams, plans."""

import csv
import io
import math
import tomllib
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np

from tests.harness.fuzz.changes import change_toml, damage_file
from tests.harness.fuzz.guard import Target
from tests.scale.conftest import write_tables
from undrift import load_stream_file, read_tables
from undrift.experiments.plans import read_plan
from undrift.learners.registry import method_class
from undrift.testing import tiny_graph

_CELLS = ["", " ", "\0", "a" * 9000, " 1 ", "é\n"]
_CELLS += ["nan", "inf", "-1", "1e999", "0x10", "1_0", "٣", "1,5", '"', "'", "1e-400", "007"]
_CELLS += ["-0", "+1", "1.0", "True", "null", "ü", "1;2"]
_TYPES = ("INTEGER", "DOUBLE", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP", "BLOB", "UUID")
_CASTS = ["[{0}]", "[{0}, {0}]", "NULL", "{{'a': {0}}}", "MAP([{0}], [1])", "'x'", "1e300", "[]"]
_CASTS += ["CASE WHEN random() < 0.2 THEN NULL ELSE {0} END", "'nan'::DOUBLE", "'inf'::FLOAT"]
_CASTS += ["''", "''::BLOB"]


def write_csv(folder: Path, nodes: int = 24) -> None:
    """A tiny graph as nodes.csv and edges.csv."""
    write_tables(tiny_graph(nodes=nodes, features=3, classes=4), folder)


def _make_parquet(folder: Path) -> None:
    write_csv(folder)
    with duckdb.connect() as base:
        for name in ("nodes", "edges"):
            path = folder / name
            base.execute(f"COPY (FROM read_csv('{path}.csv')) TO '{path}.parquet'")
            path.with_suffix(".csv").unlink()


def change_csv(random: Random, path: Path) -> str:
    """Change a cell, a row, a column or how the file is written."""
    if random.random() < 0.2:
        return damage_file(random, path)
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
    i, j = random.randrange(len(rows)), random.randrange(len(rows[0]))
    cell, place = random.choice(_CELLS), random.randrange(1, len(rows))
    changed: dict[str, list[list[str]]] = {
        "row twice": [*rows[:place], rows[i], *rows[place:]],
        "row gone": [*rows[:i], *rows[i + 1 :]],
        "row cut": [*rows[:i], rows[i][:j], *rows[i + 1 :]],
        "column gone": [[*row[:j], *row[j + 1 :]] for row in rows],
        "column twice": [[*row, row[j]] for row in rows],
        "columns turned": [row[j:] + row[:j] for row in rows],
        "column of": [rows[0], *([*row[:j], cell, *row[j + 1 :]] for row in rows[1:])],
    }
    done = random.choice([*changed, *["cell"] * len(changed)])
    if done == "cell":
        cell = random.choice((cell, cell, random.choice(rows)[j]))
        rows[i][j] = cell
    file = io.StringIO()
    quoting: Any = random.choice((csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    sign, end = random.choice(",,,,,;"), random.choice(("\n", "\n", "\r\n"))
    writer = csv.writer(file, delimiter=sign, lineterminator=end, quoting=quoting)
    writer.writerows(changed.get(done, rows))
    text = random.choice(("", "", "", "\ufeff", "\n\n")) + file.getvalue()
    code = random.choice(("utf-8", "utf-8", "utf-8", "utf-16", "latin-1"))
    path.write_bytes(text.encode(code, "replace"))
    return f"{path.name}: {done} at {i}, {j}, {cell[:20]!r}, {code}, {sign!r}, {end!r}"


def change_parquet(random: Random, path: Path) -> str:
    """Damage a Parquet file, or write it again with a column of another type or content."""
    if random.random() < 0.5:
        return damage_file(random, path)
    new = path.with_name("new.parquet")
    with duckdb.connect() as base:
        table = base.execute("SELECT * FROM read_parquet(?)", [str(path)])
        names = [column[0] for column in table.description]
        name = random.choice(names)
        cast = f"TRY_CAST({{0}} AS {random.choice(_TYPES)})"
        other = random.choice((cast, cast, random.choice(_CASTS), random.choice(_CASTS), ""))
        other = other.format(f'"{name}"')
        listed = ", ".join(f'"{n}"' for n in names if n != name)
        alias = random.choice((name, name, name, "", name.upper(), "ü", f"{name}_1"))
        chosen = f'{other} AS "{alias or "x"}", {listed}' if other else listed
        limit = random.choice(("", "", "", "LIMIT 0", "LIMIT 3"))
        query = f"COPY (SELECT {chosen} FROM read_parquet('{path}') {limit}) TO '{new}'"
        try:
            base.execute(query)
        except duckdb.Error:
            return damage_file(random, path)
    new.replace(path)
    return f"{path.name}: {name} as {other or 'nothing'} {limit}"


def change_tables(suffix: str, random: Random, folder: Path) -> str:
    """Change the nodes, or less often the edges."""
    path = folder / f"{random.choice(('nodes', 'nodes', 'edges'))}{suffix}"
    return change_csv(random, path) if suffix == ".csv" else change_parquet(random, path)


def _read_tables(suffix: str, folder: Path) -> Any:
    found = read_tables(folder / f"nodes{suffix}", folder / f"edges{suffix}")
    classes = [found.class_names.get(c, "") for c in found.graph.labelled().tolist()]
    edges = sorted(map(tuple, np.argwhere(found.graph.adjacency.to_scipy()).tolist()))
    matrix = found.graph.features.numpy()  # type: ignore[union-attr]
    return [str(i) for i in found.node_ids.tolist()], classes, matrix.tobytes(), edges


def _plain_tables(suffix: str, folder: Path) -> Any:
    """Ids, labels, features and edges of two tables, read cell by cell."""
    head, rows = _rows(folder / f"nodes{suffix}")
    wanted = [name for name in head if name not in ("id", "label")]
    ids = [_text(row[head.index("id")]) for row in rows]
    labels = _classes([_text(row[head.index("label")]) for row in rows])
    features = [[x for name in wanted for x in _numbers(row[head.index(name)])] for row in rows]
    head, rows = _rows(folder / f"edges{suffix}")
    place = {name: i for i, name in enumerate(ids)}
    ends = [head.index("source"), head.index("target")]
    pairs = {tuple(place[_text(row[end])] for end in ends) for row in rows}
    pairs |= {(b, a) for a, b in pairs}
    matrix = np.array(features, np.float64).astype(np.float32)
    return ids, labels, matrix.tobytes(), sorted((a, b) for a, b in pairs if a != b)


def _rows(path: Path) -> tuple[list[str], list[list[Any]]]:
    if path.suffix == ".parquet":
        from pyarrow.parquet import read_table

        table = read_table(path, partitioning=None)
        columns = [column.to_pylist() for column in table.columns]
        return list(table.column_names), [list(row) for row in zip(*columns, strict=True)]
    with path.open(encoding="utf-8-sig", newline="") as file:
        head, *rows = [row for row in csv.reader(file) if row]
    return [name.strip() for name in head], list(rows)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _classes(labels: list[str]) -> list[str]:
    """Names as they are; whole numbers in one way of writing them, none for -1."""
    try:
        numbers = [int(float(label)) if label else -1 for label in labels]
    except (ValueError, OverflowError):
        return labels
    return ["" if number < 0 else str(number) for number in numbers]


def _numbers(value: Any) -> list[float]:
    return [float(v) for v in value] if isinstance(value, list) else [float(value)]


_STREAM = """\
name = "mine"

[graph]
nodes = "nodes.csv"
edges = "edges.csv"
id = "id"
label = "label"
undirected = true

[tasks]
base = 2
increment = 1
order = ["c0", "c2", "c1", "c3"]

[split]
train = 0.5
val = 0.25
test = 0.25
"""
_PLAN = """\
name = "mine"
title = "Mine"
streams = ["cs-cl", "stream.toml"]
methods = ["bare", "adr"]
seeds = [0, 1, 2]
protocol = "global"
arrive = ["classes"]
search = false

[params.adr]
epochs = 100
hidden = [8, 8]

[grid.adr]
gamma = [0.1, 1.0]
"""


def make_stream(folder: Path) -> None:
    """A stream of tables with its toml."""
    write_csv(folder, nodes=40)
    (folder / "stream.toml").write_text(_STREAM, encoding="utf-8")


def _make_plan(folder: Path) -> None:
    make_stream(folder)
    (folder / "plan.toml").write_text(_PLAN, encoding="utf-8")


def _change_toml(name: str, random: Random, folder: Path) -> str:
    path, done = folder / name, []
    if random.random() < 0.2:
        return damage_file(random, path)
    for _ in range(random.choice((1, 1, 2))):
        text = path.read_text(encoding="utf-8")
        if text.strip():
            text, told = change_toml(random, text)
            done.append(told)
            path.write_text(text, encoding="utf-8")
    return " and ".join(done)


def _read_stream(folder: Path) -> Any:
    stream = load_stream_file(folder / "stream.toml")
    return stream.name, len(stream), sorted(c for classes in stream.classes for c in classes)


def _plain_stream(folder: Path) -> Any:
    """What can be said of the stream from the text alone."""
    told = tomllib.loads((folder / "stream.toml").read_text(encoding="utf-8-sig"))
    base, more = min(told["tasks"]["base"], 4), told["tasks"]["increment"]
    return told["name"], 1 + -(-(4 - base) // more), [0, 1, 2, 3]


def _read_plan(folder: Path) -> Any:
    plan = read_plan(folder / "plan.toml")
    rows = [(row.method, _lists(row.params), _lists(row.grid)) for row in plan.rows]
    streams = [name.removeprefix(f"{folder}/") for name in plan.streams]
    return plan.name, plan.title, streams, list(plan.seeds), plan.protocol, list(plan.arrive), rows


def _plain_plan(folder: Path) -> Any:
    told = tomllib.loads((folder / "plan.toml").read_text(encoding="utf-8"))
    rows = []
    for method in told["methods"]:
        params, grid = told.get("params", {}).get(method, {}), told.get("grid", {}).get(method, {})
        if told.get("search"):
            grid = grid if method in told.get("grid", {}) else method_class(method).grid
            rows.append((method, _lists(params), {k: _several(v) for k, v in _lists(grid).items()}))
            continue
        settings: list[dict[str, Any]] = [{}]
        for key, values in grid.items():
            settings = [s | {key: v} for s in settings for v in _several(values)]
        rows += [(method, _lists(params | s), {}) for s in settings]
    name = told.get("name") or "plan"
    usual = {"seeds": [0, 1, 2, 3, 4], "protocol": "global", "arrive": ["classes"]} | told
    named = name, told.get("title") or name, told["streams"]
    return (*named, usual["seeds"], usual["protocol"], usual["arrive"], rows)


def _several(values: Any) -> list[Any]:
    return list(values) if isinstance(values, list | tuple) else [values]


def _lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _lists(part) for name, part in value.items()}
    return list(map(_lists, value)) if isinstance(value, list | tuple) else value


def _tables(suffix: str, make: Any, **settings: Any) -> Target:
    change, read = partial(change_tables, suffix), partial(_read_tables, suffix)
    return Target(suffix[1:], make, change, read, partial(_plain_tables, suffix), **settings)


_change_stream, _change_plan = (partial(_change_toml, n) for n in ("stream.toml", "plan.toml"))
TABLE_TARGETS = (
    _tables(".csv", write_csv, weight=2),
    _tables(".parquet", _make_parquet, lenient=True),
    Target("stream.toml", make_stream, _change_stream, _read_stream, _plain_stream),
    Target("plan.toml", _make_plan, _change_plan, _read_plan, _plain_plan, weight=2),
)
