"""Targets: what people write by hand or export: tables, streams, plans."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.harness.fuzz.damage import damage_file
from tests.harness.fuzz.guard import Target
from tests.harness.fuzz.tables import change_csv, change_parquet, plain_tables
from tests.harness.fuzz.values import change_toml
from undrift.datasets.tables import read_tables
from undrift.experiments.plans import read_plan
from undrift.streams.file import load_stream_file
from undrift.testing.graphs import tiny_graph

Change = Callable[[Random, Path], str]


def write_csv(folder: Path, nodes: int = 24) -> None:
    """A tiny graph as nodes.csv and edges.csv."""
    graph = tiny_graph(nodes=nodes, features=3, classes=4)
    pairs = graph.adjacency.to_scipy().tocoo()
    lines = ["id,label,x,y,z"]
    rows = zip(graph.labelled().tolist(), graph.features.tolist(), strict=True)  # type: ignore[union-attr]
    lines += [f"n{i},{'abcd'[c]},{','.join(map(str, x))}" for i, (c, x) in enumerate(rows)]
    ends = [f"n{s},n{t}" for s, t in zip(pairs.col, pairs.row, strict=True) if s < t]
    (folder / "nodes.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "edges.csv").write_text("\n".join(["source,target", *ends]) + "\n", encoding="utf-8")


def _make_parquet(folder: Path) -> None:
    import duckdb

    write_csv(folder)
    with duckdb.connect() as base:
        for name in ("nodes", "edges"):
            path = folder / name
            base.execute(f"COPY (FROM read_csv('{path}.csv')) TO '{path}.parquet'")
            path.with_suffix(".csv").unlink()


def _change_tables(suffix: str) -> Change:
    def change(random: Random, folder: Path) -> str:
        path = folder / f"{random.choice(('nodes', 'nodes', 'edges'))}{suffix}"
        return change_csv(random, path) if suffix == ".csv" else change_parquet(random, path)

    return change


def _read_tables(suffix: str) -> Callable[[Path], Any]:
    def read(folder: Path) -> Any:
        found = read_tables(folder / f"nodes{suffix}", folder / f"edges{suffix}")
        classes = [found.class_names.get(c, "") for c in found.graph.labelled().tolist()]
        pairs = found.graph.adjacency.to_scipy().tocoo()
        edges = sorted(zip(pairs.row.tolist(), pairs.col.tolist(), strict=True))
        matrix = found.graph.features.numpy()  # type: ignore[union-attr]
        return [str(i) for i in found.node_ids.tolist()], classes, matrix.tobytes(), edges

    return read


def _plain_tables(suffix: str) -> Callable[[Path], Any]:
    return lambda folder: plain_tables(folder / f"nodes{suffix}", folder / f"edges{suffix}")


# TOML ------------------------------------------------------------------------------------

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
order = ["a", "c", "b", "d"]

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


def _change_toml(name: str) -> Change:
    def change(random: Random, folder: Path) -> str:
        path = folder / name
        if random.random() < 0.2:
            return damage_file(random, path)
        text, done = path.read_text(encoding="utf-8"), []
        for _ in range(random.choice((1, 1, 2))):
            text, told = change_toml(random, text)
            done.append(told)
            if not text.strip():
                break
        path.write_text(text, encoding="utf-8")
        return " and ".join(done)

    return change


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
            from undrift.learners.registry import method_class

            grid = grid if method in told.get("grid", {}) else method_class(method).grid
            rows.append((method, _lists(params), {k: _several(v) for k, v in _lists(grid).items()}))
            continue
        settings: list[dict[str, Any]] = [{}]
        for key, values in grid.items():
            settings = [s | {key: v} for s in settings for v in _several(values)]
        rows += [(method, _lists(params | s), {}) for s in settings]
    name = told.get("name") or "plan"
    return (
        name,
        told.get("title") or name,
        told["streams"],
        told.get("seeds", [0, 1, 2, 3, 4]),
        told.get("protocol", "global"),
        told.get("arrive", ["classes"]),
        rows,
    )


def _several(values: Any) -> list[Any]:
    return list(values) if isinstance(values, list | tuple) else [values]


def _lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _lists(part) for name, part in value.items()}
    return list(map(_lists, value)) if isinstance(value, list | tuple) else value


TABLE_TARGETS = (
    Target(
        "csv",
        write_csv,
        _change_tables(".csv"),
        _read_tables(".csv"),
        _plain_tables(".csv"),
        weight=2,
    ),
    Target(
        "parquet",
        _make_parquet,
        _change_tables(".parquet"),
        _read_tables(".parquet"),
        _plain_tables(".parquet"),
        lenient=True,
    ),
    Target("stream.toml", make_stream, _change_toml("stream.toml"), _read_stream, _plain_stream),
    Target("plan.toml", _make_plan, _change_toml("plan.toml"), _read_plan, _plain_plan, weight=2),
)
