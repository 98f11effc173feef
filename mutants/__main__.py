"""`python -m mutants`: make mistakes and count who notices."""

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mutants.changes import Mutant
from mutants.page import rows
from mutants.running import Outcome, chosen, meet, outcome_of, tests_of, warm


def main() -> int:
    """Run a sample of mutants and write a line of JSON each; the share that was noticed."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=0, help="so many, drawn; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=36_000.0)
    parser.add_argument("--only", nargs="+", default=[""], help="modules whose names start so")
    parser.add_argument("--again", type=Path, help="the survivors of this file once more")
    parser.add_argument("--own", action="store_true", help="meet the tests of its module alone")
    parser.add_argument("--fresh", action="store_true", help="none that was drawn and recorded")
    parser.add_argument("--out", type=Path, default=Path("build/mutants.jsonl"))
    asked = parser.parse_args()
    drawn = rows("mutants") if asked.fresh else []
    known = {(row["module"], int(row["line"]), row["what"]) for row in drawn}
    mutants = chosen(asked.sample, asked.seed, known, asked.only)
    if asked.again:
        lines = [json.loads(line) for line in asked.again.read_text().splitlines()]
        left = {
            (r["module"], int(r["line"]), r["what"]) for r in lines if r["outcome"] == "survived"
        }
        mutants = [m for m in chosen(0, 0) if (m.module, m.line, m.what) in left]
    warm()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    until = time.monotonic() + asked.seconds
    with asked.out.open("w", encoding="utf-8") as file, _pool(asked.workers) as pool:
        _check_clean(mutants, pool, own=asked.own)
        jobs = ((mutant, until, asked.own) for mutant in mutants)
        for found in pool.imap_unordered(_one, jobs):
            if found is None:
                continue
            counts[found.outcome] += 1
            file.write(json.dumps(asdict(found)) + "\n")
            file.flush()
    total, alive = sum(counts.values()), counts["survived"]
    share = 100 * (total - alive) / max(1, total)
    summary = {"mutants": total, "of": len(chosen(0, 0)), "killed %": round(share, 1), **counts}
    sys.stdout.write(json.dumps(summary) + "\n")
    return int(share < 90)


def _pool(workers: int) -> Any:
    return multiprocessing.get_context("fork").Pool(workers)


def _one(job: tuple[Mutant, float, bool]) -> Outcome | None:
    mutant, until, own = job
    return outcome_of(mutant, own=own) if time.monotonic() < until else None


def _check_clean(mutants: list[Mutant], pool: Any, *, own: bool) -> None:
    """Without a mistake all tests must pass, else all would count as noticed."""
    met = [tests_of(mutant.module)[: 1 if own else 2] for mutant in mutants]
    every = {tuple(tests): tests for lists in met for tests in lists}
    for tests, said in pool.imap_unordered(_clean, every.values()):
        assert said == "passed", f"without any mistake these tests {said}: {tests}"


def _clean(tests: list[str]) -> tuple[list[str], str]:
    return tests, meet(None, tests, 600)


if __name__ == "__main__":
    raise SystemExit(main())
