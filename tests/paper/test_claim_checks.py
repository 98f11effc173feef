"""The paper's claims one by one, and which runs they are checked on."""

from pathlib import Path
from typing import Any

import pytest

from paper.claim import Claim
from paper.claim_checks import RUN_CHECKS
from paper.claim_runs import Runs, adr_searches, claimed_runs
from paper.claims import claims_of
from paper.published import published, published_rows
from tests.experiments.made import made, searched
from undrift.experiments.result import Result
from undrift.experiments.search import Search
from undrift.experiments.store import Manifest, PlannedRun, Records


def flat(accuracy: float, drift: float | None = 0.0) -> dict[int, Result]:
    """Two seeds, one above and one below."""
    fields = {"validation": None, "drift": [0.0, drift]}
    means = enumerate((accuracy - 1, accuracy + 1))
    return {seed: made([[a], [a, a]], fields) for seed, a in means}


def checked(stream: str, runs: Runs) -> dict[str, Claim]:
    found = (check(stream, runs) for check in RUN_CHECKS)
    return {claim.name: claim for claim in found if claim is not None}


@pytest.mark.parametrize("stream", ["cs-cl", "corafull-cl", "arxiv-cl", "reddit-cl"])
def test_the_papers_own_numbers_agree_with_the_paper(stream: str) -> None:
    rows = {row: published("table1", row, stream, "a_f") for row in published_rows("table1")}
    runs = {row: flat(number.mean) for row, number in rows.items() if number}
    for rule in published_rows("ablation"):
        number = published("ablation", rule, stream, "a_f")
        runs[f"merging={rule}"] = flat(number.mean if number else 0.0)
    claims = checked(stream, runs)
    for claim in (claims["adr-first"], claims["ham-first"]):
        assert (claim.disagrees, claim.partial, claim.seeds) == (False, False, 2)
    # on Arxiv-CL the paper itself has ACIL and DS-AL above ADR
    assert claims["adr-first"].holds == claims["adr-first"].paper == (stream != "arxiv-cl")


def test_bounds_are_no_competitors_and_equals_are_not_above() -> None:
    runs = {"adr": flat(80), "joint": flat(90), "bare": flat(85), "acil": flat(70)}
    assert checked("photo-cl", runs)["adr-first"].holds
    tie = checked("photo-cl", runs | {"acil": flat(80)})["adr-first"]
    assert not tie.holds
    assert "A_avg ADR 80.00, not above ACIL 80.00" in tie.evidence


def test_rows_without_runs_are_named() -> None:
    claim = checked("cs-cl", {"adr": flat(90), "acil": flat(80)})["adr-first"]
    assert claim.holds
    assert claim.partial
    assert "no runs of LwF, EWC" in claim.evidence
    against = checked("cs-cl", {"adr": flat(80), "cat": flat(88)})["adr-first"]
    assert against.disagrees
    assert "ADR 80.00, not above CaT 88.00 (paper: ADR 90.71, next DS-AL 88.88)" in against.evidence


def run(stand_in: bool = False, **spec: Any) -> Result:
    fields = {"provenance": {"stand_in": stand_in}}
    return made([[50.0]], fields, **{"stream": "cs-cl", "method": "adr"} | spec)


def records(name: str, rows: dict[str, Result], unfinished: tuple[str, ...] = ()) -> Records:
    """The runs of a plan with a row each, some of which have not ended."""
    about = {"method", "stream", "seed"}
    specs = {row: run.spec for row, run in rows.items()}
    cells = [PlannedRun(run=s.id, row=r, **s.model_dump(include=about)) for r, s in specs.items()]
    plan = Manifest(plan=name, title=name, rule="", rows=[*rows], streams=["cs-cl"], cells=cells)
    ended = {r.spec.id: r for row, r in rows.items() if row not in unfinished}
    return Records(ended, [plan], [], [], Path())


def test_merging_rules_are_known_by_their_settings() -> None:
    rules = {rule: run(params={"merging": rule}) for rule in ("none", "average")}
    ham = run()
    assert claimed_runs(records("paper-ablation", {**rules, "ham": ham}))["cs-cl"] == {
        "merging=none": {0: rules["none"]},
        "merging=average": {0: rules["average"]},
        "merging=ham": {0: ham},
        "adr": {0: ham},
    }


def test_local_testing_and_unfinished_runs_do_not_count() -> None:
    rows = {"adr": run(protocol="local"), "gone": run(seed=1)}
    assert claimed_runs(records("a", rows, unfinished=("gone",))) == {}


def test_the_search_of_plain_adr_with_the_lowest_seed() -> None:
    def search(**base: Any) -> Search:
        grid = [{"alpha": a, "gamma": g} for a in (1, 2) for g in (0.1, 1.0)]
        return searched([(setting, 50.0) for setting in grid], **base)

    wanted = search()
    others = [search(method="acil"), search(params={"merging": "none"}), search(seed=1)]
    narrow = searched([({"gamma": 0.1}, 50.0)])
    assert adr_searches([*others, narrow, wanted]) == {"cs-cl": wanted}


def test_claims_on_stand_ins_say_so() -> None:
    rows = {"adr": run(True), "acil": run(True, method="acil")}
    claims = claims_of(records("paper-table1", rows))
    assert claims
    assert all(claim.stand_in for claim in claims)
