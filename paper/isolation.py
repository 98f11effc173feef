"""What the isolation of task graphs costs: the rows of the docs, made from `results/`.

    python -m paper isolation

prints the table of docs/methods/joint.md and the row of README and docs/choosing-a-method.md.
"""

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from paper.bound import STREAMS, Trial, read_isolated, read_trials

__all__ = ["ROW", "above", "isolation_row", "isolation_table", "main"]

ROW = "`joint` with `recipe=isolated`: tuned likewise, no edges between tasks"
_RESULTS = Path(__file__).parents[1] / "results"
_NAMES = ("CS", "Physics", "Computers", "Photo", "CoraML", "CiteSeer", "DBLP")
_SEVEN = STREAMS[: len(_NAMES)]


def isolation_row(results: Path = _RESULTS) -> str:
    """The mean class a_f over the seeds of each stream, as a line of a table."""
    found = _by_stream(read_isolated(results / "bound" / "isolated.csv"))
    cells = [f"{fmean(t['a_f'] for t in found[s]):.1f}" for s in _SEVEN]
    return f"| {ROW} | " + " | ".join(cells) + " |"


def isolation_table(results: Path = _RESULTS) -> str:
    """The best setting by validation, with the edges between tasks and without; test nodes below.

    Both are of 24 settings on the validation nodes of seed 0; test rows are means over the seeds.
    """
    whole, alone = (
        {t["stream"]: t["val_a_f"] for t in read_trials(results / "bound" / name) if t["chosen"]}
        for name in ("trials.csv", "isolated_trials.csv")
    )
    found = _by_stream(read_isolated(results / "bound" / "isolated.csv"))
    rows: dict[str, list[float]] = {
        "all edges, validation": [whole[s] for s in _SEVEN],
        "isolated, validation": [alone[s] for s in _SEVEN],
        "isolated, test": [fmean(t["a_f"] for t in found[s]) for s in _SEVEN],
        **{f"`{name}`, test": _kept(results, name, found) for name in ("propagation", "hybrid")},
    }
    lines = ["| | " + " | ".join(_NAMES) + " |", "|---" * (len(_NAMES) + 1) + "|"]
    for name, numbers in rows.items():
        lines.append(f"| {name} | " + " | ".join(f"{value:.1f}" for value in numbers) + " |")
    return "\n".join(lines)


def above(method: str, results: Path = _RESULTS) -> tuple[str, ...]:
    """The streams on which a method without data is at or above the isolated bound."""
    found = _by_stream(read_isolated(results / "bound" / "isolated.csv"))
    ours = dict(zip(_SEVEN, _kept(results, method, found), strict=True))
    return tuple(
        name
        for name, stream in zip(_NAMES, _SEVEN, strict=True)
        if ours[stream] >= fmean(t["a_f"] for t in found[stream])
    )


def _kept(results: Path, method: str, found: dict[str, list[Trial]]) -> list[float]:
    """Class a_f of a method that keeps no data, over the same seeds."""
    means = []
    for stream in _SEVEN:
        by_seed = _by_seed(results, method, stream)
        means.append(fmean(by_seed[t["seed"]] for t in found[stream]))
    return means


def _by_stream(found: Sequence[Trial]) -> dict[str, list[Trial]]:
    return {stream: [t for t in found if t["stream"] == stream] for stream in STREAMS}


def _by_seed(results: Path, method: str, stream: str) -> dict[int, float]:
    """Class a_f of a method, by seed."""
    before = csv.field_size_limit(10**7)  # of the whole process, so it is set back
    try:
        with (results / "cells.csv").open(newline="", encoding="utf-8") as file:
            ids = {
                c["run"]
                for c in csv.DictReader(file)
                if (c["plan"], c["row"], c["stream"]) == ("beyond", method, stream)
            }
        with (results / "runs.csv").open(newline="", encoding="utf-8") as file:
            return {int(r["seed"]): float(r["a_f"]) for r in csv.DictReader(file) if r["id"] in ids}
    finally:
        csv.field_size_limit(before)


def main(arguments: Sequence[str]) -> int:
    """Print both."""
    sys.stdout.write(f"{isolation_table()}\n\n{isolation_row()}\n")
    return 0
