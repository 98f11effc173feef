"""The strongest bound: joint training by the tuned recipe, searched per stream, over five seeds.

    python -m paper bound FOLDER [--device cuda] [--workers 14] [--streams cs-cl ...]

writes `FOLDER/trials.csv`, a line per setting tried, and the runs of the chosen ones to
`FOLDER/runs`. A setting is judged by class accuracy at the end of the stream on the validation
nodes of seed 0; the test nodes are looked at once per chosen setting.

    python -m paper bound FOLDER --isolated [--device cuda] [--workers 14] [--streams cs-cl ...]

searches the same settings, trained on the task graphs as they arrive, without the edges between
tasks, and examined on the whole graph as always: `FOLDER/isolated_trials.csv`, and the chosen ones
over the seeds in `FOLDER/isolated.csv`. Only the end of the stream is trained: joint training
begins anew at every task, so what was before does not matter.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from undrift.evaluation.protocols import Split
    from undrift.streams.stream import TaskStream
    from undrift.streams.task import Task

__all__ = [
    "FIXED",
    "SETTINGS",
    "STREAMS",
    "Trial",
    "apart",
    "isolated",
    "main",
    "read_isolated",
    "read_trials",
    "trial",
    "write_isolated",
    "write_trials",
]

STREAMS = (
    *("cs-cl", "physics-cl", "computers-cl", "photo-cl", "coraml-cl", "citeseer-cl", "dblp-cl"),
    *("squirrel-cl", "actor-cl"),
)
FIXED = {"recipe": "tuned", "epochs": 800, "patience": 80, "weight_decay": 5e-4, "lr": 1e-3}
"""What every setting has: the epoch with the best validation accuracy, of at most 800."""

_WIDTHS = {"gcn": (64, 512), "sage": (256,), "gat": (256,)}
_WEIGHTED = {"gcn": (True, False), "sage": (True,), "gat": (True,)}
SETTINGS: tuple[dict[str, Any], ...] = tuple(
    {"encoder": kind, "hidden": (width,) * depth, "dropout": dropout, "class_weighted": weighted}
    for kind in _WIDTHS
    for width, depth, dropout, weighted in product(
        _WIDTHS[kind], (2, 3), (0.3, 0.6), _WEIGHTED[kind]
    )
)
_COLUMNS = ("stream", "setting", "val_a_f", "seconds", "device", "chosen")
_ISOLATED = ("stream", "seed", "setting", "val_a_f", "a_f", "seconds", "device")
Trial = dict[str, Any]


def trial(
    stream_name: str, setting: dict[str, Any], device: str, tasks_apart: bool = False
) -> Trial:
    """Class accuracy on validation nodes after training once, on the whole stream of seed 0."""
    found = _trained(stream_name, setting, 0, device, tasks_apart=tasks_apart, splits=("val",))
    return {name: found[name] for name in ("stream", "setting", "val_a_f", "seconds", "device")}


def _trained(
    stream_name: str,
    setting: dict[str, Any],
    seed: int,
    device: str,
    *,
    tasks_apart: bool,
    splits: tuple[Split, ...],
) -> Trial:
    """Class accuracy at the end of the stream, of these splits."""
    import time

    from paper.tuned_joint import WholeStream
    from undrift.evaluation.loop import grade
    from undrift.evaluation.protocols import exams
    from undrift.learners.registry import make_learner
    from undrift.streams.benchmarks import load_stream
    from undrift.typing import silent

    began = time.perf_counter()
    stream = load_stream(stream_name, seed).to(device)
    last = len(stream) - 1
    params = {**FIXED, **setting, **({"recipe": "isolated"} if tasks_apart else {})}
    learner = make_learner("joint", seed=seed, device=device, **params)
    learner.observe(apart(stream) if tasks_apart else WholeStream.of(stream).task(last))
    found = grade(learner, stream, exams(stream, last, "global", splits), silent, 1)
    scores = {
        split: round(fmean(found[split, part][0] for part in range(len(stream))), 6)
        for split in splits
    }
    names: dict[Split, str] = {"val": "val_a_f", "test": "a_f"}
    return {
        "stream": stream_name,
        "seed": seed,
        "setting": setting,
        **{names[split]: score for split, score in scores.items()},
        "seconds": round(time.perf_counter() - began, 3),
        "device": device,
    }


def apart(stream: TaskStream) -> Task:
    """All tasks as one whose graph lacks the edges between them."""
    import scipy.sparse as sp

    from paper.tuned_joint import WholeStream
    from undrift.graphs import Graph
    from undrift.sparse import Csr
    from undrift.streams.task import Task

    whole = WholeStream.of(stream).task(len(stream) - 1)
    task_of = stream.task_of[stream.nodes(range(len(stream)))].cpu().numpy()
    edges = whole.graph.adjacency.to_scipy().tocoo()
    within = task_of[edges.row] == task_of[edges.col]
    kept = edges.data[within], (edges.row[within], edges.col[within])
    adjacency = Csr.from_scipy(
        sp.csr_matrix(kept, shape=edges.shape),
        dtype=whole.graph.adjacency.dtype,
        symmetric=whole.graph.adjacency.symmetric,
    )
    graph = Graph(whole.graph.features, adjacency.to(whole.graph.device), whole.graph.labels)
    return Task(graph, whole.train, whole.val, whole.test, whole.classes)


def isolated(stream_name: str, setting: dict[str, Any], seed: int, device: str) -> Trial:
    """Class accuracy at the end of the stream after training on its tasks apart."""
    return _trained(stream_name, setting, seed, device, tasks_apart=True, splits=("val", "test"))


def write_isolated(found: Sequence[Trial], path: Path) -> None:
    """A line per stream and seed, in their order."""
    places = {stream: place for place, stream in enumerate(STREAMS)}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _ISOLATED, lineterminator="\n")
        writer.writeheader()
        for each in sorted(found, key=lambda t: (places[t["stream"]], t["seed"])):
            writer.writerow({**each, "setting": json.dumps(each["setting"])})


def read_isolated(path: Path) -> list[Trial]:
    """What `write_isolated` wrote; nothing where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {
                **line,
                "seed": int(line["seed"]),
                "setting": _setting(line["setting"]),
                **{name: float(line[name]) for name in ("val_a_f", "a_f", "seconds")},
            }
            for line in csv.DictReader(file)
        ]


