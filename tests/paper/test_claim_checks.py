from __future__ import annotations

from typing import Any

import pytest

from paper.claim import Claim
from paper.claim_checks import DRIFT_SHARE, RUN_CHECKS, SEARCH_CHECKS
from paper.claim_runs import Runs
from paper.published import published, published_rows
from tests.experiments.made import made
from undrift.experiments.result import Graded, Metrics, Result
from undrift.experiments.search_record import Search, SearchSpec, Trial
from undrift.experiments.spec import RunSpec


def run(rows: list[list[float]], drift: float | None = 0.0) -> Result:
    return made(rows, {"validation": None, "drift": [0.0, drift]})


def flat(accuracy: float, drift: float | None = 0.0) -> dict[int, Result]:
    """Two seeds, one above and one below."""
    return {seed: run([[a], [a, a]], drift) for seed, a in enumerate((accuracy - 1, accuracy + 1))}


def checked(stream: str, runs: Runs) -> dict[str, Claim]:
    found = (check(stream, runs) for check in RUN_CHECKS)
    return {claim.name: claim for claim in found if claim is not None}


def paper(stream: str, metric: str = "a_f") -> dict[str, dict[int, Result]]:
    """Runs with the numbers that the paper printed."""
    rows = {row: published("table1", row, stream, metric) for row in published_rows("table1")}
    runs = {row: flat(number.mean) for row, number in rows.items() if number}
    for rule in published_rows("ablation"):
        number = published("ablation", rule, stream, metric)
        runs[f"merging={rule}"] = flat(number.mean if number else 0.0)
    return runs


@pytest.mark.parametrize("stream", ["cs-cl", "corafull-cl", "arxiv-cl", "reddit-cl"])
def test_the_papers_own_numbers_agree_with_the_paper(stream: str) -> None:
    claims = checked(stream, paper(stream))
    for name in ("adr-first", "ham-first"):
        assert not claims[name].disagrees
        assert not claims[name].partial
        assert claims[name].seeds == 2
    # on Arxiv-CL the paper itself has ACIL and DS-AL above ADR
    assert claims["adr-first"].holds == (stream != "arxiv-cl")
    assert claims["adr-first"].paper == (stream != "arxiv-cl")


def test_bounds_are_no_competitors_and_equals_are_not_above() -> None:
    runs = {"adr": flat(80), "joint": flat(90), "bare": flat(85), "acil": flat(70)}
    assert checked("photo-cl", runs)["adr-first"].holds
    tie = checked("photo-cl", runs | {"acil": flat(80)})["adr-first"]
    assert not tie.holds
    assert "A_avg ADR 80.00, not above ACIL 80.00" in tie.evidence


def test_rows_without_runs_are_told() -> None:
    claim = checked("cs-cl", {"adr": flat(90), "acil": flat(80)})["adr-first"]
    assert claim.holds
    assert claim.partial
    assert "no runs of LwF, EWC" in claim.evidence
    against = checked("cs-cl", {"adr": flat(80), "cat": flat(88)})["adr-first"]
    assert against.disagrees
    assert "ADR 80.00, not above CaT 88.00 (paper: ADR 90.71, next DS-AL 88.88)" in against.evidence


@pytest.mark.parametrize(
    ("adr", "holds"), [(DRIFT_SHARE * 0.2, True), (DRIFT_SHARE * 0.2 + 1e-6, False)]
)
def test_far_less_drift_is_a_quarter_of_the_smaller(adr: float, holds: bool) -> None:
    runs = {"adr": flat(90, adr), "efc": flat(50, 0.2), "dpcr": flat(50, 0.9)}
    claim = checked("cs-cl", runs)["drift"]
    assert claim.holds == holds
    assert claim.evidence.endswith("ADR 5.0 %, EFC 20.0 %, DPCR 90.0 %.")
    assert claim.paper


def test_near_joint_is_by_our_distance_and_shows_the_papers_numbers() -> None:
    near = checked("cs-cl", {"adr": flat(88), "joint": flat(90)})["near-joint"]
    assert near.holds
    assert near.paper is None
    assert "paper: ADR 87.21, Joint 88.92 (-1.71)" in near.evidence
    assert not checked("cs-cl", {"adr": flat(87.9), "joint": flat(90)})["near-joint"].holds
    assert checked("cs-cl", {"bare": flat(10)}) == {}  # nothing to compare
    assert not {"drift", "no-drift"} & set(checked("cs-cl", {"adr": flat(9, None)}))


def surface(scores: dict[tuple[float, float], float | None]) -> Search:
    grid = {
        "gamma": tuple(dict.fromkeys(g for _, g in scores)),
        "alpha": tuple(dict.fromkeys(a for a, _ in scores)),
    }
    trials = []
    for (alpha, gamma), score in scores.items():
        params: dict[str, Any] = {"alpha": alpha, "gamma": gamma}
        metrics = Metrics(a_avg=score or 0, a_f=0, a_l=0, forgetting=0)
        found = Graded[Metrics](by_class=metrics, by_node=metrics)
        trials.append(Trial(params=params, validation=None if score is None else found))
    spec = SearchSpec(base=RunSpec(method="adr", stream="cs-cl"), grid=grid)
    return Search(spec=spec, trials=trials, chosen=trials[0].params, seconds=1.0)


def test_gamma_and_alpha_from_a_search() -> None:
    scores: dict[tuple[float, float], float | None] = {}
    scores |= {(1, 0.1): 90.0, (1, 1): 90.9, (8, 0.1): 60.0, (8, 1): 89.0}
    gamma, alpha = (check("cs-cl", surface(scores)) for check in SEARCH_CHECKS)
    assert gamma is not None
    assert gamma.holds  # only the smallest alpha counts
    assert "varies by 0.90" in gamma.evidence
    assert alpha is not None
    assert alpha.holds
    assert "1: 90.90, 8: 89.00; best at 1" in alpha.evidence
    failed = scores | {(1, 0.1): None, (8, 1): None}
    gamma, _ = (check("cs-cl", surface(failed)) for check in SEARCH_CHECKS)
    assert gamma is not None
    assert "varies by 0.00" in gamma.evidence
    worse = scores | {(1, 0.1): 80.0, (8, 1): 95.0}
    gamma, alpha = (check("cs-cl", surface(worse)) for check in SEARCH_CHECKS)
    assert gamma is not None
    assert gamma.disagrees
    assert alpha is not None
    assert alpha.disagrees
