from __future__ import annotations

import io

import pytest
from rich.console import Console

from undrift.reporting.terminal import fitting, query_table, shown


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("a_f", None, ""),
        ("a_f", 84.6158, "84.62"),
        ("forgetting", 0.0, "0.00"),
        ("drift_last", 0.00123456, "0.00123"),
        ("param_gamma", 0.001, "0.001"),
        ("param_gamma", 1.0, "1"),
        ("seed", 12345, "12345"),
        ("keeps_examples", False, "no"),
        ("params", "{}", ""),
        ("params", '{"a": [1, "x"], "b": null, "c": true}', "a=1,x b=null c=true"),
        ("params", "[1]", "[1]"),
        ("params", "mine", "mine"),
    ],
)
def test_cells_as_people_read_them(name: str, value: object, text: str) -> None:
    assert shown(name, value) == text


def test_columns_are_given_up_until_the_rest_fits() -> None:
    names, cells = ["id", "stream", "a_f"], [["a" * 12, "b" * 10, "80.00"]]
    assert fitting(names, cells, 31) == [0, 1, 2]  # 12 + 2 + 10 + 2 + 5
    assert fitting(names, cells, 30) == [0, 1]
    assert fitting(names, cells, 30, given_up=["nowhere", "stream"]) == [0, 2]
    assert fitting(names, cells, 3) == [0]
    assert fitting([], [], 3) == []


@pytest.mark.parametrize("width", [80, 33, 12])
def test_what_fits_is_printed_on_one_line_each(width: int) -> None:
    names = ["id", "params", "a_f"]
    cells = [["abc", "gamma=0.1 " * 20, "80.00"], ["[bold]", "", "7.00"]]
    kept = fitting(names, cells, width)
    file = io.StringIO()
    Console(file=file, width=width).print(
        query_table(
            [names[i] for i in kept], [[row[i] for i in kept] for row in cells], [False] * len(kept)
        )
    )
    lines = file.getvalue().splitlines()
    assert len(lines) == 4
    assert max(map(len, lines)) <= width
    assert lines[3].startswith("[bold]")
