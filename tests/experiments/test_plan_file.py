"""Plans from TOML: what is read, and the line of whatever is wrong."""

from pathlib import Path

import pytest

from undrift.errors import InputError
from undrift.experiments.plan import BenchPlan
from undrift.experiments.plans import read_plan

GOOD = """\
name = "mine"
title = "Mine"
streams = ["synthetic", "cs-cl"]
methods = ["bare", "adr"]
seeds = [0, 2]
protocol = "local"

[params.adr]
epochs = 5
hidden = [4, 4]

[grid.adr]
gamma = [0.1, 1.0]
alpha = 2
"""


SMALL = 'streams = ["synthetic"]\nmethods = ["bare"]\n'


def read(folder: Path, text: str) -> BenchPlan:
    path = folder / "plan.toml"
    path.write_text(text, "utf-8")
    return read_plan(path)


def test_every_setting_of_a_grid_is_a_row(tmp_path) -> None:
    plan = read(tmp_path, GOOD)
    assert (plan.name, plan.title, plan.protocol) == ("mine", "Mine", "local")
    assert [row.label for row in plan.rows] == [
        "bare",
        "adr gamma=0.1 alpha=2",
        "adr gamma=1.0 alpha=2",
    ]
    assert plan.rows[1].params == {"epochs": 5, "hidden": (4, 4), "gamma": 0.1, "alpha": 2}
    assert plan.seeds == (0, 2)
    assert all(cell.search is None for cell in plan.cells())


def test_with_search_the_grid_is_searched(tmp_path) -> None:
    plan = read(tmp_path, "search = true\n" + GOOD)
    assert [row.label for row in plan.rows] == ["bare", "adr"]
    assert plan.rows[1].grid == {"gamma": (0.1, 1.0), "alpha": (2,)}


def test_a_searched_method_without_a_grid_has_its_own(tmp_path) -> None:
    plan = read(tmp_path, 'search = true\nstreams = ["synthetic"]\nmethods = ["ewc"]\n')
    assert plan.name == "plan"
    assert plan.seeds == (0, 1, 2, 3, 4)
    assert len(plan.rows[0].grid["strength"]) > 1


@pytest.mark.parametrize(
    ("change", "by", "line", "match"),
    [
        ('"cs-cl"', '"cs"', 3, "unknown stream 'cs'.*did you mean 'cs-cl'"),
        ('"bare"', '"bear"', 4, "unknown method 'bear'.*did you mean 'bare'"),
        ("gamma =", "gama =", 13, "unknown parameter of adr 'gama'.*did you mean 'gamma'"),
        ("epochs = 5", 'epochs = "many"', 9, "epochs must be a whole number, not 'many'"),
        ("alpha = 2", "alpha = 0", 14, "alpha must be a whole number of at least 1"),
        ("alpha = 2", "alpha = []", 14, "the grid of alpha has no value"),
        ("[0, 2]", "[0, -2]", 5, "seeds.1: input should be greater"),
        ("[0, 2]", "[1, 1]", 5, "seeds names something twice"),
        ('"local"', '"lokal"', 6, "protocol: input should be 'global' or 'local'"),
        ("title", "titel", 2, "unknown key 'titel'.*did you mean 'title'"),
        ('["bare", "adr"]', '"adr"', 4, "methods: input should be a valid list"),
        ('["bare", "adr"]', '["adr", "adr"]', 4, "methods names something twice"),
        ('["bare", "adr"]', '["bare"]', 8, "methods has no 'adr'"),
        ("[grid.adr]", "[grid.ard]", 12, "unknown method 'ard'"),
        ('"mine"', '"../mine"', 1, "name: string should match"),
        ('"cs-cl"', '"papers/stream.toml"', 3, "papers/stream.toml"),  # found from the plan
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, change, by, line, match) -> None:
    assert change in GOOD
    with pytest.raises(InputError, match=rf"plan.toml, line {line}: .*{match}"):
        read(tmp_path, GOOD.replace(change, by, 1))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('methods = ["bare"]\n', "streams: field required"),
        ('streams = []\nmethods = ["bare"]\n', "line 1: streams: list should have at least 1"),
        ('streams = ["synthetic"]\nmethods = [1]\n', "line 2: methods.0: .*string"),
        ("search = 3\n" + SMALL, "line 1: search: .*boolean"),
        (SMALL + "params = 1\n", "params: .*dictionary"),
        (SMALL + 'arrive = ["blury"]\n', "line 3: unknown arrival 'blury'.*blurry"),
        (SMALL + 'arrive = ["online", "online:batch=64"]\n', "line 3: arrive names something"),
        (SMALL + "[grid]\nbare = 1\n", "grid.bare: .*dictionary"),
        ("a = " + "[" * 3000 + "]" * 3000, "nested too deeply"),
    ],
)
def test_what_a_key_must_be_is_said(tmp_path, text: str, match: str) -> None:
    with pytest.raises(InputError, match=match) as caught:
        read(tmp_path, text)
    assert "\n" not in str(caught.value)


