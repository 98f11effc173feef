"""A method has few functions to write: the hooks are counted."""

from __future__ import annotations

import pydoc
from typing import Any

import pytest

from undrift.learners.additive import AdditiveLearner
from undrift.learners.base import Learner
from undrift.learners.private_propagation import PrivatePropagation
from undrift.learners.registry import METHODS, method_class
from undrift.propagation.learner import Propagation

KINDS = [*(method_class(name) for name in METHODS), PrivatePropagation]


def private_names(kind: type) -> dict[str, Any]:
    """Every function of a class or its bases that begins with one underscore, as it is there."""
    named = {}
    for base in reversed(kind.__mro__):
        for name, value in vars(base).items():
            plain = getattr(value, "__func__", value)
            if callable(plain) and name.startswith("_") and not name.startswith(("__", "_abc")):
                named[name] = value
    return named


def hooks(kind: type) -> set[str]:
    return {
        name
        for name, value in private_names(kind).items()
        if not getattr(value, "__final__", False)
    }


def test_a_learner_has_at_most_eight_hooks_and_an_additive_one_three() -> None:
    assert len(hooks(Learner)) <= 8
    assert hooks(AdditiveLearner) == {"_plan", "_sums", "_solve"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
def test_a_method_overrides_hooks_alone(kind: type[Learner]) -> None:
    contract = AdditiveLearner if issubclass(kind, AdditiveLearner) else Learner
    below = kind.__mro__[: kind.__mro__.index(contract)]
    final = private_names(contract).keys() - hooks(contract)
    assert not [(base.__name__, name) for base in below for name in vars(base) if name in final]


def test_help_of_the_default_method_fits_on_two_screens() -> None:
    told = pydoc.plain(pydoc.render_doc(Propagation))
    assert "observe(self" in told
    assert len(told.splitlines()) <= 125
    assert {"params", "clone", "exactness"} <= set(dir(Propagation()))  # a learner lists all
