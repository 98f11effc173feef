"""The figures of docs/, each made again from the recorded runs: `make figures`.

    python -m paper figures results docs/figures [--runs FOLDER]

draws those that the tables in `results/` are enough for; with `--runs` also the two that need
more: drift needs embeddings and leakage needs its studies, which are run into that folder first
(what is there already is not run again).
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from paper.attack_figures import ATTACK_FIGURES
from paper.compact import read_compact
from paper.diginetica_page import curves as recommendation_figure
from paper.leakage.figure import leakage_figure
from paper.leakage.study import load_studies
from paper.private_figure import private_figure, read_utility
from paper.published import SHOWN
from paper.report_figures.drift import drift_figure, load_embedding
from paper.size_figure import read_sizes, size_figure
from undrift.errors import InputError
from undrift.experiments.run import execute, prepare
from undrift.experiments.standing import standing
from undrift.experiments.store import Records
from undrift.formatting import duration
from undrift.reporting.figures.curves import curves_figure
from undrift.reporting.figures.figure import all_figures
from undrift.reporting.figures.sheet import write_figure

__all__ = ["FIGURES", "WITH_RUNS", "main"]

OF_THE_REPORT = ("plasticity", "surface-adr", "learning-curves", "accuracy-bytes")
DRIFT_STREAMS = ("cs-cl", "physics-cl", "computers-cl", "photo-cl")
LEAKAGE = [
    (stream, method, seed)
    for stream in ("cs-cl", "photo-cl", "coraml-cl")
    for method in ("bare", "adr")
    for seed in (0, 1, 2)
]
DIGINETICA = "recommend/diginetica.json"
LEAKAGE_SECONDS = 25.0  # of one study on a CPU core, about


def _of_the_report(name: str) -> Callable[[Records], Any]:
    def draw(records: Records) -> Any:
        (figure,) = (each for each in all_figures(records) if each.name == name)
        if figure.left_out:
            raise InputError(f"{name} cannot be drawn: {figure.left_out}")
        return figure.draw(records)

    return draw


def _readme(records: Records) -> Any:
    """CS-CL: the default method between its bounds, and ADR."""
    found = standing(records.results, records.manifests)["cs-cl"]
    shown = {method: found[method] for method in ("propagation", "joint", "adr", "bare")}
    return curves_figure({"cs-cl": shown}, width=120.0)


def _private(records: Records) -> Any:
    """What differential privacy costs."""
    return private_figure(read_utility(records.folder))


def _recommendation(records: Records) -> Any:
    """Recommenders on DIGINETICA."""
    return recommendation_figure(json.loads((records.folder / DIGINETICA).read_text("utf-8")))


def _sizes(records: Records) -> Any:
    """What is kept against what it knows and gives away."""
    return size_figure(read_sizes(records.folder))


FIGURES: dict[str, Callable[[Records], Any]] = {
    "cs-cl": _readme,
    "sizes": _sizes,
    "private-accuracy": _private,
    "recommendation": _recommendation,
    **{name: _of_the_report(name) for name in OF_THE_REPORT},
    **ATTACK_FIGURES,
}
"""The figures that the tables are enough for."""


def _drift(records: Records, runs: Path, out: Path) -> None:
    found = standing(records.results, records.manifests)
    methods = SHOWN["drift"]
    chosen = [found[stream][method][0] for stream in DRIFT_STREAMS for method in methods]
    panels = []
    for result in chosen:
        spec = result.spec.model_copy(update={"device": "cpu"})
        path = runs / spec.id / "embedding.npz"
        if not path.exists():
            _say(f"running {spec.method} on {spec.stream}, seed {spec.seed}")
            execute(prepare(spec), runs)
        panels.append((result, load_embedding(path)))
    write_figure(drift_figure(panels, methods), out)


def _leakage(records: Records, runs: Path, out: Path) -> None:
    from paper.leakage.command import leakage

    there = {(s.stream, s.method, s.seed) for s in load_studies(runs)} if runs.is_dir() else set()
    missing = [wanted for wanted in LEAKAGE if wanted not in there]
    _say(f"leakage: {len(missing)} studies, {duration(LEAKAGE_SECONDS * len(missing))} or so")
    for stream, method, seed in missing:
        leakage(stream=stream, method=method, seed=seed, out=runs)
    leakage_figure(load_studies(runs), out)


WITH_RUNS = {"drift": _drift, "leakage": _leakage}
"""The figures that need runs of their own: 12 runs and 18 leakage studies."""


def main(arguments: Sequence[str]) -> int:
    """Draw the figures into a folder."""
    parser = argparse.ArgumentParser(prog="python -m paper figures")
    parser.add_argument("tables", type=Path, help="the folder with runs.csv, such as results")
    parser.add_argument("out", type=Path, help="the folder of the figures, such as docs/figures")
    parser.add_argument("--runs", type=Path, help="run what drift and leakage need into this")
    given = parser.parse_args(arguments)
    try:
        records = read_compact(given.tables)
        for name, draw in FIGURES.items():
            write_figure(draw(records), given.out / f"{name}.svg")
            _say(f"{given.out / name}.svg")
        for name, make in WITH_RUNS.items() if given.runs else ():
            make(records, given.runs, given.out / f"{name}.svg")
            _say(f"{given.out / name}.svg")
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
