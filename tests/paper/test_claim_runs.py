from __future__ import annotations

from pathlib import Path
from typing import Any

from paper.claim_runs import adr_searches, claimed_runs
from paper.claims import claims_of
from tests.experiments.made import made
from undrift.experiments.manifest import Manifest, PlannedRun
from undrift.experiments.result import Result
from undrift.experiments.search_record import Search, SearchSpec
from undrift.experiments.spec import RunSpec
from undrift.experiments.store import Records


def run(stand_in: bool = False, **spec: Any) -> Result:
    fields = {"provenance": {"stand_in": stand_in}}
    return made([[50.0]], fields, **{"stream": "cs-cl", "method": "adr"} | spec)


def plan(name: str, *rows: tuple[str, Result]) -> Manifest:
    cells = [
        PlannedRun(
            row=row, method=r.spec.method, stream=r.spec.stream, seed=r.spec.seed, run=r.spec.id
        )
        for row, r in rows
    ]
    return Manifest(
        plan=name,
        title=name,
        rule="",
        rows=list(dict.fromkeys(row for row, _ in rows)),
        streams=["cs-cl"],
        cells=cells,
    )


def records(*plans: Manifest, results: list[Result], searches: tuple[Search, ...] = ()) -> Records:
    by_id = {result.spec.id: result for result in results}
    return Records(by_id, list(plans), list(searches), [], Path())


def test_the_papers_table_comes_before_other_plans() -> None:
    mine, papers = run(method="adr", params={"gamma": 0.5}), run(method="adr")
    more = [run(method="adr", seed=seed, params={"gamma": 0.5}) for seed in (1, 2)]
    found = claimed_runs(
        records(
            plan("a", ("adr", mine), *(("adr", each) for each in more)),
            plan("paper-table1", ("adr", papers)),
            results=[mine, papers, *more],
        )
    )
    assert found["cs-cl"]["adr"] == {0: papers}


def test_merging_rules_are_told_by_their_settings() -> None:
    rules = {rule: run(params={"merging": rule}) for rule in ("none", "average")}
    ham = run()
    rows = plan("paper-ablation", *rules.items(), ("ham", ham))
    found = claimed_runs(records(rows, results=[*rules.values(), ham]))["cs-cl"]
    assert found == {
        "merging=none": {0: rules["none"]},
        "merging=average": {0: rules["average"]},
        "merging=ham": {0: ham},
        "adr": {0: ham},
    }


def test_local_testing_and_unfinished_runs_do_not_count() -> None:
    local, gone = run(protocol="local"), run(seed=1)
    assert claimed_runs(records(plan("a", ("adr", local), ("adr", gone)), results=[local])) == {}


def search(method: str = "adr", *, seed: int = 0, **params: Any) -> Search:
    base = RunSpec(stream="cs-cl", method=method, seed=seed, params=params)
    spec = SearchSpec(base=base, grid={"alpha": (1, 2), "gamma": (0.1, 1.0)})
    return Search(spec=spec, trials=[], chosen={}, seconds=1.0)


def test_the_search_of_plain_adr_with_the_lowest_seed() -> None:
    wanted = search()
    others = [search("acil"), search(merging="none"), search(seed=1)]
    one = SearchSpec(base=wanted.spec.base, grid={"gamma": (0.1,)})
    narrow = wanted.model_copy(update={"spec": one})
    assert adr_searches([*others, narrow, wanted]) == {"cs-cl": wanted}


def test_claims_on_stand_ins_say_so() -> None:
    adr, acil = run(True), run(True, method="acil")
    made = records(plan("paper-table1", ("adr", adr), ("acil", acil)), results=[adr, acil])
    claims = claims_of(made)
    assert claims
    assert all(claim.stand_in for claim in claims)
