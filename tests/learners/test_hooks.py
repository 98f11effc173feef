"""A method has few functions to write: what it may override is listed here, and counted."""

import pydoc
from functools import cached_property
from types import FunctionType
from typing import Any, get_args

import pytest

from paper.rivals.ugcn import Ugcn
from undrift import Bare, Learner, PrivatePropagation, Propagation
from undrift.analytic.additive import Additive
from undrift.learners.acil import AcilPlan
from undrift.learners.additive import AdditiveLearner, RowPlan, ScoredRows
from undrift.learners.parts.model_learner import ModelLearner
from undrift.learners.registry import METHODS, method_class

KINDS = [*(method_class(name) for name in METHODS), PrivatePropagation]
FUNCTIONS = FunctionType, property, classmethod, staticmethod, cached_property

# what a method writes
OWN = {"_learn", "_scores", "_temperature", "_inventory"}
HOOKS: dict[type, set[str]] = {
    Learner: {*OWN, "_hops", "_replaced", "_merged", "_emptied"},
    ModelLearner: {*OWN, "_loss", "_kept"},
    AdditiveLearner: {"_plan", "_sums", "_solve"},
    RowPlan: {
        "rows_of",
        "furthest",
        "looks",
        "scored_rows",
        "noise_rows",
        "log_noise",
        "rare_columns",
    },
    ScoredRows: {"hops", "scores", "pieces", "rows"},
    Additive: {"scored", "below_zero", "shaken", "emptied", "classes", "_beside"},
}
# what `AdditiveLearner` answers for every sum, and no method
OF_SUMS = {"settle", "ranking", "exactness", "novelty_report", "_judged", "_grouped"}
# what a few are asked: who overrides it, and why
EXCEPTIONS = {
    ("DsAl", "_learn"): "in its published form the order of batches counts",
    ("Propagation", "plan_"): "a plan can be given before any batch",
    ("Propagation", "plan_note"): "it decides a plan by what a batch tells",
    ("Hybrid", "plan_note"): "so does it",
    ("Propagation", "check_param"): "it also names the settings of the form with noise",
    ("PrivatePropagation", "take"): "sums without noise are refused",
    ("AdrStages", "kinds"): "a rule is chosen by name",
    ("AdrStages", "_stages"): "the one function in which adr and adr-plus differ",
    ("DrawnRows", "_every"): "its rows are made for every node, once for learners side by side",
}
EXCEPTED = {name for _, name in EXCEPTIONS}


def functions(kind: type) -> dict[str, Any]:
    """Every function and property of a class and its bases, as it is there; none of Python's."""
    every = (item for base in reversed(kind.__mro__[:-1]) for item in vars(base).items())
    return {n: v for n, v in every if isinstance(v, FUNCTIONS) and not n.startswith("__")}


def may_be_overridden(kind: type) -> set[str]:
    def final(value: Any) -> bool:
        inner = getattr(value, "fget", None) or getattr(value, "__func__", value)
        return any(getattr(each, "__final__", False) for each in (value, inner))

    return {name for name, value in functions(kind).items() if not final(value)}


def overridden(kind: type) -> set[str]:
    """What the classes under the contract override, of it or of each other."""
    *_, contract = (each for each in HOOKS if issubclass(kind, each))
    found = set()
    for base in kind.__mro__[: kind.__mro__.index(contract)]:
        above = kind.__mro__[kind.__mro__.index(base) + 1 :]
        known = {name for each in above for name in vars(each) if not name.startswith("__")}
        functions_here = {n for n, value in vars(base).items() if isinstance(value, FUNCTIONS)}
        found |= known & functions_here
    return found


def misfits(kind: type) -> set[str]:
    """What a class overrides and must not."""
    *_, contract = (each for each in HOOKS if issubclass(kind, each))
    allowed = {n for base in kind.__mro__ for where, n in EXCEPTIONS if where == base.__name__}
    return overridden(kind) - HOOKS[contract] - allowed


@pytest.mark.parametrize(("contract", "most"), [(Learner, 8), (AdditiveLearner, 3), (RowPlan, 7)])
def test_what_a_contract_leaves_open_is_listed(contract: type, most: int) -> None:
    assert len(HOOKS[contract]) <= most
    left = may_be_overridden(contract) - HOOKS[contract] - EXCEPTED
    assert left == (OF_SUMS if contract is Learner else set())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
def test_a_method_overrides_its_few_hooks_alone(kind: type[Learner]) -> None:
    assert misfits(kind) == set()
    assert len(overridden(kind) - EXCEPTED) <= (3 if issubclass(kind, AdditiveLearner) else 8)
    above = kind.__mro__[1 : kind.__mro__.index(Learner)]
    assert len([base for base in above if issubclass(base, Learner)]) <= 2
    if issubclass(kind, AdditiveLearner):
        plan, sums, solution = get_args(kind.learned_type)
        parts = {plan, *(get_args(sums) or [sums]), *ScoredRows.__subclasses__()}
        assert not {part.__name__: misfits(part) for part in parts if misfits(part)}
        assert solution.__bases__ == (object,)  # nothing to override


@pytest.mark.parametrize(
    ("base", "name"),
    [(Bare, "observe"), (Ugcn, "novelty"), (Ugcn, "_judged"), (AcilPlan, "within_reach")],
)
def test_one_that_overrides_more_is_found(base: type, name: str) -> None:
    assert misfits(type("More", (base,), {name: lambda self: None})) == {name}
    adds = type("Adds", (base,), {"_more": lambda self: None})
    assert may_be_overridden(adds) - may_be_overridden(base) == {"_more"}
    assert misfits(type("Method", (adds,), {"_more": lambda self: 1})) == {"_more"}


def test_help_of_the_default_method_fits_on_two_screens() -> None:
    text = pydoc.plain(pydoc.render_doc(Propagation))
    assert "observe(self" in text
    assert len(text.splitlines()) <= 100
    every = {name for name in dir(Propagation()) if not name.startswith("_")}
    assert {"params", "clone", "exactness", "gamma", "learned_", "classes_", "plan_"} <= every
    assert every.isdisjoint(["settle", "why_gone", "judged", "kinds", "listed", "give_back"])
    assert len(every) <= 50