def _setting(text: str) -> dict[str, Any]:
    made = json.loads(text)
    return {**made, "hidden": tuple(made["hidden"])}


def write_trials(trials: Sequence[Trial], path: Path) -> None:
    """A line per trial, by stream and setting in their order; the first best is marked."""
    places = {stream: place for place, stream in enumerate(STREAMS)}
    ordered = sorted(trials, key=lambda t: (places[t["stream"]], SETTINGS.index(t["setting"])))
    best: dict[str, Trial] = {}
    for each in ordered:
        if each["val_a_f"] > best.get(each["stream"], {"val_a_f": -1.0})["val_a_f"]:
            best[each["stream"]] = each
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _COLUMNS, lineterminator="\n")
        writer.writeheader()
        for each in ordered:
            chosen = str(best[each["stream"]] is each).lower()
            writer.writerow({**each, "setting": json.dumps(each["setting"]), "chosen": chosen})


def read_trials(path: Path) -> list[Trial]:
    """What `write_trials` wrote."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {
                **line,
                "setting": _setting(line["setting"]),
                "val_a_f": float(line["val_a_f"]),
                "chosen": line["chosen"] == "true",
            }
            for line in csv.DictReader(file)
        ]


def _run(stream: str, setting: dict[str, Any], seed: int, device: str, out: str) -> None:
    from paper.tuned_joint import WholeStream
    from undrift.experiments.run import execute, prepare
    from undrift.experiments.spec import RunSpec

    params = {**FIXED, **setting}
    spec = RunSpec(stream=stream, method="joint", seed=seed, params=params, device=device)
    ready = prepare(spec)
    execute(replace(ready, stream=WholeStream.of(ready.stream)), out)


def main(arguments: Sequence[str]) -> int:
    """Search, then run what was chosen; on the whole graph or on the tasks apart."""
    parser = argparse.ArgumentParser(prog="python -m paper bound")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--streams", nargs="+", default=STREAMS, choices=STREAMS)
    parser.add_argument("--isolated", action="store_true")
    parser.add_argument("--seeds", nargs="+", type=int, default=range(5))
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    trials = given.folder / ("isolated_trials.csv" if given.isolated else "trials.csv")
    with ProcessPoolExecutor(given.workers, mp_context=get_context("spawn")) as pool:
        jobs = [
            pool.submit(trial, stream, setting, given.device, given.isolated)
            for stream, setting in product(given.streams, SETTINGS)
        ]
        write_trials([job.result() for job in jobs], trials)
        chosen = [each for each in read_trials(trials) if each["chosen"]]
        cells = [
            (c["stream"], c["setting"], seed, given.device) for c in chosen for seed in given.seeds
        ]
        if given.isolated:
            made = [pool.submit(isolated, *cell) for cell in cells]
            write_isolated([job.result() for job in made], given.folder / "isolated.csv")
        else:
            for run in [pool.submit(_run, *cell, str(given.folder)) for cell in cells]:
                run.result()
    return 0
