"""Tables for the terminal: of runs, of streams and methods, of datasets, and of queries."""

from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from tests.reporting.conftest import Fakes
from undrift.datasets import Dataset, RemoteFile
from undrift.evaluation.matrix import AccuracyMatrix
from undrift.experiments.result import Result
from undrift.learners.registry import METHODS
from undrift.reporting import terminal
from undrift.reporting.terminal import data_table, matrix_table, stream_header
from undrift.testing.graphs import tiny_graph, tiny_stream


def shown(table: Table, width: int = 200) -> list[str]:
    text = StringIO()
    Console(file=text, width=width, no_color=True).print(table)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def row(lines: list[str], start: str) -> str:
    return next(line for line in lines if line.startswith(start))


def result(**changes: Any) -> Result:
    seconds = {"train": 12.0, "tiny": 0.0001, "evaluate": 0.5, "total": 12.5001}
    cost = {"seconds": seconds, "peak_memory_mb": 1234.5, "state_mb": 3.14159, "threads": 2}
    by_class = {"a_avg": 82.5, "a_f": 75.0, "a_l": 85.0, "forgetting": 20.0}
    by_node = {"a_avg": 1.0, "a_f": 2.0, "a_l": 3.0, "forgetting": -4.0}
    fields = {"metrics": {"class": by_class, "node": by_node}, "drift": [0.0, 0.25, 0.125]}
    return Fakes.plain({}, **fields | {"cost": cost} | changes)


def test_the_matrix_is_triangular_with_a_t_at_the_end() -> None:
    matrix = AccuracyMatrix([[90.0], [70.0, 80.0], [10.0, 20.0, 100.0]])
    lines = shown(matrix_table(matrix, title="Accuracy"))
    assert lines[0] == "Accuracy"
    assert lines[1].split() == ["after", "T0", "T1", "T2", "A_t"]
    assert lines[3].split() == ["T0", "90.0", "90.0"]
    assert lines[4].split() == ["T1", "70.0", "80.0", "75.0"]
    assert lines[5].split() == ["T2", "10.0", "20.0", "100.0", "43.3"]
    assert (
        len(set(map(len, lines[3:]))) == 1
    )  # A_t stands in one column although the rows have different lengths


@pytest.mark.parametrize("size", [1, 4, 11, 21, 60])
@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_matrix_is_wider_than_asked_or_cut(size: int, width: int) -> None:
    matrix = AccuracyMatrix([[99.96] * (t + 1) for t in range(size)])
    lines = shown(matrix_table(matrix, width=width))
    assert max(map(len, lines)) <= width
    assert "…" not in "\n".join(lines)
    assert lines[-1].split()[-1] == "100.0"


def test_a_wide_matrix_loses_decimals_then_its_middle() -> None:
    def square(size: int) -> AccuracyMatrix:
        return AccuracyMatrix([[50.5 + i for i in range(t + 1)] for t in range(size)])

    assert "60.5" in shown(matrix_table(square(11), width=80))[-1]
    whole = shown(matrix_table(square(11), width=66))[-1].split()
    assert whole[1:4] == ["50", "52", "52"]  # halves go to the even neighbour
    cut = shown(matrix_table(square(21), width=80))
    heading, last = cut[1].split(), cut[-1].split()
    assert (heading[1], heading[-2]) == ("T0", "T20")
    assert heading.count("...") == last.count("...") == 1
    assert len(heading) == len(last)
    assert "..." not in cut[3]  # the first row has nothing there to leave out


def test_metrics_by_class_and_by_node_of_test_and_validation_nodes() -> None:
    lines = shown(terminal.metrics_table(result()))
    assert lines[3].split() == ["test", "by", "class", "82.50", "75.00", "85.00", "20.00"]
    assert lines[4].split() == ["by", "node", "1.00", "2.00", "3.00", "-4.00"]
    assert len(lines) == 5
    lines = shown(terminal.metrics_table(result(validation=result().metrics)))
    assert lines[5].startswith("validation  by class  82.50")


