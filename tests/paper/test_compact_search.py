from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paper.compact_search import SEARCH_COLUMNS, searches_from, trial_lines
from paper.csv_lines import write_lines
from undrift.experiments.search import settings_of
from undrift.experiments.search_record import Search, SearchSpec, Trial
from undrift.experiments.spec import RunSpec


def search(seed: int = 0, **grid: tuple[Any, ...]) -> Search:
    spec = SearchSpec(base=RunSpec(method="adr", seed=seed, params={"hidden": (8,)}), grid=grid)
    trials = [
        Trial(params={"hidden": (8,), **setting}, validation=None, failed="no")
        for setting in settings_of(grid)
    ]
    return Search(spec=spec, trials=trials, chosen=trials[-1].params, seconds=2.5)


@pytest.mark.parametrize(
    "grid",
    [
        {"gamma": (0.1, 1.0), "alpha": (1, 2)},
        {"alpha": (64, 1), "gamma": (1, 1.0)},  # equal numbers, but another id
        {"merging": ("ham", "none"), "balanced": (True, False)},
        {"hidden": ((8, 8), (16,))},
        {},
    ],
)
def test_the_grid_comes_back_from_the_settings(tmp_path: Path, grid: dict[str, Any]) -> None:
    path = tmp_path / "searches.csv"
    write_lines(path, SEARCH_COLUMNS, trial_lines(search(**grid)))
    (found,) = searches_from(path)
    assert found == search(**grid)
    assert found.spec.id == search(**grid).spec.id
