"""Work done once: the same objects come back, and nothing outlives the block."""

from dataclasses import dataclass
from typing import Any
from unittest.mock import create_autospec

import pytest
import torch

from undrift.analytic.statistics import RidgeStatistics
from undrift.encoders.encoder import Encoder
from undrift.evaluation.loop import evaluate_together
from undrift.learners.base import Learner
from undrift.learners.parts import backbone as backbone_module
from undrift.learners.registry import METHODS, make_learner
from undrift.sharing import drawn_once, once, sharing
from undrift.testing.graphs import tiny_stream


@dataclass(frozen=True)
class Settings:
    widths: tuple[int, ...] = (8,)


def test_without_a_cache_nothing_is_shared() -> None:
    assert once(object, "a") is not once(object, "a")
    with sharing():
        first = once(object, "a")
        assert once(object, "a") is first
    with sharing():
        assert once(object, "a") is not first


def test_values_are_compared_by_value_and_objects_by_identity() -> None:
    thing, other = torch.ones(2), torch.ones(2)
    with sharing():
        first = once(object, "a", 1, Settings(), (1.0, None), thing)
        assert once(object, "a", 1, Settings(), (1.0, None), thing) is first
        for other_inputs in (
            ("a", 1, Settings((9,)), (1.0, None), thing),
            ("a", 2, Settings(), (1.0, None), thing),
            ("a", 1, Settings(), (1.0, None), other),
            ("a", True, Settings(), (1.0, None), thing),
        ):
            assert once(object, *other_inputs) is not first


def test_a_generator_is_left_where_the_work_leaves_it() -> None:
    def draw(generator: torch.Generator) -> float:
        return float(torch.rand(3, generator=generator).sum())

    def run(generator: torch.Generator) -> tuple[float, float]:
        shared = drawn_once(lambda: draw(generator), generator, "draw")
        return shared, draw(generator)

    by_itself = run(torch.Generator().manual_seed(5))
    with sharing():
        first = run(torch.Generator().manual_seed(5))
        second = run(torch.Generator().manual_seed(5))
        other = run(torch.Generator().manual_seed(6))
    assert by_itself == first == second
    assert other[0] != first[0]


def variants(method: str) -> list[Learner]:
    """The default, and each value of the method's grid alone."""
    small = {"epochs": 1, "hidden": (8, 8), "n_encoders": 20}
    known = {**make_learner(method).params()}
    small = {key: value for key, value in small.items() if key in known}
    grid = type(make_learner(method)).grid
    changes: list[dict[str, object]] = [{}]
    changes += [{name: value} for name, values in grid.items() for value in values]
    if method == "adr":
        changes += [{"merging": rule} for rule in ("none", "average", "fisher", "ties", "regmean")]
        changes += [{"nodes": "all"}, {"logits": "seen"}, {"merging": "magmax"}, {"balanced": True}]
    return [make_learner(method, seed=1, **{**small, **change}) for change in changes]


@pytest.mark.parametrize("method", METHODS)
def test_learners_side_by_side_learn_what_each_learns_alone(method: str) -> None:
    """Bit for bit, for every value of the method's grid: no input of a shared step is missing."""
    stream = tiny_stream()
    apart, together = variants(method), variants(method)
    for t in range(len(stream)):
        task = stream.task(t)
        for one in apart:
            one.observe(task)
        with sharing():
            for other in together:
                other.observe(task)
    graph = stream.task(0).graph
    for one, other in zip(apart, together, strict=True):
        assert torch.equal(one.scores(graph), other.scores(graph)), one


@pytest.mark.parametrize(
    ("method", "steps"), [("adr", 3), ("adr-plus", 3), ("acil", 1), ("ds-al", 1)]
)
def test_a_grid_of_ridges_trains_and_sums_once(monkeypatch, method: str, steps: int) -> None:
    """Four gammas cost the training, the embedding and the Gram products of one."""
    name = "classifier_gamma" if method == "adr-plus" else "gamma"
    small = {"epochs": 2, "hidden": (4, 4), "seed": 1}

    def costs(*gammas: float) -> dict[str, int]:
        counted: dict[str, Any] = {}
        with monkeypatch.context() as patch:
            for owner in ((backbone_module, "fit"), (Encoder, "embed"), (RidgeStatistics, "add")):
                original: Any = getattr(*owner)
                counted[owner[1]] = create_autospec(original, side_effect=original)
                patch.setattr(*owner, counted[owner[1]])
            learners = [make_learner(method, **small, **{name: g}) for g in gammas]
            evaluate_together(learners, tiny_stream())
        return {what: mock.call_count for what, mock in counted.items()}

    one, four = costs(0.1), costs(0.1, 0.2, 0.4, 0.8)
    assert one["fit"] == steps
    if method == "adr":  # HAM's ridge is the same gamma: the merged encoders differ
        assert four["fit"] == one["fit"]
    else:
        assert {**four, "add": 0} == {**one, "add": 0}
    assert four["add"] <= 2.5 * one["add"]
