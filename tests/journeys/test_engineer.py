"""An engineer whose classes arrive over months: a process of its own goes on from the file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from undrift import load
from undrift.learners.adr import Adr
from undrift.streams.benchmarks import load_stream

STEP = """
import sys
from pathlib import Path
from undrift import Adr, load, load_stream
path = Path(sys.argv[1])
learner = load(path) if path.exists() else Adr.from_params(epochs=5, hidden=(32, 32))
for t in map(int, sys.argv[2:]):
    learner.observe(load_stream("synthetic").task(t)).save(path)
"""


def test_learning_over_several_processes_equals_learning_in_one(tmp_path: Path) -> None:
    path = tmp_path / "learner.safetensors"
    stream = load_stream("synthetic")
    assert len(stream) == 4
    for tasks in ("0", "1"), ("2", "3"):
        subprocess.run([sys.executable, "-c", STEP, str(path), *tasks], check=True)
    restored = load(path)
    straight = Adr.from_params(epochs=5, hidden=(32, 32))
    for task in stream:
        straight.observe(task)
    assert restored.classes_ == straight.classes_
    assert restored.scores(stream.graph).equal(straight.scores(stream.graph))
