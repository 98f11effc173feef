"""`python -m tests.harness.fuzz`: change files at random and read them, in several processes."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.harness.fuzz.guard import Target, copied, run_case
from tests.harness.fuzz.targets import TARGETS
from tests.harness.fuzz.workers import Job, Workers, prepare

_BATCH = 50
HOW = ("refused", "same", "read", "missed", "found")


def main(arguments: list[str] | None = None) -> int:
    """Run cases; print a line of JSON per target and per finding. 1 where there are findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.harness.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=2000, help="how many, over all targets")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600.0, help="stop after so long")
    parser.add_argument("--target", choices=[t.name for t in TARGETS], help="only this one")
    parser.add_argument("--seed", type=int, help="one case again, in words")
    asked = parser.parse_args(arguments)
    targets = [target for target in TARGETS if asked.target in (None, target.name)]
    with tempfile.TemporaryDirectory() as place:
        clean = Path(place) / "clean"
        for target in targets:
            (clean / target.name).mkdir(parents=True)
            target.make(clean / target.name)
        if asked.seed is not None:
            return _again(targets, asked.seed, clean, Path(place))
        return _many(targets, asked, clean, Path(place))


def _again(targets: list[Target], seed: int, clean: Path, place: Path) -> int:
    prepare()
    found = 0
    for target in targets:
        answer = target.read(copied(clean / target.name, place / "answer" / target.name))
        case = run_case(target, seed, clean / target.name, place / "case", answer)
        sys.stdout.write(json.dumps(asdict(case), indent=1).replace("\\n", "\n") + "\n")
        found += case.outcome == "found"
    return int(found > 0)


def _many(targets: list[Target], asked: argparse.Namespace, clean: Path, place: Path) -> int:
    counts: Counter[tuple[str, str]] = Counter()
    seconds: dict[str, list[float]] = {target.name: [] for target in targets}
    began = time.monotonic()
    jobs = _jobs(targets, asked.cases, asked.first)
    for case in Workers(asked.workers, clean, place).run(jobs, began + asked.seconds):
        counts[case.target, case.outcome] += 1
        seconds[case.target].append(case.seconds)
        if case.outcome == "found":
            _tell(asdict(case))
    for name, spent in seconds.items():
        told = {"target": name, "cases": len(spent)} | {how: counts[name, how] for how in HOW}
        mean = round(1e3 * sum(spent) / max(1, len(spent)), 1)
        _tell(told | {"mean_ms": mean, "slowest_ms": round(1e3 * max(spent, default=0.0))})
    findings = sum(counts[name, "found"] for name in seconds)
    whole = {"seconds": round(time.monotonic() - began, 1), "workers": asked.workers}
    _tell({"cases": sum(counts.values()), "found": findings} | whole)
    return int(findings > 0)


def _tell(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _jobs(targets: list[Target], cases: int, first: int) -> list[Job]:
    """(target, first seed, seeds) for all, each target's share by its weight."""
    total = sum(target.weight for target in targets)
    jobs = []
    for target in targets:
        count = max(1, round(cases * target.weight / total))
        for start in range(0, count, _BATCH):
            jobs.append((target.name, first + start, min(_BATCH, count - start)))
    return sorted(jobs, key=lambda job: job[1])  # all targets from the start


if __name__ == "__main__":
    raise SystemExit(main())
