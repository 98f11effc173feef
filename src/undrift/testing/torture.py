"""`python -m undrift.testing.torture`: every fault at every call of what undrift writes.

Two steps: a state is saved over another, and a folder's learner observes a batch. After each fault
what is left must be old or new and whole, and the step must end well when it is done again.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from undrift.learners.bare import Bare
from undrift.learners.base import Learner
from undrift.storage.files import load_state, save_state
from undrift.storage.leftovers import sweep
from undrift.testing.faults import crash_everywhere
from undrift.testing.graphs import tiny_stream

Step = Callable[[Path], object]
Check = Callable[[Path, bool], None]


def main() -> None:
    """Run every scenario and print what it survived, a line of JSON each."""
    every = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    with tempfile.TemporaryDirectory() as place:
        for name, start, step, check in _scenarios(Path(place)):
            began = time.monotonic()
            found = crash_everywhere(start, step, check, every=every)
            line = {
                "step": name,
                "calls": found.points,
                "faults": found.runs,
                "seconds": round(time.monotonic() - began, 1),
            }
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()


def _scenarios(place: Path) -> Iterator[tuple[str, Path, Step, Check]]:
    torch.set_num_threads(1)
    yield "save a state", *_saving(place / "save")
    yield "observe in a folder", *_observing(place / "folder")


def _saving(start: Path) -> tuple[Path, Step, Check]:
    start.mkdir()
    stream = tiny_stream()
    learners: list[Learner] = []
    for tasks in (1, 2):
        learner = Bare.from_params(epochs=2, hidden=(4,))
        for t in range(tasks):
            learner.observe(stream.task(t))
        learners.append(learner)
    save_state(start / "state", learners[0].state())
    after = learners[1].state()

    def step(folder: Path) -> None:
        save_state(folder / "state", after)

    def check(folder: Path, done: bool) -> None:
        known = Bare.from_params(epochs=2, hidden=(4,)).load(load_state(folder / "state")).classes_
        assert known in ((0, 1), (0, 1, 2, 3)), f"a state of the classes {known}"
        assert not done or len(known) == 4, "it ended well and the old state is there"
        sweep([folder])
        assert [path.name for path in folder.iterdir()] == ["state"], "something was left"
        step(folder)
        assert len(load_state(folder / "state").values) > 0, "again does not work"

    return start, step, check


def _observing(place: Path) -> tuple[Path, Step, Check]:
    from undrift.folder.folder import LearnerFolder

    place.mkdir()
    graph = tiny_stream().graph
    assert graph.labels is not None
    batches = [
        graph.subgraph(torch.isin(graph.labels, torch.tensor(classes)).nonzero().flatten())
        for classes in ((0, 1), (2, 3))
    ]
    settings = {"epochs": 2, "hidden": (4,)}
    LearnerFolder.new(place / "desk", "bare", settings=settings).observe(batches[0])

    def step(folder: Path) -> None:
        LearnerFolder(folder / "desk").observe(batches[1])

    def check(folder: Path, done: bool) -> None:
        classes = len(LearnerFolder(folder / "desk").learner().classes_)
        assert classes in (2, 4), f"{classes} classes are known"
        assert not done or classes == 4, "it ended well and the old learner is there"
        if classes == 2:
            step(folder)
        there = LearnerFolder(folder / "desk")
        assert len(there.learner().classes_) == 4, "again does not work"
        there.verify()
        assert not list(folder.rglob("*.part")), "something was left"

    return place, step, check


if __name__ == "__main__":
    main()
