"""The claims of CS-CL on the full results: they are what this library stands for."""

from pathlib import Path

import pytest

from paper.claim import Claim
from paper.claims import claims_of
from paper.compact import read_compact


@pytest.fixture(scope="module")
def claims() -> dict[str, Claim]:
    found = claims_of(read_compact(Path(__file__).parents[2] / "results"))
    return {claim.name: claim for claim in found if claim.stream == "cs-cl"}


@pytest.mark.parametrize("name", ["adr-first", "ham-first", "plasticity", "drift"])
def test_the_paper_holds_on_cs_cl(claims: dict[str, Claim], name: str) -> None:
    assert claims[name].paper
    assert claims[name].holds, claims[name].evidence
