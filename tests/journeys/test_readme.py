"""The README's example runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


def test_the_python_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(README), "exec"), {})
    predicted, score = capsys.readouterr().out.splitlines()
    assert predicted.startswith("tensor([")
    assert (tmp_path / "learner.safetensors").stat().st_size < 20e6
    a_f, drift = (float(number) for number in score.split())
    assert a_f > 75
    assert 0 < drift < 0.3
