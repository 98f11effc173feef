"""What attacks read out of sums, measured on real graphs.

    python -m paper attacks results/privacy/attacks.json [--again now widths ...]

needs the files of CiteSeer, Cora-ML, CS and Photo (`UNDRIFT_DATA`) and twelve minutes of a core, of
which `now`, the default as it is, takes three. What the file has already is not run again, but for
the parts named. Everything is drawn from seed 0.
`python -m paper figures` draws what is written, and `python -m paper attacks-page` makes
docs/privacy/attacks.md of it.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

from paper.attack_membership import by_known_rows, by_width, confidences, membership
from paper.attack_rows import beside_known, small_classes, two_states_by, unknown_words
from paper.attack_validation import validation_moments
from undrift import load_stream
from undrift.errors import InputError
from undrift.learners.base import Learner
from undrift.learners.registry import make_learner
from undrift.propagation.learner import Propagation
from undrift.storage.files import write_atomically
from undrift.streams.stream import TaskStream

__all__ = ["METHODS", "STREAMS", "WIDTHS", "main", "was"]

STREAMS = ("citeseer-cl", "coraml-cl", "cs-cl", "photo-cl")
METHODS = ("adr", "acil", "ds-al", "dpcr", "efc", "polo", "bare")
WIDTHS = (64, 128, 256, 512, 1024)
SIZES = (1, 2, 8, 16, 32, 64)
SHARES = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
DRAWS = 2
LARGE = 10_000  # nodes of a graph on which less is tried, to be done in minutes
SAMPLE = 4_000  # candidates there, too few to be fitted to the sum
Part = Callable[[TaskStream], Any]


def was() -> Propagation:
    """The default as it was before attacks were tried on it: 3,072 columns, whatever the rows."""
    return Propagation(sketch=3072)


def _observed(learner: Learner, stream: TaskStream) -> Learner:
    for task in stream:
        learner.observe(task)
    return learner


def _all_on(make: Callable[[], Propagation]) -> Part:
    """Every attack on one form of the default method."""

    def attacked(stream: TaskStream) -> dict[str, Any]:
        learner = make()
        _observed(learner, stream)
        large = stream.graph.num_nodes > LARGE
        words = {} if large else {"words": unknown_words(stream, learner, 16, 16)}
        return {
            "membership": list(membership(learner, stream, most=SAMPLE if large else None)),
            **words,
            "two_states": list(two_states_by(stream, make(), SIZES, DRAWS)),
        }

    return attacked


def _widths(stream: TaskStream) -> list[Any]:
    nodes = stream.graph.num_nodes
    widths = WIDTHS if nodes < LARGE / 2 else WIDTHS[::2] if nodes < LARGE else WIDTHS[:3:2]
    return list(by_width(stream, widths))


def _known_shares(stream: TaskStream) -> list[Any]:
    return [each for width in (64, 256) for each in by_known_rows(stream, width, SHARES)]


def _two_states_by_width(stream: TaskStream) -> list[Any]:
    return [
        each
        for width in (64, 256, 1024, 2048)
        for each in two_states_by(stream, Propagation(sketch=width, fourier=0), (8, 32), DRAWS)
    ]


def _of_method(method: str, stream: TaskStream) -> dict[str, Any]:
    learner = _observed(make_learner(method), stream)
    sums = list(membership(learner, stream))
    for each in sums:
        for attack in each["attacks"].values():
            del attack["roc"]  # of no figure
    sure = {key: value for key, value in confidences(learner, stream).items() if key != "roc"}
    return {"sums": sums, "confidence": sure}


PARTS: dict[str, tuple[tuple[str, ...], Part]] = {
    "was": (STREAMS, _all_on(was)),
    "now": (STREAMS, _all_on(Propagation)),
    "validation": (
        STREAMS,
        lambda stream: list(validation_moments(stream, was(), (5, 10, 20, 40), DRAWS)),
    ),
    "small_classes": (
        STREAMS,
        lambda stream: list(small_classes(stream, Propagation(), SIZES, DRAWS)),
    ),
    "known_shares": (("coraml-cl",), _known_shares),
    "two_states_by_width": (("coraml-cl",), _two_states_by_width),
    "known_rows": (
        ("photo-cl",),
        lambda stream: list(beside_known(stream, was(), 8, (1, 2, 3, 4, 8), DRAWS)),
    ),
    "widths": (STREAMS, _widths),
    **{method: (("coraml-cl",), partial(_of_method, method)) for method in METHODS},
}
"""What is measured, and on which streams."""


def main(arguments: Sequence[str]) -> int:
    """Run the attacks and write what they found, part by part."""
    parser = argparse.ArgumentParser(prog="python -m paper attacks")
    parser.add_argument("out", type=Path, help="such as results/privacy/attacks.json")
    parser.add_argument("--again", nargs="*", default=[], choices=list(PARTS))
    given = parser.parse_args(arguments)
    try:
        _measure(given.out, given.again)
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


def _measure(out: Path, again: Sequence[str]) -> None:
    found: dict[str, dict[str, Any]] = json.loads(out.read_text()) if out.is_file() else {}
    for part, (streams, run) in PARTS.items():
        for name in streams:
            there = found.setdefault(name, {})
            if part in there and part not in again:
                continue
            start = process_time()
            there[part] = run(load_stream(name, seed=0))
            sys.stderr.write(f"{name}, {part}: {process_time() - start:.0f} s of a core\n")
            out.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(out, _lines(found).encode())


def _lines(found: dict[str, dict[str, Any]]) -> str:
    """As JSON, in the order of `STREAMS` and `PARTS`, with a line per part."""
    streams = []
    for name in (name for name in STREAMS if name in found):
        parts = (part for part in PARTS if part in found[name])
        lines = (f"  {json.dumps(part)}: {json.dumps(found[name][part])}" for part in parts)
        streams.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(streams) + "\n}\n"
