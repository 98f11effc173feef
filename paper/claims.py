"""What the ADR paper claims, checked on finished runs. Does not import torch.

Every check gives a `Claim` per stream that says whether our numbers bear it out, with the
numbers. Nothing is left out because it fails: a reader of the results page sees it all.
"""

from dataclasses import replace

from paper.claim import Claim
from paper.claim_checks import RUN_CHECKS, SEARCH_CHECKS
from paper.claim_runs import adr_searches, claimed_runs
from undrift.experiments.store import Records

__all__ = ["Claim", "claims_of"]


def claims_of(records: Records) -> list[Claim]:
    """Every claim on every stream that has the runs for it, claim by claim.

    Runs are taken from the tables of plans, the paper's first, and only under global testing.
    """
    runs, searches = claimed_runs(records), adr_searches(records.searches)
    claims = [check(stream, runs[stream]) for check in RUN_CHECKS for stream in runs]
    claims += [check(stream, searches[stream]) for check in SEARCH_CHECKS for stream in searches]
    imitated = {result.spec.stream for result in records.results.values() if result.stand_in}
    return [
        replace(claim, stand_in=claim.stream in imitated) for claim in claims if claim is not None
    ]
