"""A search finds what separate runs would find, and never grades a test node."""

from typing import Any

import pytest

from undrift import InputError, evaluate, make_learner
from undrift.evaluation import loop
from undrift.experiments import RunSpec
from undrift.experiments.search import SearchSpec, search, settings_of
from undrift.testing import tiny_stream

QUICK: dict[str, Any] = {"epochs": 3, "hidden": (4, 4)}
GRID: dict[str, tuple[Any, ...]] = {"gamma": (0.01, 10.0), "alpha": (1, 4)}


pytestmark = pytest.mark.usefixtures("tiny")


def spec(method: str = "adr", **changes: Any) -> SearchSpec:
    base = RunSpec(method=method, params=QUICK, **changes)
    return SearchSpec(base=base, grid=GRID)


def test_each_trial_is_what_a_run_of_its_own_gives() -> None:
    found = search(spec())
    assert [trial.params for trial in found.trials] == [{**QUICK, **s} for s in settings_of(GRID)]
    for trial in found.trials:
        alone = evaluate(make_learner("adr", **trial.params), tiny_stream(), splits=("val",))
        assert trial.validation.by_class.a_avg == alone.by_class.a_avg
    best = max(t.validation.by_class.a_avg for t in found.trials if t.validation)
    first = next(t for t in found.trials if t.validation and t.validation.by_class.a_avg == best)
    assert found.chosen == first.params


def test_only_validation_nodes_are_graded(monkeypatch) -> None:
    seen: set[str] = set()
    original = loop.exams

    def spied(*args: Any, **kwargs: Any) -> Any:
        for exam in original(*args, **kwargs):
            seen.update(exam.masks)
            yield exam

    monkeypatch.setattr(loop, "exams", spied)
    search(spec())
    assert seen == {"val"}


def test_a_setting_that_fails_is_not_chosen(monkeypatch) -> None:
    from undrift.analytic import solve

    original = solve.factorise

    def singular(gram: Any, ridge: float, *columns: Any) -> Any:
        if ridge == 0.01:
            raise InputError("singular")
        return original(gram, ridge, *columns)

    monkeypatch.setattr(solve, "factorise", singular)
    found = search(spec())
    assert [trial.failed for trial in found.trials] == ["InputError: singular"] * 2 + [None] * 2
    assert found.chosen["gamma"] == 10.0
    monkeypatch.setattr(solve, "factorise", lambda gram, ridge: singular(gram, 0.01))
    with pytest.raises(InputError, match="every setting of the grid of 'adr' failed"):
        search(spec())
