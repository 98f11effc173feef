"""How well novelty tells nodes of the next task from test nodes of known classes.

`python -m paper.novelty_study cs-cl photo-cl --seeds 5 --out novelty.json`: a row per stream, seed
and task, of the default learner. Unknown are the nodes of the next task, in the graph of all tasks
so far and the next.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from undrift import Joint, Learner, Propagation, load_stream
from undrift.graphs import Graph
from undrift.learners.additive import smoothed
from undrift.streams.stream import TaskStream

STREAMS = (
    "cs-cl",
    "physics-cl",
    "computers-cl",
    "photo-cl",
    "coraml-cl",
    "citeseer-cl",
    "dblp-cl",
)


def auroc(scores: Tensor, unknown: Tensor, known: Tensor) -> float:
    """The share of pairs of an unknown and a known node in the right order, ties a half."""
    high, low = scores[unknown], scores[known].sort().values
    below = torch.searchsorted(low, high) + torch.searchsorted(low, high, right=True)
    return float(below.double().mean() / (2 * low.numel()))


def exam(stream: TaskStream, t: int) -> tuple[Graph, Tensor, Tensor]:
    """The graph after task t with the next task in it, its unknown nodes, known test nodes."""
    nodes = stream.nodes(range(t + 2))
    unknown = stream.task_of[nodes] == t + 1
    return stream.graph.subgraph(nodes), unknown, stream.test[nodes] & ~unknown


def study(name: str, seed: int, alarms: float, *, trained: bool) -> Iterator[dict[str, Any]]:
    """A row after every task but the last."""
    stream = load_stream(name, seed=seed)
    learner = Propagation()
    for t in range(len(stream) - 1):
        learner.observe(stream.task(t)).settle()
        graph, unknown, known = exam(stream, t)
        report = learner.novelty_report(alarms)
        start = time.perf_counter()
        learner.predict(graph)
        predicting = time.perf_counter() - start
        start = time.perf_counter()
        strange = learner.strangeness(graph)
        seconds = time.perf_counter() - start
        called = learner.novelty(graph) > 1 - alarms
        each = {"own": strange}
        baselines: dict[str, Learner] = {"ridge": learner}
        if trained:
            baselines["joint"] = Joint(seed=seed).observe(stream.until(t))
        for kind, rival in baselines.items():
            each[f"{kind} softmax"] = rival.strangeness(graph, kind="softmax")
            each[f"{kind} energy"] = energy = rival.strangeness(graph, kind="energy")
            each[f"{kind} energy over edges"] = smoothed(graph, energy)
        yield {
            "stream": name,
            "seed": seed,
            "task": t,
            "classes": len(learner.classes_),
            "auroc": {k: round(100 * auroc(s, unknown, known), 2) for k, s in each.items()},
            "false alarms": round(float(called[known].double().mean()), 4),
            "detected": round(float(called[unknown].double().mean()), 4),
            "expected detection": report and report.mean,
            "seconds": round(seconds, 4),
            "seconds to predict": round(predicting, 4),
        }


def main() -> None:
    """Rows as JSON, and the means of every stream on the terminal."""
    told = argparse.ArgumentParser(description=__doc__)
    told.add_argument("streams", nargs="*", default=STREAMS)
    told.add_argument("--seeds", type=int, default=1)
    told.add_argument("--alarms", type=float, default=0.05)
    told.add_argument("--trained", action="store_true", help="beside a trained GCN (joint)")
    told.add_argument("--out", type=Path, default=Path("novelty.json"))
    args = told.parse_args()
    rows: list[dict[str, Any]] = []
    for name in args.streams:
        for seed in range(args.seeds):
            rows += study(name, seed, args.alarms, trained=args.trained)
        own = [row for row in rows if row["stream"] == name]
        means = {k: round(fmean(row["auroc"][k] for row in own), 1) for k in own[0]["auroc"]}
        alarms = round(100 * fmean(row["false alarms"] for row in own), 1)
        detected = round(100 * fmean(row["detected"] for row in own), 1)
        cost = sum(row["seconds"] for row in own) / sum(row["seconds to predict"] for row in own)
        sys.stdout.write(
            f"{name}: AUROC {means}, false alarms {alarms} %, detected {detected} %, "
            f"{cost:.2f} times the seconds of predicting\n"
        )
        args.out.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
