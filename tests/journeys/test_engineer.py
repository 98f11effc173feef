"""An engineer whose classes arrive over months: each task in a process of its own."""

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
t, path = int(sys.argv[1]), Path(sys.argv[2])
learner = load(path) if path.exists() else Adr.from_params(epochs=5, hidden=(32, 32))
learner.observe(load_stream("synthetic").task(t)).save(path)
"""


def test_learning_over_several_processes_equals_learning_in_one(tmp_path: Path) -> None:
    path = tmp_path / "learner.safetensors"
    stream = load_stream("synthetic")
    for t in range(len(stream)):
        subprocess.run([sys.executable, "-c", STEP, str(t), str(path)], check=True)
    restored = load(path)
    straight = Adr.from_params(epochs=5, hidden=(32, 32))
    for task in stream:
        straight.observe(task)
    assert restored.classes_ == straight.classes_
    assert restored.scores(stream.graph).equal(straight.scores(stream.graph))
