"""The example in docs/adding-a-method.md works as it is written."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from undrift.learners.registry import METHODS, make_learner

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-method.md"


def test_the_page_from_file_to_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    method, *rest = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(rest) == 3
    module = ModuleType("undrift.learners.nearest_mean")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(method, "nearest_mean.py", "exec"), vars(module))
    monkeypatch.setattr("undrift.learners.registry.METHODS", dict(METHODS))
    for block in rest:
        exec(compile(block, str(PAGE), "exec"), vars(module))
    assert float(capsys.readouterr().out) > 60
    assert make_learner("nearest-mean", hops=3).params()["hops"] == 3
