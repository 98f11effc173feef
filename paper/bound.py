"""The strongest bound: joint training by the tuned recipe, searched per stream, over five seeds.

    python -m paper bound FOLDER [--device cuda] [--workers 14] [--streams cs-cl ...]

writes `FOLDER/trials.csv`, a line per setting tried, and the runs of the chosen ones to
`FOLDER/runs`. A setting is judged by class accuracy at the end of the stream on the validation
nodes of seed 0; the test nodes are looked at once per chosen setting.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any

__all__ = ["FIXED", "SETTINGS", "STREAMS", "main", "read_trials", "trial", "write_trials"]

STREAMS = (
    *("cs-cl", "physics-cl", "computers-cl", "photo-cl", "coraml-cl", "citeseer-cl", "dblp-cl"),
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
Trial = dict[str, Any]


def trial(stream_name: str, setting: dict[str, Any], device: str) -> Trial:
    """Class accuracy on validation nodes after training once, on the whole stream of seed 0."""
    import time

    from undrift.evaluation.loop import grade
    from undrift.evaluation.protocols import exams
    from undrift.learners.registry import make_learner
    from undrift.streams.benchmarks import load_stream
    from undrift.typing import silent

    began = time.perf_counter()
    stream = load_stream(stream_name, 0).to(device)
    last = len(stream) - 1
    learner = make_learner("joint", seed=0, device=device, **FIXED, **setting)
    learner.observe(stream.until(last))
    found = grade(learner, stream, exams(stream, last, "global", ("val",)), silent, 1)
    score = fmean(found["val", part][0] for part in range(len(stream)))
    seconds = time.perf_counter() - began
    return {
        "stream": stream_name,
        "setting": setting,
        "val_a_f": round(score, 6),
        "seconds": round(seconds, 3),
        "device": device,
    }


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
                "setting": {**(made := json.loads(line["setting"])), "hidden": (*made["hidden"],)},
                "val_a_f": float(line["val_a_f"]),
                "chosen": line["chosen"] == "true",
            }
            for line in csv.DictReader(file)
        ]


def _run(stream: str, setting: dict[str, Any], seed: int, device: str, out: str) -> None:
    from undrift.experiments.run import execute, prepare
    from undrift.experiments.spec import RunSpec

    params = {**FIXED, **setting}
    spec = RunSpec(stream=stream, method="joint", seed=seed, params=params, device=device)
    execute(prepare(spec), out)


def main(arguments: Sequence[str]) -> int:
    """Search, then run what was chosen on seeds 0 to 4."""
    parser = argparse.ArgumentParser(prog="python -m paper bound")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--streams", nargs="+", default=STREAMS, choices=STREAMS)
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(given.workers, mp_context=get_context("spawn")) as pool:
        jobs = [
            pool.submit(trial, stream, setting, given.device)
            for stream, setting in product(given.streams, SETTINGS)
        ]
        write_trials([job.result() for job in jobs], given.folder / "trials.csv")
        chosen = [each for each in read_trials(given.folder / "trials.csv") if each["chosen"]]
        runs = [
            pool.submit(_run, *(c["stream"], c["setting"], seed, given.device), str(given.folder))
            for c, seed in product(chosen, range(5))
        ]
        for run in runs:
            run.result()
    return 0
