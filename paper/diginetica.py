"""`python -m paper diginetica`: recommenders on DIGINETICA, under ADER's protocol.

Seventeen periods. A cycle learns period t - 1 and tests on period t, as `evaluate_ranking` does.
Hyperparameters of `NextItem` are chosen on sessions of period 0 only, and then fixed. Everything
is written as one JSON file, and `--page` makes the results of a page of it. `--costs` measures anew
what it costs on a CPU, with the settings of the file, and puts that into it.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from paper.diginetica_cost import costs
from paper.diginetica_page import ASKED, GUARDED, write_page
from undrift.datasets.folder import find_file
from undrift.evaluation.cost import peak_memory_mb, reset_peak_memory
from undrift.evaluation.loop import Evaluation
from undrift.evaluation.metrics import mean_of
from undrift.evaluation.ranking import evaluate_ranking, rank_sessions
from undrift.learners.registry import make_learner
from undrift.machine import check_device
from undrift.recommend import Interactions, NextItem
from undrift.recommend.stream import SessionStream, read_clicks
from undrift.recommend.sums import TOGETHER
from undrift.storage.files import write_atomically

PUBLISHED = {
    "ADER, 30,000 sessions kept": (50.21, 17.32),
    "SASRec, trained on everything": (50.03, 17.31),
    "SASRec, fine-tuned": (47.28, 16.01),
}
"""Recall@20 and MRR@20, means over 16 cycles: Mi et al., RecSys 2020."""

GRID: dict[str, tuple[float, ...]] = {
    "ridge": (20.0, 40.0, 80.0, 160.0),
    "mix": (0.4, 0.5, 0.6, 0.7, 0.8),
    "ridge_power": (0.25, 0.5, 0.75),
    "decay": (0.5, 0.7, 1.0, 1.5),
    "query_decay": (2.0, 3.0, 4.0, 6.0),
}
START = {name: values[len(values) // 2] for name, values in GRID.items()}
BASELINES = ("item-knn", "last-item", "popularity")
LEAST = (1, 2, 3, 5, 10)
HELD_OUT = 0.2  # of the sessions of period 0, the last ones
TOLERANCE = 1e-6  # of a solution; ranks do not see more


def shop_of(settings: dict[str, float], device: str) -> NextItem:
    """The learner with these settings."""
    return NextItem(**settings, device=device, tolerance=TOLERANCE)  # type: ignore[arg-type]


def chosen(first: Interactions, device: str) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """The best hyperparameters by recall@20 + MRR@20, one after the other, twice over `GRID`.

    Learned on the first 80 % of the sessions of period 0, tested on the others.
    """
    late = np.zeros(len(first.sessions), bool)
    late[first.by_time[int((1 - HELD_OUT) * len(late)) :]] = True
    learned, held = first.among(~late), first.among(late)
    shops: dict[float, NextItem] = {}  # sums depend on the decay alone
    tried: dict[tuple[float, ...], dict[str, Any]] = {}

    def value(settings: dict[str, float]) -> float:
        key = tuple(settings.values())
        if key not in tried:
            decay = settings["decay"]
            if decay not in shops:
                shops[decay] = shop_of(settings, device).observe(learned)
            shop = shops[decay].set_params(**settings)
            found = rank_sessions(shop, held).measures(len(shop.items_))
            tried[key] = settings | {k: found[k] for k in ("recall_20", "mrr_20", "cases")}
            say(row_text(tried[key]))
        return float(tried[key]["recall_20"] + tried[key]["mrr_20"])

    best = dict(START)
    for _ in range(2):
        for name, values in GRID.items():
            best = max(({**best, name: one} for one in values), key=value)
    return best, list(tried.values())


def cycles(learner: Any, stream: SessionStream) -> dict[str, Any]:
    """What came of each cycle, their means, the seconds of each phase and the bytes kept."""
    rows: list[dict[str, Any]] = []
    before: dict[str, float] = {}

    def after(t: int, so_far: Evaluation) -> None:
        nonlocal before
        spent = {f"{k}_s": v - before.get(k, 0.0) for k, v in so_far.seconds.items()}
        before = dict(so_far.seconds)
        row: dict[str, Any] = {"cycle": t + 1, "items": len(learner.items_)}
        row |= {"sessions": learner.sessions_, "bytes": so_far.state_bytes[-1]}
        row |= {key: values[-1] for key, values in so_far.series.items()}
        rows.append(row | spent)
        say(f"{learner.name}  {row_text(rows[-1])}")

    done = evaluate_ranking(learner, stream, after_task=after)
    means = {key: mean_of(values) for key, values in done.series.items() if key != "cases"}
    found = {"mean": means, "bytes": done.state_bytes[-1], "cycles": rows}
    residual = getattr(learner, "residual_", None)
    return found | ({} if residual is None else {"residual": residual})


def thresholds(shop: NextItem, test: Interactions) -> list[dict[str, Any]]:
    """Recall of what is left when items and pairs of few sessions are kept out of the file.

    Items that are left out of the file stay in the tests: they are missed. Tested are `GUARDED`
    sessions, drawn at random.
    """
    rows = []
    drawn = np.random.default_rng(0).permutation(len(test.sessions))[:GUARDED]
    test = test.among(np.isin(np.arange(len(test.sessions)), drawn))
    known = {*shop.items_}
    asked = test.where(np.array([name in known for name in test.items.tolist()])[test.item])
    cases = len(asked) - len(asked.sessions)
    for least in LEAST:
        guarded = shop.clone().load(shop.state(least_sessions=least))
        row = {"least_sessions": least, "items": len(guarded.items_), "bytes": guarded.nbytes()}
        together = guarded.sums().pairs[TOGETHER].half()
        pairs = together.nnz - together.diagonal().astype(bool).sum().item()
        found = rank_sessions(guarded, asked).measures(len(guarded.items_))
        share = found["cases"] / cases
        missed = {k: found[k] * share if share else 0.0 for k in ("recall_20", "mrr_20")}
        rows.append(row | {"pairs": pairs} | missed)
        say(row_text(rows[-1]))
    return rows


def two_cores(shop: NextItem, following: Interactions) -> dict[str, float]:
    """Seconds to learn one more period and to answer at two tolerances; the peak of memory.

    With two threads and no GPU.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        here = NextItem.from_params(**shop.params() | {"device": "cpu", "solver": "cg"})
        here.load(shop.state())
        reset_peak_memory()
        start = perf_counter()
        here.observe(following)
        learned = perf_counter()
        here.settle()
        solved = perf_counter()
        some = following.cases(most=here.last)[0][:ASKED]
        here.scores(some)
        answered = perf_counter()
        found = {"residual": here.residual_ or 0.0, "tolerance": here.tolerance}
        here.set_params(tolerance=NextItem.tolerance).settle()
        again = perf_counter()
        here.scores(some)
        found["exact_answer_s"] = (perf_counter() - again) / len(some)
    finally:
        torch.set_num_threads(threads)
    found |= {"items": float(len(here.items_)), "sessions": float(len(following.sessions))}
    found |= {"learn_s": learned - start, "prepare_s": solved - learned}
    found |= {"cases": len(following) - len(following.sessions), "peak_mb": peak_memory_mb() or 0.0}
    return found | {"answer_s": (answered - solved) / len(some)}


