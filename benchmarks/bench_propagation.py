"""Propagation: the whole CS-CL against ADR, and how its cost grows with n, d and tasks."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.measure import Ratio, interleaved, timed
from benchmarks.stream import cs_stream
from undrift.datasets.synthetic import generate
from undrift.evaluation.loop import evaluate
from undrift.learners.adr import Adr
from undrift.propagation.learner import Propagation
from undrift.streams.stream import TaskStream


@dataclass(frozen=True)
class Size:
    """A generated stream, 2 classes a task; doubling one number leaves the others."""

    nodes_per_task: int = 1500
    words: int = 1500
    tasks: int = 4

    def stream(self) -> TaskStream:
        """A node keeps 30 words however many there are."""
        graph = generate(
            nodes=self.nodes_per_task * self.tasks,
            words=self.words,
            classes=2 * self.tasks,
            size_ratio=1.0,
        )
        return TaskStream.from_graph(graph, base=2, increment=2)

    def __str__(self) -> str:
        """Such as `1,500 nodes x 4 tasks, d 1,500`."""
        return f"{self.nodes_per_task:,} nodes x {self.tasks} tasks, d {self.words:,}"


START = Size()
NARROW = Size(words=128)  # rows of 128 + 2,048 columns
GROWTH: tuple[tuple[str, Size, Size, float], ...] = (
    ("n doubled", START, Size(nodes_per_task=3000), 2.4),
    ("n doubled, with Fourier features", NARROW, Size(nodes_per_task=3000, words=128), 2.4),
    ("tasks doubled", START, Size(tasks=8), 2.6),
    ("d doubled below the sketch", START, Size(words=3000), 8.0),
    ("d doubled above the sketch", Size(words=6000), Size(words=12_000), 1.4),
)
"""What is doubled, from, to, and the most that learning the whole stream may take longer."""

FLAT = {what for what, *_ in GROWTH if what != "d doubled below the sketch"}
"""Where the state must stay: R and its twin do; new classes add columns to Q and W only."""


def run() -> list[Ratio]:
    """The lines of this benchmark."""
    return [_against_adr(), *_growth()]


def _against_adr() -> Ratio:
    """Both with evaluation after every task; ours goes first and builds what both share."""
    stream = cs_stream()
    ours = timed(lambda: evaluate(Propagation(), stream))
    theirs = timed(lambda: evaluate(Adr(), stream))
    return Ratio(
        "whole stream: ADR / propagation",
        theirs / ours,
        f"{theirs:.1f} s against {ours:.1f} s with evaluation; {stream.name}",
        budget=2.0,
        at_least=True,
    )


def _growth() -> list[Ratio]:
    """Time to learn a whole stream, and the bytes kept at its end, against what was doubled."""
    kept: dict[str, int] = {}
    calls: dict[str, Callable[[], object]] = {}
    for size in {size for _, one, two, _ in GROWTH for size in (one, two)}:
        stream = size.stream()
        calls[str(size)] = lambda at=str(size), stream=stream: kept.update(
            {at: _taught(stream).nbytes()}
        )
    times = interleaved(calls, repeats=3, warm_up=1)
    lines = []
    for what, first, second, budget in GROWTH:
        one, two = str(first), str(second)
        lines.append(
            Ratio(
                f"propagation, time to learn a stream: {what}",
                times[two] / times[one],
                f"{times[two]:.2f} s ({two}) against {times[one]:.2f} s ({one})",
                budget=budget,
            )
        )
        if what in FLAT:
            lines.append(
                Ratio(
                    f"propagation, bytes kept: {what}",
                    kept[two] / kept[one],
                    f"{kept[two] / 1e6:.1f} MB against {kept[one] / 1e6:.1f} MB",
                    budget=1.02,
                )
            )
    return lines


def _taught(stream: TaskStream) -> Propagation:
    learner = Propagation()
    for task in stream:
        learner.observe(task)
    return learner
