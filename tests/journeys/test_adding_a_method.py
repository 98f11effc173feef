"""The example in docs/adding-a-method.md works as it is written."""

import re
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

from undrift import plugins
from undrift.learners.registry import METHODS, make_learner
from undrift.testing import check_learner

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-method.md"


def test_the_page_from_file_to_table(monkeypatch, capsys) -> None:
    method, *rest = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (entry,) = re.findall(r'(nearest-mean) = "(.*)"', PAGE.read_text())
    *rest, additive = rest
    assert len(rest) == 2
    module = ModuleType(entry[1].partition(":")[0])
    monkeypatch.setitem(sys.modules, "my_package", ModuleType("my_package"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(method, "nearest_mean.py", "exec"), vars(module))
    monkeypatch.setattr(
        plugins, "_outside", lambda group: {"nearest-mean": EntryPoint(*entry, group)}
    )
    for block in rest:
        exec(compile(block, str(PAGE), "exec"), vars(module))
    assert METHODS["nearest-mean"].display == "Nearest mean"
    assert float(capsys.readouterr().out) > 60
    assert make_learner("nearest-mean", hops=3).params()["hops"] == 3
    lines = [line for line in additive.splitlines() if line]
    assert len(lines) <= 40
    exec(compile(additive, "class_means.py", "exec"), vars(module))
    means = module.ClassMeans()
    check_learner(means)
    assert all(means.can(verb) for verb in ("returns", "forgets", "merges"))
