"""The README's example runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_the_python_example_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    predicted, score = done.stdout.splitlines()
    assert predicted.startswith("tensor([")
    assert (tmp_path / "learner.safetensors").stat().st_size < 20e6
    a_f, drift = (float(number) for number in score.split())
    assert a_f > 75
    assert 0 < drift < 0.3
