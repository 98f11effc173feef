"""The named plans hold what they promise."""

import pytest

from undrift.errors import InputError
from undrift.experiments.plans import chosen_plans, named_plan
from undrift.experiments.search import settings_of
from undrift.learners.registry import METHODS, make_learner, method_class

SHARED = {"adr", "adr-plus", "acil", "ds-al", "gacl"}  # their grids train once


@pytest.mark.parametrize("method", METHODS)
def test_every_grid_keeps_the_budget_and_runs(method: str) -> None:
    """At most 28 settings, at most 9 of which train anew: the rule under every table."""
    grid = method_class(method).grid
    limit = 28 if method in SHARED else 9
    assert len(settings_of(grid)) <= limit
    for setting in settings_of(grid):
        make_learner(method, **setting)


def test_plans_can_be_restricted() -> None:
    assert len(list(named_plan("smoke").cells())) == 15
    (plan,) = chosen_plans(["smoke"], seeds=[7])
    assert plan.seeds == (7,)
    assert plan.streams == ("synthetic",)
    assert len(chosen_plans(["smoke", "smoke"])) == 1


@pytest.mark.parametrize("name", ["smoke", "paper"])
def test_a_plan_of_ones_own_takes_no_name_of_ours(tmp_path, name: str) -> None:
    """Its cells would be written into the table of the named plan."""
    own = tmp_path / f"{name}.toml"
    own.write_text('streams = ["synthetic"]\nmethods = ["bare"]\n')
    with pytest.raises(InputError, match=f"is called '{name}' like a plan of undrift"):
        chosen_plans([str(own)])
