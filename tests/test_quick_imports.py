"""Lists and tables are quick to show: what makes them does not import what takes seconds."""

import subprocess
import sys

import pytest

HEAVY = "torch numpy scipy"
RESULTS = "bench estimate plans standing store tracking"
CASES = [
    (
        "import undrift.evaluation.metrics, extras.table, paper.compact, paper.claims, "
        "undrift.reporting.terminal, undrift.reporting.learner, "
        + ", ".join(f"undrift.experiments.{part}" for part in RESULTS.split()),
        "torch",
    ),
    (
        "import undrift.experiments.run; from undrift.experiments.tracking import trackers\n"
        "with trackers((), 'runs').following(undrift.experiments.run.RunSpec()): pass\n"
        "from undrift.testing import tiny_stream\n"  # nor does training the compiler of torch
        "undrift.Adr.from_params(epochs=1, hidden=(4,)).observe(tiny_stream().task(0))",
        "tensorboard torch.utils.tensorboard mlflow sqlalchemy tensorflow torch._dynamo",
    ),
    ("import undrift.reporting.tables.compare, undrift.reporting.tables.formats", "torch scipy"),
    ("import undrift.reporting.figures.curves, undrift.reporting.figures.figure", "matplotlib"),
    ("import undrift.reporting.figures.sheet as s; s.blank(1, 1)", "matplotlib.pyplot"),
    ("from undrift.streams.file import read_stream_file; read_stream_file('s.toml')", HEAVY),
    (
        "from undrift.streams.benchmarks import STREAMS, stream_info; "
        "[(s.on_disk(), s.counts, s.source) for s in STREAMS.values()]; "
        "stream_info('reddit-cl-stand-in@0.01').counts",
        HEAVY,
    ),
]


@pytest.mark.parametrize(("code", "heavy"), CASES)
def test_it_does_not_import(code: str, heavy: str, tmp_path) -> None:
    graph = "graph.npz = 'g.npz'\n[tasks]\nbase = 1\nincrement = 1\n"
    (tmp_path / "s.toml").write_text(f"name = 's'\n{graph}")
    told = f"import sys; {code}\nprint(sorted(set({heavy.split()}) & set(sys.modules)))"
    call = [sys.executable, "-c", told]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
