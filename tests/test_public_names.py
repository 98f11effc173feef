"""Public names: each says what it is, and has an example of its own."""

import ast
import doctest
import inspect
import subprocess
import sys
from functools import cache
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest

import undrift

PARTS = (
    "datasets encoders evaluation experiments folder graphs learners merging noise recommend "
    "reporting storage streams testing"
)
PACKAGES = [undrift, *(import_module(f"undrift.{name}") for name in PARTS.split())]
NAMES = sorted((package.__name__, name) for package in PACKAGES for name in package.__all__)
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@cache
def constants(package: ModuleType) -> dict[str, tuple[ModuleType, str]]:
    """The docstrings under assignments in a package's modules: Python does not keep these."""
    found = {}
    inside = f"{package.__name__}."
    for module in [each for name, each in sys.modules.items() if f"{name}.".startswith(inside)]:
        body = ast.parse(inspect.getsource(module)).body
        for node, text in pairwise(body):
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(text, ast.Expr):
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                doc = ast.literal_eval(text.value)
                found[ast.unparse(target)] = module, inspect.cleandoc(doc)
    return found


def public(package: str, name: str) -> Any:
    """What the name stands for.

    Where pytest collects doctests, a module takes the place of a function of its name.
    """
    thing = getattr(import_module(package), name)
    return getattr(thing, name) if inspect.ismodule(thing) else thing


def docstring(package: str, name: str) -> str:
    """What is written at a class, a function or a constant."""
    thing = public(package, name)
    if inspect.isclass(thing) or inspect.isfunction(thing):
        return inspect.cleandoc(thing.__doc__ or "")
    return constants(import_module(package)).get(name, (None, ""))[1]


def example(package: str, name: str) -> str:
    """The source of all its examples."""
    found = doctest.DocTestParser().get_examples(docstring(package, name))
    return "".join(each.source for each in found)


def test_a_public_name_says_what_it_is_and_has_an_example() -> None:
    for package, name in NAMES:
        first, *rest = docstring(package, name).splitlines() or [""]
        assert first.endswith("."), f"the first line of {name} is a sentence"
        assert not first.startswith(">>>"), name
        assert not rest or not rest[0], f"the first line of {name} stands alone"
        assert name in example(package, name), f"the example shows this very name, {name}"


def test_no_two_names_share_an_example() -> None:
    things = {id(public(package, name)): (package, name) for package, name in NAMES}
    owner: dict[str, str] = {}
    for package, name in things.values():
        text = example(package, name).replace(name, "it")  # another name alone is no difference
        assert owner.setdefault(text, name) == name


def test_examples_of_constants_hold() -> None:
    """Those of classes and functions run with the doctests of their module."""
    for package in PACKAGES[1:]:
        for name in set(package.__all__) & set(found := constants(package)):
            module, text = found[name]
            test = doctest.DocTestParser().get_doctest(text, vars(module).copy(), name, None, 0)
            assert doctest.DocTestRunner(optionflags=OPTIONS).run(test).failed == 0, name


LISTED = [*PACKAGES, *map(import_module, ("undrift.analytic", "undrift.cli", "undrift.privacy"))]
LISTED += map(import_module, ("undrift.propagation", "undrift.scale"))


def test_packages_are_there_after_import_undrift() -> None:
    code = "import undrift; print(undrift.recommend.Ease.__name__, undrift.privacy.audit.__name__)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "Ease undrift.privacy.audit\n"
    with pytest.raises(AttributeError, match=r"no attribute 'Ewc'; it is undrift\.learners\.Ewc"):
        undrift.Ewc  # noqa: B018


@pytest.mark.parametrize("package", LISTED, ids=lambda package: package.__name__)
def test_dir_lists_exactly_the_public_names(package: ModuleType) -> None:
    assert dir(package) == sorted(package.__all__)
    assert len(set(package.__all__)) == len(package.__all__)
    assert all(hasattr(package, name) for name in package.__all__)
