"""The paper's claims, on a small recorded set and on the full results.

`recorded/` holds 28 runs on the generated stream; `recorded/claims.toml` says how to remake them.
`results/` holds the full ones; there the claims of CS-CL are what this library stands for.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from paper.claim import Claim
from paper.claims import claims_of
from paper.compact import is_compact, read_compact
from undrift.experiments.store import Records

RECORDED = Path(__file__).parent / "recorded"
ROOT = Path(__file__).parents[2]
FULL = ROOT / "results"


def by_name(records: Records, stream: str) -> dict[str, Claim]:
    return {claim.name: claim for claim in claims_of(records) if claim.stream == stream}


@pytest.fixture(scope="module")
def recorded() -> Records:
    return read_compact(RECORDED)


def swapped(records: Records, one: str, other: str) -> Records:
    """The records in which two rows have changed what they scored, seed by seed."""
    plan = next(plan for plan in records.manifests if plan.plan == "claims")
    runs = {(cell.row, cell.seed): str(cell.run) for cell in plan.cells}
    results = dict(records.results)
    for (row, seed), mine in runs.items():
        if row in (one, other):
            theirs = records.results[runs[other if row == one else one, seed]]
            scores = {name: getattr(theirs, name) for name in ("matrix", "metrics", "drift")}
            results[mine] = records.results[mine].model_copy(update=scores)
    return replace(records, results=results)


HELD = ("adr-first", "ham-first", "plasticity", "small-alpha")


@pytest.mark.parametrize("name", HELD)
def test_a_claim_holds_on_the_recorded_runs(recorded: Records, name: str) -> None:
    claim = by_name(recorded, "synthetic")[name]
    assert claim.holds, claim.evidence
    assert claim.paper is None  # the paper has no generated stream
    assert claim.seeds == (1 if name == "small-alpha" else 3)


def test_what_does_not_hold_there_is_said_with_its_numbers(recorded: Records) -> None:
    """ADR's drift is half of EFC's on this stream, not a quarter, and it is not zero."""
    claims = by_name(recorded, "synthetic")
    drift = claims["drift"]
    assert not drift.holds
    assert drift.evidence == "Drift after the last task: ADR 4.8 %, EFC 9.5 %, DPCR 43.1 %."
    assert not claims["no-drift"].holds
    assert not claims["near-joint"].holds
    assert not claims["gamma-marginal"].holds


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("adr-first", "ds-al"),
        ("plasticity", "acil"),
        ("ham-first", "adr merge=average"),
    ],
)
def test_a_claim_fails_when_the_numbers_are_swapped(
    recorded: Records, name: str, other: str
) -> None:
    claim = by_name(swapped(recorded, "adr merge=ham", other), "synthetic")[name]
    assert not claim.holds
    assert "not above" in claim.evidence


def test_the_drift_claim_follows_the_numbers(recorded: Records) -> None:
    """ACIL's encoder is frozen: with its drift of zero, ADR would be far under EFC and DPCR."""
    claims = by_name(swapped(recorded, "adr merge=ham", "acil"), "synthetic")
    assert claims["drift"].holds
    assert claims["no-drift"].holds


def test_a_claim_fails_when_the_search_is_turned_round(recorded: Records) -> None:
    search = recorded.searches[0]
    alphas = search.spec.grid["alpha"]
    mirror = dict(zip(alphas, reversed(alphas), strict=True))
    trials = [
        trial.model_copy(
            update={"params": {**trial.params, "alpha": mirror[trial.params["alpha"]]}}
        )
        for trial in search.trials
    ]
    turned = replace(recorded, searches=[search.model_copy(update={"trials": trials})])
    assert not by_name(turned, "synthetic")["small-alpha"].holds


@pytest.fixture(scope="module")
def full() -> Records:
    if not is_compact(FULL):
        pytest.skip("there is no results/runs.csv; make it with make results RUNS=folder")
    return read_compact(FULL)


@pytest.mark.parametrize("name", ["adr-first", "ham-first", "plasticity", "drift"])
def test_the_paper_holds_on_cs_cl(full: Records, name: str) -> None:
    claim = by_name(full, "cs-cl").get(name)
    if claim is None:
        pytest.skip(f"results/ has no runs on CS-CL for {name}; make them with undrift bench")
    assert claim.paper
    assert claim.holds, claim.evidence


def test_the_page_says_where_the_paper_does_not_hold(full: Records) -> None:
    """Whatever the full runs contradict stands on the results page with its numbers."""
    page = " ".join((ROOT / "docs" / "results.md").read_text(encoding="utf-8").split())
    against = [claim for claim in claims_of(full) if claim.disagrees]
    for claim in against:
        assert claim.evidence.replace("_", "\\_") in page, claim
    heading = "Where our runs contradict the paper"
    assert (heading in page) == bool(against)
