from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console
from rich.table import Table

from undrift.reporting.terminal import class_ranges, stream_header, tasks_table
from undrift.streams.summary import TaskSummary
from undrift.testing.graphs import tiny_graph, tiny_stream

LARGE = TaskSummary(0, tuple(range(20)), 112_345, 67_407, 22_469, 22_469, 55_123_456, 9_123_456, 24)


def shown(table: Table, width: int = 100) -> list[str]:
    text = StringIO()
    Console(file=text, width=width, no_color=True).print(table)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def test_every_task_has_a_line_and_the_last_line_adds_up() -> None:
    stream = tiny_stream()
    rows = stream.describe()
    lines = shown(tasks_table(rows))
    heading = "task classes nodes train val test edges kept dropped rho_t"
    assert " ".join(lines[1].split()) == heading
    first = next(line for line in lines if line.startswith("T0"))
    assert f" {rows[0].edges:,} " in first
    assert first.endswith("1.0")
    total = lines[-1].split()
    assert total[0] == "all"
    sums = [sum(getattr(row, name) for row in rows) for name in ("nodes", "edges", "dropped")]
    assert [total[2], total[6], total[7]] == [f"{value:,}" for value in sums]


def test_a_graph_as_large_as_reddit_fits_a_hundred_columns() -> None:
    lines = shown(tasks_table([LARGE, replace(LARGE, task=10, classes=(38, 39))]))
    assert max(map(len, lines)) <= 100
    row = next(line for line in lines if line.startswith("T10"))
    numbers = "T10 38, 39 112,345 67,407 22,469 22,469 55,123,456 9,123,456 24.0"
    assert " ".join(row.split()) == numbers
    assert " 0-19 " in next(line for line in lines if line.startswith("T0"))


@pytest.mark.parametrize(
    ("classes", "text"),
    [
        ([3], "3"),
        ([3, 4], "3, 4"),
        ([3, 4, 5], "3-5"),
        ([9, 3, 5, 4], "3-5, 9"),
        ([10**12], "1000000000000"),
        (range(1, 100, 2), "1, 3, ... (50)"),
        ([10**20, 10**20 + 5], f"{10**20}, ... (2)"),
    ],
)
def test_classes_are_written_short(classes: list[int], text: str) -> None:
    assert class_ranges(classes) == text


def test_the_header_has_the_statistics_and_where_the_data_comes_from() -> None:
    stream = replace(tiny_stream(), name="mine", provenance={"file": "x.npz"})
    lines = stream_header(stream, stream.describe())
    graph = stream.graph
    assert lines[0] == "mine"
    assert lines[1] == f"60 nodes, {graph.num_edges} edges, {graph.num_features} features"
    assert "6 classes in 3 tasks (2+2x2), 33.3 % of their nodes in the base task" in lines[2]
    assert lines[3:] == ["file: x.npz"]
    assert "stand-in" not in " ".join(lines)


def test_the_header_of_a_stand_in_says_so_first() -> None:
    stream = replace(tiny_stream(), name="mine-stand-in", provenance={"stand_in": "in part"})
    first = stream_header(stream, stream.describe())[0]
    assert first == "mine-stand-in (stand-in: this data imitates the benchmark)"


def test_the_header_names_other_published_edges_and_unused_nodes() -> None:
    graph = tiny_graph()
    assert graph.labels is not None
    labels = graph.labels.clone()
    labels[:7] = -1
    stream = tiny_stream()
    stream = type(stream).from_graph(replace(graph, labels=labels), base=3, increment=2)
    lines = stream_header(stream, stream.describe(), published_edges=123_456)
    assert "edges (made symmetric from 123,456)" in lines[1]
    assert "3+2+1" in lines[2]
    assert lines[3] == "7 nodes have no label and are in no task"
    same = stream_header(stream, stream.describe(), published_edges=graph.num_edges)
    assert "made symmetric" not in same[1]


def test_it_does_not_import_torch() -> None:
    code = "import sys, undrift.reporting.terminal; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
