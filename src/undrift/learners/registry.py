"""Every method there is, one entry each; nothing is imported until a learner is made."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from undrift.errors import unknown_name

if TYPE_CHECKING:
    from undrift.learners.base import Learner

__all__ = ["METHODS", "Method", "make_learner", "method_class"]


@dataclass(frozen=True)
class Method:
    """What the tables say about a method, and where its class is."""

    name: str
    display: str
    family: str
    paper: str
    keeps_examples: bool
    keeps: str
    where: str


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("bare", "Bare", "bound", "-", False, "one encoder and head", "bare:Bare"),
        Method("joint", "Joint", "bound", "-", True, "every task graph", "joint:Joint"),
        Method(
            "adr",
            "ADR",
            "analytic",
            "Song, Guan and Kong, Analytic Drift Resister",
            False,
            "R and Q per layer and of the classifier, two encoders",
            "adr:Adr",
        ),
    )
}


def method_class(name: str) -> type[Learner]:
    """The class behind a method's name; an unknown name prints the list."""
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    module, _, attribute = METHODS[name].where.partition(":")
    found: type[Learner] = getattr(import_module(f"undrift.learners.{module}"), attribute)
    return found


def make_learner(name: str, **params: Any) -> Learner:
    """A learner by its name, with some hyperparameters set.

    >>> make_learner("adr", gamma=0.1).params()["gamma"]
    0.1
    """
    return method_class(name).from_params(**params)
