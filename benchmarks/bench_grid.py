"""ADR's grid of 4 x 7 settings on CS-CL, against single runs: what sharing saves."""

from __future__ import annotations

from benchmarks.measure import Ratio, timed
from benchmarks.stream import cs_stream
from undrift.evaluation.loop import evaluate
from undrift.evaluation.together import evaluate_together
from undrift.experiments.search import settings_of
from undrift.learners.adr import Adr
from undrift.streams.stream import TaskStream


def run() -> list[Ratio]:
    """The lines of this benchmark."""
    stream = cs_stream()
    default = _one(stream)
    widest = _one(stream, alpha=64)
    whole = timed(lambda: _grid(stream, Adr.grid))
    narrow = timed(lambda: _grid(stream, {**Adr.grid, "alpha": (1, 2, 4, 8, 16)}))
    text = f"{whole:.0f} s for 28 settings; {stream.name}"
    return [
        Ratio("ADR's grid / its widest run (alpha 64)", whole / widest, f"{text}; {widest:.0f} s"),
        Ratio("ADR's grid / one run (alpha 1)", whole / default, f"{text}; {default:.0f} s"),
        Ratio(
            "ADR's grid up to alpha 16 / one run (alpha 1)",
            narrow / default,
            f"{narrow:.0f} s for 20 settings",
            budget=3.0,
        ),
    ]


def _one(stream: TaskStream, alpha: int = 1) -> float:
    return timed(lambda: evaluate(Adr(alpha=alpha), stream, splits=("test", "val")))


def _grid(stream: TaskStream, grid: dict[str, tuple[float, ...]]) -> None:
    learners = [Adr(**setting) for setting in settings_of(grid)]
    evaluate_together(learners, stream, splits=("val",))
