"""What differential privacy costs: `results/privacy/utility.json`.

    python -m paper private results/privacy/utility.json [--streams cs-cl ...] [--seeds 0 1 ...]

measures class accuracy at the end of the stream (global testing) of private propagation; what is
in the file already is not measured again. The noise is the system's, so other runs give other
numbers, about as far from these as seeds are from each other.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from undrift.evaluation.matrix import class_accuracy
from undrift.evaluation.protocols import Exam, exams
from undrift.learners.private_propagation import PrivatePropagation
from undrift.noise.release import ClippedSums
from undrift.streams.benchmarks import load_stream
from undrift.streams.stream import TaskStream
from undrift.typing import Rows

__all__ = ["main", "measured"]

STREAMS = ("cs-cl", "physics-cl", "photo-cl", "computers-cl", "dblp-cl")
EPSILONS = (1.0, 2.0, 4.0, 8.0)
NO_NOISE = 1e6
"""An epsilon whose noise is a thousandth of a row: the same steps without noise."""
DELTA = 1e-6
FORMS: dict[str, dict[str, Any]] = {
    "row": {"level": "row"},
    "node": {"level": "node"},
    "features": {"level": "node", "hops": 0},
}
"""Row level; node level; node level that does not propagate when predicting either."""


def measured(name: str, seed: int) -> dict[str, float]:
    """A_f of each form at each epsilon."""
    stream, exam, asked = _asked(name, seed)
    found = {}
    for form, settings in FORMS.items():
        known = _Prepared(stream, exam, asked, {"seed": seed, **settings})
        for epsilon in (*EPSILONS, NO_NOISE):
            key = "none" if epsilon == NO_NOISE else f"{epsilon:g}"
            found[f"{form} {key}"] = _graded(known.predicted(epsilon), stream, exam, asked)
    return found


def _asked(name: str, seed: int) -> tuple[TaskStream, Exam, Tensor]:
    """A stream, its last exam and the test nodes in that."""
    stream = load_stream(name, seed=seed)
    exam = next(iter(exams(stream, len(stream) - 1)))
    return stream, exam, exam.masks["test"].nonzero().flatten()


class _Prepared:
    """What all epsilons have in common: each batch's sums before noise, and the exam's rows."""

    def __init__(
        self, stream: TaskStream, exam: Exam, asked: Tensor, settings: dict[str, Any]
    ) -> None:
        self.settings = {"delta": DELTA, "class_list": tuple(sorted(stream.arrived)), **settings}
        learner = self.learner(1.0)
        self.fixed = learner._plan(stream.task(0), lambda *_: None)
        features = self.fixed.feature_map("mix")
        self.sums: list[ClippedSums] = [learner.summed(self.fixed, task) for task in stream]
        self.rows: Rows = features.plain(exam.graph, asked)

    def learner(self, epsilon: float) -> PrivatePropagation:
        return PrivatePropagation(epsilon=epsilon, **self.settings)

    def predicted(self, epsilon: float) -> Tensor:
        """The classes that a learner answers which has seen all batches."""
        learner, fixed = self.learner(epsilon), self.fixed
        for sums in self.sums:
            learner.take(fixed, *learner.released(sums, learner.account_))
        learner.settle()
        features = fixed.feature_map("mix")
        scores = features.scored(self.rows, learner.known.answer.weights)
        return torch.tensor(learner.classes_)[scores.argmax(dim=1)]


def _graded(answer: Tensor, stream: TaskStream, exam: Exam, asked: Tensor) -> float:
    """The mean over tasks of the mean over a task's classes, as a_f has it."""
    truth, task = exam.truth[asked], exam.task[asked]
    accuracies = (
        class_accuracy(answer[task == t], truth[task == t], classes)
        for t, classes in enumerate(stream.classes)
    )
    return round(fmean(accuracies), 3)


def main(arguments: Sequence[str]) -> int:
    """Measure what the file lacks, and write it after each stream and seed."""
    parser = argparse.ArgumentParser(prog="paper private")
    parser.add_argument("file", type=Path)
    parser.add_argument("--streams", nargs="+", default=STREAMS)
    parser.add_argument("--seeds", nargs="+", type=int, default=range(5))
    given = parser.parse_args(arguments)
    table = json.loads(given.file.read_text()) if given.file.is_file() else {}
    for name in given.streams:
        for seed in given.seeds:
            runs = table.setdefault(name, {})
            if str(seed) not in runs:
                runs[str(seed)] = measured(name, seed)
                given.file.parent.mkdir(parents=True, exist_ok=True)
                given.file.write_text(_compact(table))
    return 0


def _compact(table: dict[str, Any]) -> str:
    """JSON with a line for every stream and seed."""
    streams = []
    for name, runs in table.items():
        lines = [f'    "{seed}": {json.dumps(run)}' for seed, run in sorted(runs.items())]
        streams.append(f'  "{name}": {{\n' + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(streams) + "\n}\n"
