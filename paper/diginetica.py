"""`python -m paper diginetica`: `NextItem` on DIGINETICA, under ADER's protocol.

Seventeen periods. A cycle learns period t - 1 and tests on period t: every click after the first
of a session is to be found among all items ever seen. Items not yet seen are left out of the
tests. Hyperparameters are chosen on sessions of period 0 only, and then fixed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from undrift.datasets.folder import find_file
from undrift.machine import check_device
from undrift.recommend import Interactions, NextItem, as_interactions
from undrift.storage.files import write_atomically

PUBLISHED = {"fine-tuned SASRec": (47.28, 16.01), "ADER": (50.21, 17.32), "joint": (50.03, 17.31)}
"""Recall@20 and MRR@20, means over 16 cycles: Mi et al., RecSys 2020."""

GRID: dict[str, tuple[float, ...]] = {
    "ridge": (20.0, 40.0, 80.0, 160.0),
    "mix": (0.4, 0.5, 0.6, 0.7, 0.8),
    "ridge_power": (0.25, 0.5, 0.75),
    "decay": (0.5, 0.7, 1.0, 1.5),
    "query_decay": (2.0, 3.0, 4.0, 6.0),
}
START = {name: values[len(values) // 2] for name, values in GRID.items()}
LEAST = (1, 2, 3, 5, 10)
HELD_OUT = 0.2  # of the sessions of period 0, the last ones
TOLERANCE = 1e-6  # of a solution; ranks do not see more
AT_ONCE = 2**28  # scores in memory at a time, on a GPU; a sixteenth of it on a CPU


def read_periods(path: Path | None = None) -> list[Interactions]:
    """The sessions of each period, each with its clicks in order."""
    file = find_file("diginetica.npz") if path is None else path
    with np.load(file, allow_pickle=False) as found:
        period, session, item = (found[name] for name in ("period", "session", "item"))
    periods = []
    for t in range(int(period.max()) + 1):
        rows = period == t
        # a name that sorts by the first click, so that the last sessions are the latest
        names, first, code = np.unique(session[rows], return_index=True, return_inverse=True)
        place = np.empty(len(names), np.int64)
        place[np.argsort(first)] = np.arange(len(names))
        told = np.array([f"{t}-{i:06d}" for i in range(len(names))])
        periods.append(as_interactions((told[place[code]], item[rows])))
    return periods


def graded(shop: NextItem, test: Interactions, known: frozenset[str]) -> dict[str, float]:
    """Recall@20 and MRR@20 in percent over all cases whose items are among `known`.

    The rank of a target counts every item with at least its score. One that the learner does not
    know is missed.
    """
    seen = test.where(np.array([name in known for name in test.items.tolist()])[test.item])
    histories, targets = seen.cases(most=shop.last)
    column = {name: i for i, name in enumerate(shop.items_)}
    place = np.array([column.get(name, -1) for name in seen.items.tolist()])[targets]
    width = AT_ONCE // (1 if shop.device != "cpu" else 16) // max(1, len(column))
    found = []
    for at in range(0, len(histories), width):
        scores = shop.scores(histories[at : at + width])
        wanted = torch.from_numpy(place[at : at + width]).to(scores.device)
        own = scores.gather(1, wanted.clamp(min=0).unsqueeze(1))
        rank = (scores >= own).sum(dim=1)
        found.append(torch.where((wanted >= 0) & (rank <= 20), 1 / rank.double(), 0.0).cpu())
    points = torch.cat(found)
    hits = (points > 0).double().mean()
    return {"recall": 100 * float(hits), "mrr": 100 * float(points.mean()), "cases": len(points)}


def chosen(
    first: Interactions, *, device: str = "cpu", most: int | None = None
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """The best hyperparameters by recall@20 + MRR@20, one after the other, twice over `GRID`.

    Learned on the first 80 % of the sessions of period 0, tested on the others; `most`: at most so
    many sessions to test on.
    """
    late = np.arange(len(first.sessions)) >= (1 - HELD_OUT) * len(first.sessions)
    learned, held = first.among(~late), first.among(late)
    if most is not None:
        held = held.among(np.arange(len(held.sessions)) < most)
    known = frozenset(learned.items.tolist())
    tried: dict[tuple[float, ...], dict[str, Any]] = {}

    def value(settings: dict[str, float]) -> float:
        key = tuple(settings.values())
        if key not in tried:
            shop = NextItem(**settings, device=device, tolerance=TOLERANCE)  # type: ignore[arg-type]
            tried[key] = settings | graded(shop.observe(learned), held, known)
            _say(told(tried[key]))
        return float(tried[key]["recall"] + tried[key]["mrr"])

    best = dict(START)
    for _ in range(2):
        for name, values in GRID.items():
            best = max(({**best, name: one} for one in values), key=value)
    return best, list(tried.values())


def cycles(
    periods: Sequence[Interactions], settings: dict[str, float], *, device: str = "cpu"
) -> tuple[NextItem, list[dict[str, Any]]]:
    """Learn each period but the last and test on the next one; a row per cycle."""
    shop = NextItem(**settings, device=device, tolerance=TOLERANCE)  # type: ignore[arg-type]
    rows = []
    for t, (now, following) in enumerate(pairwise(periods), start=1):
        start = perf_counter()
        shop.observe(now)
        learned = perf_counter()
        shop.settle()
        if device != "cpu":
            shop._solution.system.factor()
            torch.cuda.synchronize()
        solved = perf_counter()
        grades = graded(shop, following, frozenset(shop.items_))
        row: dict[str, Any] = {
            "cycle": t,
            "items": len(shop.items_),
            "sessions": shop.sessions_,
        } | grades
        row |= {"observe_s": learned - start, "solve_s": solved - learned}
        row |= {"test_s": perf_counter() - solved, "residual": shop.residual_}
        rows.append(row | {"bytes": shop.nbytes()})
        _say(told(row))
    return shop, rows


def thresholds(shop: NextItem, test: Interactions) -> list[dict[str, Any]]:
    """Recall of what is left when items and pairs of few sessions are kept out of the file."""
    known, rows = frozenset(shop.items_), []
    for least in LEAST:
        state = shop.state(least_sessions=least)
        guarded = shop.clone().load(state)
        row = {"least_sessions": least, "items": len(guarded.items_), "bytes": guarded.nbytes()}
        pairs = sum(each.values.numel() for each in guarded.sums().pairs.values())
        rows.append(row | {"pairs": pairs} | graded(guarded, test, known))
        _say(told(rows[-1]))
    return rows


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def told(row: dict[str, Any]) -> str:
    """A row as one line."""
    parts = (f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v:,}" for k, v in row.items())
    return "  ".join(parts)


def main(arguments: Sequence[str]) -> int:
    """Choose, run, print, and write everything as one JSON file."""
    parser = argparse.ArgumentParser(prog="python -m paper diginetica", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--data", type=Path, help="diginetica.npz, where UNDRIFT_DATA has none")
    parser.add_argument("--out", type=Path, default=Path("diginetica.json"), help="to write")
    parser.add_argument("--periods", type=int, default=17, help="the first so many only")
    parser.add_argument("--settings", help="JSON of hyperparameters, in place of choosing them")
    parser.add_argument("--most", type=int, help="test the choice on at most so many sessions")
    options = parser.parse_args(arguments)
    check_device(options.device)
    periods = read_periods(options.data)[: options.periods]
    start = perf_counter()
    settings: dict[str, float] = json.loads(options.settings or "{}")
    tried: list[dict[str, Any]] = []
    if not settings:
        settings, tried = chosen(periods[0], device=options.device, most=options.most)
    choosing = perf_counter() - start
    _say(f"chosen on period 0 in {choosing:.0f} s: {settings}")
    shop, rows = cycles(periods, settings, device=options.device)
    mean = {name: float(np.mean([row[name] for row in rows])) for name in ("recall", "mrr")}
    for name, (recall, mrr) in PUBLISHED.items():
        _say(f"{name}: recall@20 {recall:.2f}  MRR@20 {mrr:.2f}  (published)")
    _say(f"NextItem: recall@20 {mean['recall']:.2f}  MRR@20 {mean['mrr']:.2f}")
    found = {"settings": settings, "device": options.device, "choosing_s": choosing, "mean": mean}
    found |= {"cycles": rows, "tried": tried, "published": PUBLISHED}
    write_atomically(options.out, json.dumps(found, indent=1).encode())
    found |= {"thresholds": thresholds(shop, periods[-1])}
    write_atomically(options.out, json.dumps(found, indent=1).encode())
    _say(f"wrote {options.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
