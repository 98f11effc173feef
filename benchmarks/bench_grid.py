"""ADR's grid of 4 x 7 settings on CS-CL: against one run, and against the least it must do.

Training and HAM's sums serve all 28 settings. What is left is one merged encoder per gamma, and per
gamma, alpha and task a classifier: factorisations and Gram products whose number the paper's grid
fixes.
"""

import torch

from benchmarks.measure import Ratio, timed
from benchmarks.stream import cs_stream
from undrift.analytic.cholesky import cholesky_
from undrift.evaluation.loop import evaluate, evaluate_together
from undrift.experiments.search import settings_of
from undrift.learners.adr import Adr
from undrift.streams.stream import TaskStream


def run() -> list[Ratio]:
    """The lines of this benchmark."""
    stream = cs_stream()
    one = evaluate(Adr(), stream, splits=("test", "val")).seconds
    default, training = sum(one.values()), one["adapt"]
    widest = timed(lambda: evaluate(Adr(alpha=64), stream, splits=("test", "val")))
    whole = timed(lambda: grid(stream, Adr.grid))
    narrow = timed(lambda: grid(stream, {**Adr.grid, "alpha": (1, 2, 4, 8, 16)}))
    factors, grams = _floor(stream)
    floor = training + factors + grams
    text = f"{whole:.0f} s for 28 settings; {stream.name}"
    return [
        Ratio(
            "ADR's grid / its floor",
            whole / floor,
            f"{text}; floor {floor:.0f} s: training {training:.0f}, Cholesky {factors:.0f}, Gram "
            f"products {grams:.0f}",
            budget=2.0,
        ),
        Ratio(
            "The floor of ADR's grid / one run (alpha 1)",
            floor / default,
            "the least work of 28 settings in float64, by BLAS alone",
        ),
        Ratio("ADR's grid / one run (alpha 1)", whole / default, f"{text}; {default:.0f} s"),
        Ratio("ADR's grid / its widest run (alpha 64)", whole / widest, f"{text}; {widest:.0f} s"),
        Ratio(
            "ADR's grid up to alpha 16 / one run (alpha 1)",
            narrow / default,
            f"{narrow:.0f} s for 20 settings",
            budget=3.0,
        ),
    ]


def grid(stream: TaskStream, values: dict[str, tuple[float, ...]], device: str = "cpu") -> None:
    """A search: every setting, side by side, graded on validation nodes."""
    learners = [Adr(device=device, **setting) for setting in settings_of(values)]
    evaluate_together(learners, stream, splits=("val",))


def _floor(stream: TaskStream) -> tuple[float, float]:
    """Seconds of the factorisations and of half the Gram products, each width timed once."""
    gammas, tasks = len(Adr.grid["gamma"]), len(stream)
    width = Adr().backbone.architecture().width
    widths = [alpha * width for alpha in Adr.grid["alpha"]]
    factors = sum(_cholesky(d) for d in [stream.graph.num_features, *widths])
    rows = int(stream.train.sum())
    return gammas * tasks * factors, gammas * sum(_half_gram(rows, d) for d in widths)


def _cholesky(d: int) -> float:
    system = torch.full((d, d), 0.1, dtype=torch.float64).mT
    system.diagonal().add_(1.0)
    return timed(lambda: cholesky_(system))


def _half_gram(rows: int, d: int) -> float:
    x = torch.rand(rows, d, dtype=torch.float64)
    gram = torch.empty(d, d, dtype=torch.float64)
    gram.zero_()  # its pages are there before the clock starts
    return timed(lambda: gram.addmm_(x.T, x)) / 2
