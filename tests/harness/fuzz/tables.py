"""Changes to tables: cells, rows and columns of CSV, types of Parquet; and a plain reading."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tests.harness.fuzz.damage import damage_file
from tests.harness.fuzz.values import CELLS

_TYPES = ("INTEGER", "DOUBLE", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP", "BLOB", "UUID")
_CASTS = (
    "[{0}]",
    "[{0}, {0}]",
    "NULL",
    "{{'a': {0}}}",
    "MAP([{0}], [1])",
    "'x'",
    "CASE WHEN random() < 0.2 THEN NULL ELSE {0} END",
    "'nan'::DOUBLE",
    "'inf'::FLOAT",
    "1e300",
    "''",
    "''::BLOB",
    "[]",
)


def change_csv(random: Random, path: Path) -> str:
    """Change a cell, a row, a column or how the file is written."""
    if random.random() < 0.2:
        return damage_file(random, path)
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
    i, j = random.randrange(len(rows)), random.randrange(len(rows[0]))
    kind = random.random()
    if kind < 0.5:
        rows[i][j] = random.choice((*CELLS, random.choice(rows)[j]))
        done = f"cell {i}, {j} is {rows[i][j][:20]!r}"
    elif kind < 0.6:
        rows.insert(random.randrange(1, len(rows)), list(rows[i]))
        done = f"row {i} twice"
    elif kind < 0.65:
        del rows[i]
        done = f"row {i} gone"
    elif kind < 0.7:
        rows[i] = rows[i][:j]
        done = f"row {i} of {j} cells"
    elif kind < 0.75:
        rows = [[*row[:j], *row[j + 1 :]] for row in rows]
        done = f"column {j} gone"
    elif kind < 0.8:
        rows = [[*row, row[j]] for row in rows]
        done = f"column {j} twice"
    elif kind < 0.85:
        rows = [row[j:] + row[:j] for row in rows]
        done = "columns turned"
    else:
        cell = random.choice(CELLS)
        rows = [rows[0], *([*row[:j], cell, *row[j + 1 :]] for row in rows[1:])]
        done = f"column {j} is {cell[:20]!r}"
    file = io.StringIO()
    quoting: Any = random.choice((csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    sign, end = random.choice(",,,,,;"), random.choice(("\n", "\n", "\r\n"))
    csv.writer(file, delimiter=sign, lineterminator=end, quoting=quoting).writerows(rows)
    text = random.choice(("", "", "", "\ufeff", "\n\n")) + file.getvalue()
    code = random.choice(("utf-8", "utf-8", "utf-8", "utf-16", "latin-1"))
    path.write_bytes(text.encode(code, "replace"))
    return f"{path.name}: {done}, {code}, {sign!r}, {end!r}"


def change_parquet(random: Random, path: Path) -> str:
    """Damage a Parquet file, or write it again with a column of another type or content."""
    import duckdb

    if random.random() < 0.5:
        return damage_file(random, path)
    new = path.with_name("new.parquet")
    with duckdb.connect() as base:
        names = [
            c[0] for c in base.execute("SELECT * FROM read_parquet(?)", [str(path)]).description
        ]
        name = random.choice(names)
        quoted = f'"{name}"'
        kind = random.random()
        if kind < 0.4:
            other = f"TRY_CAST({quoted} AS {random.choice(_TYPES)})"
        elif kind < 0.8:
            other = random.choice(_CASTS).format(quoted)
        else:
            other = ""
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


# a plain reading -------------------------------------------------------------------------


def plain_tables(nodes: Path, edges: Path) -> Any:
    """Ids, labels, features and edges of two tables, read cell by cell."""
    head, rows = _rows(nodes)
    wanted = [name for name in head if name not in ("id", "label")]
    ids = [_text(row[head.index("id")]) for row in rows]
    labels = _classes([_text(row[head.index("label")]) for row in rows])
    features = [[x for name in wanted for x in _numbers(row[head.index(name)])] for row in rows]
    head, rows = _rows(edges)
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