def test_the_cost_names_phases_memory_state_and_drift() -> None:
    def table(**changes: Any) -> str:
        return "\n".join(shown(terminal.cost_table(result(**changes))))

    every = "12.50 (train 12.00, evaluate 0.50)", "1.2 GB", "3.1 MB", "12.50 % at the end, 25.00"
    assert all(text in table() for text in every)  # a phase of no length is not named
    assert "not measured" in table(drift=[])
    assert "undefined at the end, 0.00 % at most" in table(drift=[0.0, None])
    unknown = result().cost.model_copy(update={"peak_memory_mb": None})
    assert "peak memory      unknown" in table(cost=unknown)


def test_every_method_is_listed_with_what_it_can_do() -> None:
    lines = shown(terminal.methods_table(METHODS.values()))
    assert len(lines) == 3 + len(METHODS)
    assert METHODS["adr"].paper in row(lines, "adr")
    assert row(lines, "joint").split()[2:6] == ["yes", "yes", "no", "no"]
    assert "keeps examples  returns  forgets  merges" in " ".join(lines)
    assert row(lines, "ds-al").count("if set") == 3


def test_every_task_has_a_line_and_the_last_line_adds_up() -> None:
    rows = tiny_stream().describe()
    lines = shown(terminal.tasks_table(rows))
    heading = "task classes nodes train val test edges kept dropped rho_t"
    assert " ".join(lines[1].split()) == heading
    assert f" {rows[0].edges:,} " in row(lines, "T0")
    assert row(lines, "T0").endswith("1.0")
    total = lines[-1].split()
    assert total[0] == "all"
    sums = [sum(getattr(row, name) for row in rows) for name in ("nodes", "edges", "dropped")]
    assert [total[2], total[6], total[7]] == [f"{value:,}" for value in sums]


@pytest.mark.parametrize(
    ("classes", "text"),
    [
        ([3], "3"),
        ([9, 3, 5, 4], "3-5, 9"),
        ([10**12], "1000000000000"),
        (range(1, 100, 2), "1, 3, ... (50)"),
        ([10**20, 10**20 + 5], f"{10**20}, ... (2)"),
    ],
)
def test_classes_are_written_short(classes: list[int], text: str) -> None:
    assert terminal.class_ranges(classes) == text


def test_the_header_has_the_statistics_and_where_the_data_comes_from() -> None:
    stream = replace(tiny_stream(), name="mine", provenance={"file": "x.npz"})
    lines, graph = stream_header(stream, stream.describe()), stream.graph
    size = f"60 nodes, {graph.num_edges} edges, {graph.num_features} features"
    assert lines[:2] == ["mine", size]
    assert "6 classes in 3 tasks (2+2x2), 33.3 % of their nodes in the base task" in lines[2]
    assert lines[3:] == ["file: x.npz"]
    stand_in = replace(stream, provenance={"stand_in": "in part"})
    assert "stand-in: this data imitates" in stream_header(stand_in, stream.describe())[0]


def test_the_header_names_other_published_edges_and_unused_nodes() -> None:
    graph = tiny_graph()
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


FILES = (RemoteFile("a.npz", "u", size=1500), RemoteFile("b.npz", "v"))
TWO = Dataset("two", "Two", FILES, 12_345, 67_890, 3, 4, "MIT", "example.org")


def test_size_and_on_disk_follow_the_files(tmp_path) -> None:
    def text(dataset: Dataset) -> str:
        return " ".join(row(shown(data_table([dataset], tmp_path)), "two").split())

    start = "two 12,345 67,890 a.npz, b.npz"
    assert text(TWO) == f"{start} - no MIT example.org"
    assert "a.npz 1.5 kB no MIT" in text(replace(TWO, files=FILES[:1]))  # as published
    (tmp_path / "a.npz").write_bytes(bytes(1000))
    assert text(TWO) == f"{start} - in part MIT example.org"
    (tmp_path / "b.npz").write_bytes(bytes(2000))
    assert text(TWO) == f"{start} 3.0 kB yes MIT example.org"
