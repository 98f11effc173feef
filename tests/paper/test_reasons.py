"""Numbers in reasons come from the records, and one that is not there is named."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from paper.reasons import with_numbers
from undrift.errors import InputError
from undrift.experiments.result import Result
from undrift.experiments.store import Records

SETTINGS = {"strength": 10000.0, "budget": 2, "form": "last"}


@pytest.fixture(scope="module")
def records(fakes: Any) -> Records:
    """Table 1 with every method, and a plan `carried` whose EWC are the runs of MAS, with settings.

    Two runs of EWC stand in no plan.
    """
    results, plan = fakes.folder()
    table = plan.model_copy(update={"plan": "paper-table1"})
    cells = []
    for seed in range(2):
        made: Result = fakes.result("cs-cl", "mas", seed)
        spec = made.spec.model_copy(update={"params": SETTINGS, "method": "ewc"})
        results = {**results, spec.id: made.model_copy(update={"spec": spec})}
        cells.append(_cell(table, "cs-cl", seed, spec.id))
    loose = fakes.result("cs-cl", "twp", 0)
    spec = loose.spec.model_copy(update={"params": {"budget": 3}, "method": "ewc"})
    results = {**results, spec.id: loose.model_copy(update={"spec": spec})}
    carried = table.model_copy(update={"plan": "carried", "cells": cells})
    return Records(results, [table, carried], [fakes.search()], [], Path())


def _cell(table: Any, stream: str, seed: int, run: str) -> Any:
    found = next(c for c in table.cells if (c.row, c.stream, c.seed) == ("ewc", stream, seed))
    return found.model_copy(update={"run": run})


def said(records: Records, text: str, row: str = "ewc") -> str:
    return with_numbers({("cs-cl", row): text}, records)["cs-cl", row]


def test_a_number_is_the_mean_over_the_seeds_of_its_plan(records: Records, fakes: Any) -> None:
    a_f = [fakes.result("cs-cl", "mas", seed).metrics.by_class.a_f for seed in range(2)]
    every = [fakes.result("cs-cl", "ewc", seed).metrics.by_class for seed in range(3)]
    other = [fakes.result("cs-cl", "lwf", seed).metrics.by_class.a_f for seed in range(3)]
    assert said(records, "from {fresh} to {carried}.") == (
        f"from {fmean(m.a_f for m in every):.1f} to {fmean(a_f):.1f}."
    )
    assert said(records, "{carried//±}") == f"{stdev(a_f):.1f}"
    assert said(records, "{fresh//a_avg}") == f"{fmean(m.a_avg for m in every):.1f}"
    assert said(records, "{fresh/lwf}") == f"{fmean(other):.1f}"
    assert len({said(records, f"{{{place}}}") for place in ("fresh", "carried", "fresh/lwf")}) == 3


def test_settings_the_paper_and_runs_without_a_plan(records: Records, fakes: Any) -> None:
    assert said(records, "{carried//strength} {carried//budget} {carried//form}") == "10,000 2 last"
    assert said(records, "{paper} ± {paper//±}, {paper//a_avg}") == "49.7 ± 5.3, 72.8"
    assert said(records, "{paper}", "none") == "36.6"
    loose = fakes.result("cs-cl", "twp", 0).metrics.by_class.a_f
    assert (
        said(records, "{run/budget=3}") == said(records, "{run/budget=3,form=-}") == f"{loose:.1f}"
    )


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("carired", "unknown plan 'carired' .did you mean 'carried'"),
        ("carried/twp", "no run of 'twp' in the plan 'carried'"),
        ("carried//strenght", "no one setting 'strenght'"),
        ("paper/ties", "the paper has no a_f of 'ties'"),
        ("run/budget=9", "there are 0 runs with budget=9"),
        ("run/seed=-", "there are 3 runs with seed=-"),
        ("run/budget", "'budget' are no settings"),
        ("tried/gamma=9", "there are 0 settings tried"),
    ],
)
def test_a_number_that_is_not_there_is_named(records: Records, place: str, why: str) -> None:
    with pytest.raises(InputError, match=why) as caught:
        said(records, f"It is {{{place}}}.")
    assert "reasons.toml, 'ewc' of [cs-cl]" in str(caught.value)
