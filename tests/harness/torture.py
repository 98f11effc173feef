"""`python -m tests.harness.torture`: faults at every call, random kills, crowds, changed files.

A line of JSON for each part; the exit code is 1 where something did not survive. The shares can be
taken apart: `--parts faults kills crowds relations files`.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from tests.harness.crowds import CROWDS
from tests.harness.faults import KINDS, crash_everywhere, ended, forked, kill_at_random
from tests.harness.fuzz.guard import OUTCOMES, run_cases
from tests.harness.fuzz.targets import TARGETS
from tests.harness.metamorphic import NOT_INVARIANT, RELATIONS, check_relation
from tests.harness.scenarios import SCENARIOS
from undrift.learners.registry import METHODS

KILLED = {*SCENARIOS} - {"save a state", "write a report"}
_PIECE = 25  # kills of one job
Line = dict[str, Any]
Job = tuple[Any, ...]


def main(arguments: list[str] | None = None) -> int:
    """Run every part; 1 where something did not survive."""
    parser = argparse.ArgumentParser(prog="python -m tests.harness.torture", description=__doc__)
    parser.add_argument("--parts", nargs="+", default=[*PARTS], choices=[*PARTS])
    parser.add_argument("--steps", nargs="+", default=[*SCENARIOS], choices=[*SCENARIOS])
    parser.add_argument("--every", type=int, default=1, help="faults at each so-manieth call")
    parser.add_argument("--kills", type=int, default=1000, help="of each step")
    parser.add_argument("--first", type=int, default=0, help="the first seed of kills and files")
    parser.add_argument("--cases", type=int, default=5000, help="files to change and read")
    parser.add_argument("--kinds", nargs="+", default=[*TARGETS], choices=[*TARGETS])
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args(arguments)
    failed = 0
    for line in _lines(asked):
        failed += "failed" in line
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
    return int(failed > 0)


def _lines(asked: argparse.Namespace) -> Iterator[Line]:
    """What each part came to, several at once; kills of one step in one line."""
    names = [name for name in reversed(SCENARIOS) if name in asked.steps]  # the longest first
    seeds = range(asked.first, asked.first - (-asked.kills // _PIECE))
    kills = min(_PIECE, asked.kills)
    jobs: list[Job] = [("faults", name, kind, asked.every) for name in names for kind in KINDS]
    jobs += [("kills", name, kills, s) for name in names if name in KILLED for s in seeds]
    jobs += [("crowds", name, size) for name in CROWDS for size in (2, 8)]
    jobs += _files_jobs(asked)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a process that has used a GPU cannot be forked
    yield from _added_up([job for job in jobs if job[0] in asked.parts], asked.workers)
    os.environ.pop("CUDA_VISIBLE_DEVICES")
    if "relations" in asked.parts:
        there = [r for r in RELATIONS if r != "on a GPU" or torch.cuda.is_available()]
        jobs = [("relations", relation, method) for method in METHODS for relation in there]
        yield from _added_up(jobs, asked.workers)


def _files_jobs(asked: argparse.Namespace) -> list[Job]:
    """(kind of file, first seed, seeds), each kind's share by its weight."""
    total, jobs = sum(TARGETS[name].weight for name in asked.kinds), []
    for name in asked.kinds:
        count = max(1, round(asked.cases * TARGETS[name].weight / total))
        for start in range(0, count, 2 * _PIECE):
            jobs.append(("files", name, asked.first + start, min(2 * _PIECE, count - start)))
    return jobs


def _added_up(jobs: list[Job], workers: int) -> Iterator[Line]:
    """Every failure as it comes; in the end a line for each step."""
    sums: dict[tuple[str, str], Line] = {}
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        futures = [pool.submit(_job, *job) for job in jobs]
        for future in as_completed(futures):
            line = future.result()
            sys.stderr.write(json.dumps(line) + "\n")  # as it goes
            sys.stderr.flush()
            if "failed" in line:
                yield line
                continue
            place = (line["part"], line["step"])
            sums[place] = _sum(sums[place], line) if place in sums else line
    yield from sums.values()


def _sum(one: Line, other: Line) -> Line:
    total: Line = {name: one[name] for name in ("part", "step", "calls") if name in one}
    total |= {name: one[name] + other[name] for name in ("runs", "begun", *OUTCOMES) if name in one}
    total |= {"first": min(one["first"], other["first"])} if "first" in one else {}
    total |= {"apart": max(one["apart"], other["apart"])} if "apart" in one else {}
    return total | {"seconds": round(one["seconds"] + other["seconds"], 1)}


def _job(part: str, name: str, *settings: Any) -> Line:
    """One part of the torture in a folder of its own: what it came to."""
    torch.set_num_threads(1)
    began = time.monotonic()
    line: Line = {"part": part, "step": name}
    with tempfile.TemporaryDirectory() as place:
        try:
            line |= PARTS[part](Path(place) / "x", name, *settings)
        except Exception:
            return line | {"failed": f"{settings}: {traceback.format_exc()[-3000:]}"}
    return line | {"seconds": time.monotonic() - began}


def _faults(place: Path, name: str, kind: Any, every: int) -> Line:
    """A fault of one kind at every call of a step."""
    made = SCENARIOS[name](place)
    found = crash_everywhere(made.start, made.step, made.check, kinds=(kind,), every=every)
    return {"calls": found.points, "runs": found.runs}


def _kills(place: Path, name: str, kills: int, seed: int) -> Line:
    """Kills of a step at random instants."""
    hit, begun = kill_at_random(SCENARIOS[name](place), kills, seed)
    return {"first": seed, "runs": hit, "begun": begun}


def _crowd(place: Path, name: str, size: int) -> Line:
    """Several processes at one folder."""
    CROWDS[name](place, size)
    return {"step": f"{name}, {size} processes", "runs": 1}


def _relation(place: Path, name: str, method: str) -> Line:
    """A method, held to what must not change its answer."""
    apart = check_relation(method, name)
    return {"runs": 1, "apart": 0.0 if method in NOT_INVARIANT.get(name, {}) else apart}


def _files(place: Path, name: str, first: int, count: int) -> Line:
    """Files of one kind, changed and read in a process that may die of it."""
    place.mkdir()
    cases = forked(lambda folder: run_cases(TARGETS[name], first, count, folder), place)
    code, told = ended(cases, place), place / "told"
    assert code == 0, f"the process ended ({code}), too long at it or killed: {told.read_text()}"
    return {"runs": count, **json.loads(told.read_text(encoding="utf-8"))}


PARTS: dict[str, Callable[..., Line]] = {
    "faults": _faults,
    "kills": _kills,
    "crowds": _crowd,
    "relations": _relation,
    "files": _files,
}


if __name__ == "__main__":
    raise SystemExit(main())