def say(line: str) -> None:
    """A line, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def row_text(row: dict[str, Any]) -> str:
    """A row as one line."""
    parts = (f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v:,}" for k, v in row.items())
    return "  ".join(parts)


def main(arguments: Sequence[str]) -> int:
    """Choose, run, write everything as one JSON file, print; or make the results of a page."""
    parser = argparse.ArgumentParser(prog="python -m paper diginetica", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--data", type=Path, help="diginetica.npz, where UNDRIFT_DATA has none")
    parser.add_argument("--out", type=Path, default=Path("results/recommend/diginetica.json"))
    parser.add_argument("--periods", type=int, default=17, help="the first so many only")
    parser.add_argument("--settings", help="JSON of hyperparameters, in place of choosing them")
    parser.add_argument("--most", type=int, help="the first so many sessions of each period only")
    parser.add_argument("--page", type=Path, help="put the results into this page; nothing is run")
    parser.add_argument("--costs", action="store_true", help="only what it costs on a CPU")
    options = parser.parse_args(arguments)
    if options.page is not None:
        write_page(json.loads(options.out.read_text(encoding="utf-8")), options.page)
        return 0
    check_device(options.device)
    stream = SessionStream.of(read_clicks(options.data or find_file("diginetica.npz")))
    periods = [_first(clicks, options.most) for clicks in stream.periods[: options.periods]]
    stream = replace(stream, periods=tuple(periods))
    start = perf_counter()
    settings: dict[str, float] = json.loads(options.settings or "{}")
    if options.costs:
        found = json.loads(options.out.read_text(encoding="utf-8"))
        found["cpu"] = costs(stream, settings or found["settings"], TOLERANCE)
        write_atomically(options.out, (json.dumps(found, indent=1) + "\n").encode())
        return 0
    found = {"device": options.device, "torch": torch.__version__}
    found |= {"periods": len(periods), "sessions_per_period": options.most, "tried": []}
    if not settings:
        settings, found["tried"] = chosen(periods[0], options.device)
    found |= {"settings": settings, "choosing_s": perf_counter() - start, "published": PUBLISHED}
    say(f"chosen on period 0 in {found['choosing_s']:.0f} s: {settings}")

    def keep(**more: Any) -> None:
        found.update(more)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(options.out, (json.dumps(found, indent=1) + "\n").encode())

    shop = shop_of(settings, options.device)
    methods = {shop.name: cycles(shop, stream)}
    keep(methods=methods)
    keep(thresholds=thresholds(shop, periods[-1]))
    keep(two_cores=two_cores(shop, periods[-1]))
    for name in BASELINES:
        methods[name] = cycles(make_learner(name, device=options.device), stream)
        keep(methods=methods, total_s=perf_counter() - start)
    for title, (recall, mrr) in PUBLISHED.items():
        say(f"{title:30}  recall@20 {recall:.2f}  MRR@20 {mrr:.2f}  (published)")
    for name, each in methods.items():
        mean = each["mean"]
        say(f"{name:30}  recall@20 {mean['recall_20']:.2f}  MRR@20 {mean['mrr_20']:.2f}")
    say(f"on two cores: {row_text(found['two_cores'])}")
    say(f"wrote {options.out} after {found['total_s']:.0f} s")
    return 0


def _first(clicks: Interactions, most: int | None) -> Interactions:
    if most is None:
        return clicks
    return clicks.among(np.isin(np.arange(len(clicks.sessions)), clicks.by_time[:most]))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
