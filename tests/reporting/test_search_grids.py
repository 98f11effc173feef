from __future__ import annotations

from typing import Any

import pytest

from undrift.experiments.result import Graded, Metrics
from undrift.experiments.search_record import Search, SearchSpec, Trial
from undrift.experiments.spec import RunSpec
from undrift.reporting.search_grids import surfaces

GRID: dict[str, tuple[Any, ...]] = {"gamma": (0.1, 1.0), "alpha": (1, 2, 4)}


def search(seed: int, scores: dict[tuple[float, int], float | None], **base: Any) -> Search:
    trials = []
    for (gamma, alpha), score in scores.items():
        metrics = Metrics(a_avg=score or 0, a_f=0, a_l=0, forgetting=0)
        graded = Graded[Metrics](by_class=metrics, by_node=metrics)
        params = {"gamma": gamma, "alpha": alpha}
        missing = score is None
        trials.append(
            Trial(
                params=params,
                validation=None if missing else graded,
                failed="singular" if missing else None,
            )
        )
    best = max(scores, key=lambda place: scores[place] or 0)
    return Search(
        spec=SearchSpec(
            base=RunSpec(**{"stream": "cs-cl", "method": "adr", "seed": seed} | base), grid=GRID
        ),
        trials=trials,
        chosen={"gamma": best[0], "alpha": best[1]},
        seconds=2.0,
    )


ONE = {(0.1, 1): 10.0, (0.1, 2): 20.0, (0.1, 4): 30.0, (1.0, 1): 40.0, (1.0, 2): 50.0}


def test_means_over_seeds_stand_in_the_grid() -> None:
    other = {place: (score or 0) + 2 for place, score in ONE.items()}
    (surface,) = surfaces([search(0, ONE), search(1, other)])
    assert (surface["method"], surface["stream"], surface["seeds"]) == ("ADR", "CS-CL", 2)
    assert (surface["across"], surface["down"]) == ("alpha", "gamma")
    assert surface["columns"] == ["1", "2", "4"]
    assert [label for label, _ in surface["rows"]] == ["0.1", "1"]
    texts = [[spot and spot["text"] for spot in spots] for _, spots in surface["rows"]]
    assert texts == [["11.00", "21.00", "31.00"], ["41.00", "51.00", None]]
    warmest = surface["rows"][1][1][1]
    assert warmest is not None
    assert (warmest["warmth"], warmest["chosen"]) == (1.0, 2)
    coldest = surface["rows"][0][1][0]
    assert coldest is not None
    assert (coldest["warmth"], coldest["chosen"]) == (0.0, 0)


def test_a_failed_setting_has_no_spot_and_does_not_pull_the_mean() -> None:
    (surface,) = surfaces([search(0, ONE), search(1, {**ONE, (0.1, 1): None})])
    first = surface["rows"][0][1][0]
    assert first is not None
    assert first["text"] == "10.00"


def test_methods_and_streams_are_apart_and_stand_ins_marked() -> None:
    found = surfaces(
        [search(0, ONE), search(0, ONE, method="acil"), search(0, ONE, stream="x-stand-in")],
        {"x-stand-in"},
    )
    assert [(s["method"], s["stream"], s["stand_in"]) for s in found] == [
        ("ACIL", "CS-CL", False),
        ("ADR", "CS-CL", False),
        ("ADR", "x-stand-in", True),
    ]


@pytest.mark.parametrize("flat", [{(0.1, 1): 5.0}])
def test_one_value_is_as_warm_as_can_be(flat: dict[tuple[float, int], float | None]) -> None:
    (surface,) = surfaces([search(0, flat)])
    spot = surface["rows"][0][1][0]
    assert spot is not None
    assert spot["warmth"] == 1.0
