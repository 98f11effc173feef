from typing import Any

from tests.experiments.made import searched
from undrift.experiments.search import Search
from undrift.reporting.search_grids import search_grids


def search(seed: int, scores: dict[tuple[float, int], float | None], **base: Any) -> Search:
    found = [({"gamma": g, "alpha": a}, score) for (g, a), score in scores.items()]
    return searched(found, seed=seed, **base)


ONE = {(0.1, 1): 10.0, (0.1, 2): 20.0, (0.1, 4): 30.0, (1.0, 1): 40.0, (1.0, 2): 50.0}


def test_means_over_seeds_stand_in_the_grid() -> None:
    other = {place: (score or 0) + 2 for place, score in ONE.items()}
    (grid,) = search_grids([search(0, ONE), search(1, other)])
    assert (grid.base.method, grid.base.place, len(grid.searches)) == ("adr", "cs-cl", 2)
    assert (grid.across, grid.down) == ("alpha", ["gamma"])
    assert grid.values["alpha"] == [1, 2, 4]
    rows = dict(grid.rows)
    assert list(rows) == ["0.1", "1"]
    scores = [[grid.scores.get(key) for key in keys] for keys in rows.values()]
    assert scores == [[11.0, 21.0, 31.0], [41.0, 51.0, None]]
    warmest, coldest = rows["1"][1], rows["0.1"][0]
    assert (grid.warmth(warmest), grid.chosen[warmest]) == (1.0, 2)
    assert (grid.warmth(coldest), grid.chosen[coldest]) == (0.0, 0)


def test_a_failed_setting_does_not_pull_the_mean() -> None:
    (grid,) = search_grids([search(0, ONE), search(1, {**ONE, (0.1, 1): None})])
    assert grid.scores["1", "0.1"] == 10.0
    (grid,) = search_grids([search(0, {(0.1, 1): 5.0})])
    assert grid.warmth(("1", "0.1")) == 1.0


def test_methods_and_streams_are_apart() -> None:
    changed: list[dict[str, str]] = [{}, {"method": "acil"}, {"stream": "x-stand-in"}]
    found = search_grids([search(0, ONE, **each) for each in changed])
    places = [(grid.base.method, grid.base.place) for grid in found]
    assert places == [("acil", "cs-cl"), ("adr", "cs-cl"), ("adr", "x-stand-in")]
