"""What a user has after `pip install`: the wheel alone, in a fresh environment, does three jobs.

Usage: python -m tests.harness.wheel DIST. The environment has the wheel, the extras `figures` and
`pyg` and nothing of this repository; commands run in an empty folder.
"""

import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

_CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
_PYG = """
import torch, undrift
data = undrift.load_stream("synthetic").graph.to_pyg(dense=True)
jan, feb = data.subgraph(data.y < 5), data.subgraph(data.y >= 5)
learner = undrift.Propagation().observe(jan).observe(feb)
right = (learner.predict(data) == data.y).float().mean()
assert right > 0.8, right
learner.save("learner.safetensors")
assert torch.equal(undrift.load("learner.safetensors").predict(data), learner.predict(data))
"""
_NODES = "id,a,b,label\n" + "\n".join(f"n{i},{i % 7},{i % 5},{'xy'[i % 2]}" for i in range(40))
_EDGES = "source,target\n" + "\n".join(f"n{i},n{(i + 2) % 40}" for i in range(40))


def main(dist: str) -> None:
    """Install the only wheel in `dist` into a fresh environment and use it."""
    (wheel,) = Path(dist).resolve().glob("*.whl")
    with TemporaryDirectory() as folder:
        home = Path(folder)
        venv.create(home / "venv", with_pip=True)
        python, undrift = home / "venv/bin/python", home / "venv/bin/undrift"
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _call(home, *pip, "-c", _CONSTRAINTS, f"{wheel}[figures,pyg]")
        _call(home, undrift, "demo")
        _call(home, python, "-c", _PYG)
        (home / "nodes.csv").write_text(_NODES)
        (home / "edges.csv").write_text(_EDGES)
        _call(home, undrift, "learner", "new", "desk")
        _call(home, undrift, "learner", "observe", "desk", "nodes.csv", "edges.csv")
        asked = "nodes.csv", "edges.csv", "--out", "predictions.csv"
        _call(home, undrift, "learner", "predict", "desk", *asked)
    sys.stdout.write(f"{wheel.name}: the demo, a PyG example and a learner folder work\n")


def _call(home: Path, *command: object) -> None:
    sys.stdout.write(f"$ {' '.join(str(part) for part in command)[:100]}\n")
    sys.stdout.flush()
    subprocess.run([str(part) for part in command], cwd=home, check=True)


if __name__ == "__main__":
    main(sys.argv[1])
