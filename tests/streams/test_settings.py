from __future__ import annotations

from datetime import date

import pytest

from undrift.errors import InputError
from undrift.streams.file import parse_settings

TABLES = """\
name = "papers"

[graph]
nodes = "data/nodes.csv"
edges = "data/edges.csv"
time = "year"
"""
TASKS = """
[tasks]
base = 2
increment = 2
"""


def test_what_is_not_said_has_a_default() -> None:
    found = parse_settings(TABLES + TASKS, "stream.toml")
    assert found.name == "papers"
    assert found.graph.model_dump(exclude_none=True) == {
        "nodes": "data/nodes.csv",
        "edges": "data/edges.csv",
        "id": "id",
        "label": "label",
        "source": "source",
        "target": "target",
        "time": "year",
        "undirected": True,
    }
    assert found.tasks is not None
    assert (found.tasks.base, found.tasks.increment, found.tasks.order) == (2, 2, "label")
    assert (found.split.train, found.split.val, found.split.test) == (0.6, 0.2, 0.2)


def test_periods_may_start_at_numbers_or_dates() -> None:
    text = TABLES + "[tasks]\nby = 'time'\nperiods = [2001-05-01, 2005]\n"
    tasks = parse_settings(text, "stream.toml").tasks
    assert tasks is not None
    assert tasks.periods == [date(2001, 5, 1), 2005]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('name = "x"\n[graph\n', "stream.toml is not valid TOML: .*line 2, column"),
        (TABLES + TASKS + "bsae = 3\n", "line 11: unknown key of .tasks. 'bsae' .did you mean "
         "'base'.*: base, by, increment, order, periods"),
        ("colour = 1\n" + TABLES + TASKS, "line 1: unknown key 'colour'.*graph, name, split"),
        (TABLES + "node = 1\n" + TASKS, "line 7: unknown key of .graph. 'node' .did you mean"),
        (TABLES + TASKS + "[spilt]\n", "line 11: unknown key 'spilt' .did you mean 'split'"),
        (TABLES.replace('"year"', "1999") + TASKS, "line 6: graph.time: input should be a"),
        (TABLES + TASKS.replace("= 2", "= 0", 1), "line 9: tasks.base: input should be greater"),
        (TABLES + TASKS.replace("= 2", "= 2.5", 1), "line 9: tasks.base: input should be a valid"),
        (TABLES + TASKS.replace("base = 2", ""), "line 8: tasks: give base and increment"),
        (TABLES + TASKS + "order = 'best'\n", "line 11: tasks.order: give .label., .random. or"),
        (TABLES + TASKS + "order = [1, 'a']\n", "line 11: tasks.order: give"),
        (TABLES + TASKS + "order = []\n", "line 11: tasks.order: give"),
        (TABLES + TASKS + "periods = 3\n", "line 8: tasks: periods needs by"),
        (TABLES + TASKS + "by = 'time'\nperiods = 3\n", "line 8: tasks: base is for tasks by"),
        (TABLES + "[tasks]\nby = 'time'\n", "line 7: tasks: by = .time. needs periods"),
        (TABLES + "[tasks]\nby = 'size'\n", "line 8: tasks.by: input should be 'time'"),
        (TABLES + "[tasks]\nby = 'time'\nperiods = 'all'\n", "line 9: tasks.periods: give a whole"),
        (TABLES + "[tasks]\nby = 'time'\nperiods = [true]\n", "line 9: tasks.periods: give a"),
        (TABLES, "give either .tasks. or, in .split., the file"),
        (TABLES + TASKS + "[split]\nfile = 's.npz'\n", "give either .tasks. or"),
        (TABLES + TASKS + "[split]\ntrain = 0.9\n", "line 11: split: train, val and test must add"),
        (TABLES + "[split]\nfile = 's.npz'\ntrain = 0.5\n", "leave out train, val and test"),
        (TABLES.replace("edges =", "#") + TASKS, "line 3: graph: give npz = .* or both nodes"),
        (TABLES + "npz = 'g.npz'\n" + TASKS, "line 3: graph: edges is for tables"),
        ("name = 'x'\n" + TASKS, "stream.toml needs .graph."),
        (TABLES.replace("name", "#") + TASKS, "stream.toml needs a value for 'name'"),
        (TABLES.replace("papers", "cs-cl") + TASKS, "line 1: name: cs-cl is the name of a bench"),
        ("name = 'x'\ngraph = 'g.npz'\n" + TASKS, "line 2: graph: input should be"),
    ],
)  # fmt: skip
def test_a_bad_file_is_one_sentence_with_its_line(text: str, what: str) -> None:
    with pytest.raises(InputError, match=what) as caught:
        parse_settings(text, "my/stream.toml")
    assert "\n" not in str(caught.value)
    assert "my/stream.toml" in str(caught.value)
