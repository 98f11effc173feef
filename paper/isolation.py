"""What the isolation of task graphs costs: the rows of the docs, made from `results/`.

    python -m paper isolation

prints the table of docs/methods/joint.md and the row of README and docs/choosing-a-method.md.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from paper.bound import STREAMS, Trial, read_isolated, read_trials

__all__ = ["ROW", "isolation_row", "isolation_table", "main"]

ROW = "`joint` with `recipe=isolated`: no edges between tasks, GCN of width 64"
_RESULTS = Path(__file__).parents[1] / "results"
_NAMES = ("CS", "Physics", "Computers", "Photo", "CoraML", "CiteSeer", "DBLP")


def isolation_row(results: Path = _RESULTS) -> str:
    """The mean class a_f over the seeds of each stream, as a line of a table."""
    found = _by_stream(read_isolated(results / "bound" / "isolated.csv"))
    cells = [f"{fmean(t['a_f'] for t in found[s]):.1f}" for s in STREAMS[: len(_NAMES)]]
    return f"| {ROW} | " + " | ".join(cells) + " |"


def isolation_table(results: Path = _RESULTS) -> str:
    """Validation nodes of seed 0 with and without the edges; test nodes beside the default's."""
    trials = read_trials(results / "bound" / "trials.csv")
    found = _by_stream(read_isolated(results / "bound" / "isolated.csv"))
    lines = [
        "| | " + " | ".join(_NAMES) + " |",
        "|---" * (len(_NAMES) + 1) + "|",
        *(f"| {name} |" for name in ("all edges", "isolated", "isolated, test", "default, test")),
        "| seeds of the test rows |",
    ]
    for stream in STREAMS[: len(_NAMES)]:
        mine = found[stream]
        seeds = [t["seed"] for t in mine]
        same = next(
            t
            for t in trials
            if t["stream"] == stream and t["setting"] == mine[seeds.index(0)]["setting"]
        )
        default = _default(results, stream)
        numbers = (
            same["val_a_f"],
            mine[seeds.index(0)]["val_a_f"],
            fmean(t["a_f"] for t in mine),
            fmean(default[seed] for seed in seeds),
        )
        for k, value in enumerate(numbers, start=2):
            lines[k] += f" {value:.1f} |"
        lines[6] += f" 0-{max(seeds)} |" if max(seeds) else " 0 |"
    return "\n".join(lines)


def _by_stream(found: Sequence[Trial]) -> dict[str, list[Trial]]:
    return {stream: [t for t in found if t["stream"] == stream] for stream in STREAMS}


def _default(results: Path, stream: str) -> dict[int, float]:
    """Class a_f of propagation, by seed."""
    csv.field_size_limit(10**7)
    with (results / "cells.csv").open(newline="", encoding="utf-8") as file:
        ids = {
            c["run"]
            for c in csv.DictReader(file)
            if (c["plan"], c["row"], c["stream"]) == ("beyond", "propagation", stream)
        }
    with (results / "runs.csv").open(newline="", encoding="utf-8") as file:
        return {int(r["seed"]): float(r["a_f"]) for r in csv.DictReader(file) if r["id"] in ids}


def main(arguments: Sequence[str]) -> int:
    """Print both."""
    sys.stdout.write(f"{isolation_table()}\n\n{isolation_row()}\n")
    return 0
