"""What attacks read out of sums, measured on real graphs.

    python -m paper attacks results/privacy/attacks.json

needs the files of CiteSeer, Cora-ML, CS and Photo (`UNDRIFT_DATA`) and some five minutes of a core.
Everything is drawn from seed 0. `python -m paper figures` draws what is written, and
`python -m paper attacks-page` makes docs/privacy/attacks.md of it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from typing import Any

from paper.attack_membership import by_known_rows, by_width, confidences, membership
from paper.attack_rows import beside_known, small_classes, two_states_by, unknown_words
from paper.attack_validation import validation_moments
from undrift import load_stream
from undrift.errors import InputError
from undrift.learners.base import Learner
from undrift.learners.propagation import Propagation
from undrift.learners.registry import make_learner
from undrift.storage.files import write_atomically
from undrift.streams.stream import TaskStream

__all__ = ["METHODS", "STREAMS", "WIDTHS", "main", "was"]

STREAMS = ("citeseer-cl", "coraml-cl", "cs-cl", "photo-cl")
METHODS = ("adr", "acil", "ds-al", "dpcr", "efc", "polo", "bare")
WIDTHS = (64, 128, 256, 512, 1024)
SIZES = (1, 2, 3, 5, 8, 16, 32, 64, 128)
SHARES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


def was() -> Propagation:
    """The default as it was before attacks were tried on it: 3,072 columns, whatever the rows."""
    return Propagation(sketch=3072)


def _observed(learner: Learner, stream: TaskStream) -> Learner:
    for task in stream:
        learner.observe(task)
    return learner


def _of_stream(name: str, stream: TaskStream) -> dict[str, Any]:
    """All that is measured on one stream."""
    first, now = _observed(was(), stream), _observed(Propagation(), stream)
    found: dict[str, Any] = {
        "was": list(membership(first, stream)),
        "now": list(membership(now, stream)),
        "confidence": confidences(now, stream),
        "widths": list(by_width(stream, WIDTHS)),
        "two_states": {
            "was": list(two_states_by(stream, was(), SIZES, 3)),
            "now": list(two_states_by(stream, Propagation(), SIZES, 3)),
        },
        "small_classes": list(small_classes(stream, Propagation(), SIZES[:-1], 3)),
        "validation": list(validation_moments(stream, was(), (5, 10, 20, 40), 3)),
        "words": {
            "was": unknown_words(stream, was(), 20, 16),
            "now": unknown_words(stream, Propagation(), 20, 16),
        },
    }
    if name == "photo-cl":  # the densest features
        found["known_rows"] = list(beside_known(stream, was(), 8, (1, 2, 3, 4, 8), 3))
    if name == "coraml-cl":
        found["known_shares"] = [
            each for width in (64, 256) for each in by_known_rows(stream, width, SHARES)
        ]
        found["two_states_by_width"] = [
            each
            for width in (64, 128, 256, 512, 1024, 2048)
            for each in two_states_by(stream, Propagation(sketch=width, fourier=0), (8, 32), 3)
        ]
        found["methods"] = {method: _of_method(method, stream) for method in METHODS}
    return found


def _of_method(method: str, stream: TaskStream) -> dict[str, Any]:
    learner = _observed(make_learner(method), stream)
    sums = list(membership(learner, stream))
    for each in sums:
        for attack in each["attacks"].values():
            del attack["roc"]  # of no figure
    sure = {key: value for key, value in confidences(learner, stream).items() if key != "roc"}
    return {"sums": sums, "confidence": sure}


def measured(say: Callable[[str], object]) -> dict[str, Any]:
    """The whole study."""
    found = {}
    for name in STREAMS:
        start = process_time()
        found[name] = _of_stream(name, load_stream(name, seed=0))
        say(f"{name}: {process_time() - start:.0f} s of a core\n")
    return {"seed": 0, "streams": found}


def main(arguments: Sequence[str]) -> int:
    """Run the attacks and write what they found."""
    parser = argparse.ArgumentParser(prog="python -m paper attacks")
    parser.add_argument("out", type=Path, help="such as results/privacy/attacks.json")
    given = parser.parse_args(arguments)
    try:
        found = measured(sys.stderr.write)
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    given.out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(given.out, json.dumps(found, indent=1).encode() + b"\n")
    return 0