MEAN = "tests.harness.running_mean:RunningMean"
RETURNING = f'streams = ["cs-cl"]\nmethods = ["{MEAN}"]\nseeds = [0]\n'


def test_a_plan_says_how_nodes_arrive(tmp_path) -> None:
    text = RETURNING + 'arrive = ["classes", "blurry:disjoint=0.50", "online:batch=8"]\n'
    plan = read(tmp_path, text)
    assert plan.arrive == ("classes", "blurry", "online:batch=8")
    cells = list(plan.cells())
    assert [cell.run.place for cell in cells] == ["cs-cl", "cs-cl+blurry", "cs-cl+online:batch=8"]
    assert [cell.run.arrive for cell in cells] == list(plan.arrive)
    manifest = plan.manifest({})
    assert manifest.streams == [cell.stream for cell in manifest.cells] == list(plan.places)


def test_an_open_world_plan_grades_its_runs_so_and_searches_as_ever(tmp_path) -> None:
    text = 'search = true\nstreams = ["synthetic"]\nmethods = ["acil"]\nseeds = [0]\n'
    (plain,) = read(tmp_path, text).cells()
    (cell,) = read(tmp_path, "open_world = true\n" + text).cells()
    assert (cell.run.open_world, plain.run.open_world) == (True, False)
    assert cell.search == plain.search
    chosen = cell.search.id if cell.search else ""
    spec = cell.spec({chosen: {"gamma": 0.1}})
    assert spec.open_world
    with pytest.raises(InputError, match=r"plan.toml, line 1: .*use global testing"):
        read(tmp_path, 'open_world = true\nprotocol = "local"\n' + text)


def test_graphs_and_sessions_in_one_plan_meet_their_own_methods(tmp_path) -> None:
    text = 'streams = ["synthetic", "shop"]\nmethods = ["propagation", "next-item"]\nseeds = [0]\n'
    cells = list(read(tmp_path, "open_world = true\n" + text).cells())
    assert [(cell.run.method, cell.run.stream, cell.run.open_world) for cell in cells] == [
        ("propagation", "synthetic", True),
        ("next-item", "shop", False),
    ]
    with pytest.raises(InputError, match=r"line 2: .*'propagation' learns graphs, and no stream"):
        read(tmp_path, text.replace('"synthetic", ', ""))


def test_a_method_that_cannot_learn_again_is_refused_when_the_plan_is_read(tmp_path, monkeypatch):
    from tests.harness.running_mean import RunningMean

    monkeypatch.setattr(RunningMean, "returns", False)
    text = RETURNING + 'arrive = ["classes", "domain"]\n'
    why = "line 2: running-mean cannot learn a class that comes back; "
    with pytest.raises(InputError, match=why):
        read(tmp_path, text)
