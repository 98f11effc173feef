"""Numbers in reasons come from the records, and one that is not there is named."""

from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from paper.reasons import with_numbers
from undrift.errors import InputError
from undrift.experiments.store import Records

SETTINGS = {"strength": 10000.0, "budget": 2, "form": "last"}


@pytest.fixture(scope="module")
def records(fakes) -> Records:
    """Table 1 with every method, and a plan `carried` whose EWC are the runs of MAS, with settings.

    One run of EWC stands in no plan.
    """
    results, plan = fakes.folder()
    table = plan.model_copy(update={"plan": "paper-table1"})

    def as_ewc(method: str, seed: int, params: dict[str, Any]) -> str:
        made = fakes.result("cs-cl", method, seed)
        spec = made.spec.model_copy(update={"params": params, "method": "ewc"})
        results[spec.id] = made.model_copy(update={"spec": spec})
        return spec.id

    as_ewc("twp", 0, {"budget": 3})
    first, second, _ = (c for c in table.cells if (c.row, c.stream) == ("ewc", "cs-cl"))
    runs = [as_ewc("mas", cell.seed, SETTINGS) for cell in (first, second)]
    pairs = zip((first, second), runs, strict=True)
    cells = [cell.model_copy(update={"run": run}) for cell, run in pairs]
    carried = table.model_copy(update={"plan": "carried", "cells": cells})
    return Records(results, [table, carried], [fakes.search()], [], Path())


def said(records: Records, text: str, row: str = "ewc") -> str:
    return with_numbers({("cs-cl", row): text}, records)["cs-cl", row]


def test_a_number_is_the_mean_over_the_seeds_of_its_plan(records: Records, fakes) -> None:
    a_f = [fakes.result("cs-cl", "mas", seed).metrics.by_class.a_f for seed in range(2)]
    every = [fakes.result("cs-cl", "ewc", seed).metrics.by_class for seed in range(3)]
    assert said(records, "from {fresh} to {carried}.") == (
        f"from {fmean(m.a_f for m in every):.1f} to {fmean(a_f):.1f}."
    )
    assert said(records, "{carried//±}") == f"{stdev(a_f):.1f}"
    assert said(records, "{fresh//a_avg}") == f"{fmean(m.a_avg for m in every):.1f}"
    assert said(records, "{fresh/ewc}", "lwf") == said(records, "{fresh}")


def test_settings_the_paper_and_runs_without_a_plan(records: Records, fakes) -> None:
    assert said(records, "{carried//strength} {carried//budget} {carried//form}") == "10,000 2 last"
    assert said(records, "{paper} ± {paper//±}, {paper//a_avg}") == "49.7 ± 5.3, 72.8"
    assert said(records, "{paper}", "none") == "36.6"
    loose = fakes.result("cs-cl", "twp", 0).metrics.by_class.a_f
    assert said(records, "{run/budget=3} {run/budget=3,form=-}") == f"{loose:.1f} {loose:.1f}"


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
