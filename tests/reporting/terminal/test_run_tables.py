from __future__ import annotations

import subprocess
import sys
from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from paper.stand_ins import STAND_INS
from undrift.datasets.catalogue import OWN
from undrift.evaluation.matrix import AccuracyMatrix
from undrift.experiments.result import Result
from undrift.learners.registry import METHODS
from undrift.reporting.terminal import (
    cost_table,
    matrix_table,
    methods_table,
    metrics_table,
    streams_table,
)
from undrift.streams.benchmarks import STREAMS, StreamInfo


def shown(table: Table, width: int = 200) -> list[str]:
    text = StringIO()
    Console(file=text, width=width, no_color=True).print(table)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def result(**changes: Any) -> Result:
    metrics = {"a_avg": 82.5, "a_f": 75.0, "a_l": 85.0, "forgetting": 20.0}
    nodes = {"a_avg": 1.0, "a_f": 2.0, "a_l": 3.0, "forgetting": -4.0}
    data: dict[str, Any] = {
        "spec": {"stream": "cs-cl"},
        "matrix": {"class": [[90.0], [70.0, 80.0]], "node": [[90.0], [70.0, 80.0]]},
        "metrics": {"class": metrics, "node": nodes},
        "validation": None,
        "drift": [0.0, 0.25, 0.125],
        "cost": {
            "seconds": {"train": 12.0, "tiny": 0.0001, "evaluate": 0.5, "total": 12.5001},
            "peak_memory_mb": 1234.5,
            "state_mb": 3.14159,
            "threads": 2,
        },
        "versions": {},
        "provenance": {"stand_in": False},
    }
    return Result.model_validate(data | changes)


def test_the_matrix_is_triangular_with_a_t_at_the_end() -> None:
    matrix = AccuracyMatrix([[90.0], [70.0, 80.0], [10.0, 20.0, 100.0]])
    lines = shown(matrix_table(matrix, title="Accuracy"))
    assert lines[0] == "Accuracy"
    assert lines[1].split() == ["after", "T0", "T1", "T2", "A_t"]
    assert lines[3].split() == ["T0", "90.0", "90.0"]
    assert lines[4].split() == ["T1", "70.0", "80.0", "75.0"]
    assert lines[5].split() == ["T2", "10.0", "20.0", "100.0", "43.3"]
    ends = {len(line) for line in lines[3:]}
    assert len(ends) == 1  # A_t stands in one column although the rows have different lengths


def square(size: int) -> AccuracyMatrix:
    return AccuracyMatrix([[50.5 + i for i in range(t + 1)] for t in range(size)])


@pytest.mark.parametrize("size", [1, 4, 11, 21, 60])
@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_matrix_is_wider_than_asked_or_cut(size: int, width: int) -> None:
    matrix = AccuracyMatrix([[99.96] * (t + 1) for t in range(size)])
    lines = shown(matrix_table(matrix, width=width))
    assert max(map(len, lines)) <= width
    assert "…" not in "\n".join(lines)
    assert lines[-1].split()[-1] == "100.0"


def test_a_wide_matrix_loses_decimals_then_its_middle() -> None:
    assert "60.5" in shown(matrix_table(square(11), width=80))[-1]
    whole = shown(matrix_table(square(11), width=66))[-1].split()
    assert whole[1:4] == ["50", "52", "52"]  # halves go to the even neighbour
    cut = shown(matrix_table(square(21), width=80))
    heading, last = cut[1].split(), cut[-1].split()
    assert heading[1] == "T0"
    assert heading[-2] == "T20"
    assert heading.count("...") == last.count("...") == 1
    assert len(heading) == len(last)
    assert "..." not in cut[3]  # the first row has nothing there to leave out


def test_metrics_by_class_and_by_node() -> None:
    lines = shown(metrics_table(result()))
    assert lines[3].split() == ["test", "by", "class", "82.50", "75.00", "85.00", "20.00"]
    assert lines[4].split() == ["by", "node", "1.00", "2.00", "3.00", "-4.00"]
    assert len(lines) == 5


def test_validation_metrics_stand_below() -> None:
    lines = shown(metrics_table(result(validation=result().metrics)))
    assert lines[5].startswith("validation  by class  82.50")


def test_the_cost_names_phases_memory_state_and_drift() -> None:
    text = "\n".join(shown(cost_table(result())))
    assert "12.50 (train 12.00, evaluate 0.50)" in text  # a phase of no length is not named
    assert "1.2 GB" in text
    assert "3.1 MB" in text
    assert "12.50 % at the end, 25.00 % at most" in text


@pytest.mark.parametrize(
    ("drift", "text"),
    [([], "not measured"), ([0.0, None], "undefined at the end, 0.00 % at most")],
)
def test_drift_that_is_no_number_is_said_in_words(drift: list[float], text: str) -> None:
    assert text in "\n".join(shown(cost_table(result(drift=drift))))


def test_unknown_memory_is_said_in_words() -> None:
    cost = result().cost.model_copy(update={"peak_memory_mb": None})
    assert "peak memory      unknown" in "\n".join(shown(cost_table(result(cost=cost))))


def test_every_stream_is_listed_with_its_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UNDRIFT_DATA", raising=False)
    lines = shown(streams_table(STREAMS.values()))
    assert len(lines) == 3 + len(STREAMS)
    cs = next(line for line in lines if line.startswith("cs-cl"))
    assert "18,333" in cs
    assert "6 (5+5x2)" in cs
    assert "  no  " in cs
    assert "generated" in next(line for line in lines if line.startswith("synthetic"))


def test_a_stream_on_disk_and_a_stand_in_are_marked() -> None:
    class Here(StreamInfo):
        def on_disk(self) -> bool:
            return True

    info = Here("x-stand-in", OWN["corafull-cl"], STAND_INS["cora-full"])
    line = shown(streams_table([info]))[-1]
    assert "  yes  " in line
    assert line.endswith("real links and labels (stand-in)")


def test_every_method_is_listed() -> None:
    lines = shown(methods_table(METHODS.values()))
    assert len(lines) == 3 + len(METHODS)
    adr = next(line for line in lines if line.startswith("adr"))
    assert METHODS["adr"].paper in adr
    joint = next(line for line in lines if line.startswith("joint"))
    assert joint.split()[2:6] == ["yes", "yes", "no", "no"]
    assert "keeps examples  returns  forgets  merges" in " ".join(lines)
    ds_al = next(line for line in lines if line.startswith("ds-al"))
    assert ds_al.count("if set") == 3


def test_tables_do_not_import_torch() -> None:
    code = "import sys, undrift.reporting.terminal; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
