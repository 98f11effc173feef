"""Side by side gives what each gives alone."""

from dataclasses import dataclass
from typing import Any

import pytest

from undrift import Bare, Learner, Task, evaluate, make_learner
from undrift.evaluation.loop import evaluate_together
from undrift.testing import tiny_stream
from undrift.typing import Progress

QUICK: dict[str, Any] = {"epochs": 3, "hidden": (4, 4)}


def learners() -> list[Learner]:
    both = [{"gamma": g, "alpha": a} for g in (1, 9) for a in (1, 3)]
    settings: list[tuple[str, dict[str, Any]]] = [("adr", each) for each in both]
    settings += [("acil", each | {"balanced": each["alpha"] > 1}) for each in both]
    settings += [("ds-al", {"cleansing": False}), ("ds-al", {}), ("bare", {}), ("ewc", {})]
    return [make_learner(name, seed=2, **each, **QUICK) for name, each in settings]


@pytest.mark.parametrize("protocol", ["global", "local"])
def test_grades_are_those_of_each_learner_alone(protocol: Any) -> None:
    stream = tiny_stream(2)
    found = evaluate_together(learners(), stream, protocol=protocol, splits=("val", "test"))
    for learner, outcome in zip(learners(), found, strict=True):
        alone = evaluate(learner, stream, protocol=protocol, splits=("val", "test"))
        assert outcome.grades == alone.grades
        assert outcome.error is None


@dataclass(kw_only=True)
class Breaking(Bare):
    """Cannot learn the second task."""

    def _learn(self, task: Task, progress: Progress) -> Any:
        if self.learned_ is not None:
            raise ZeroDivisionError("on purpose")
        return super()._learn(task, progress)


def test_a_learner_that_fails_does_not_stop_the_others() -> None:
    broken, whole = Breaking.from_params(**QUICK), make_learner("bare", **QUICK)
    first, second = evaluate_together([broken, whole], tiny_stream())
    assert isinstance(first.error, ZeroDivisionError)
    assert len(first.grades["val"].by_class) == 1
    assert second.error is None
    assert len(second.grades["val"].by_class) == 3
