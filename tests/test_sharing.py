"""Work done once: the same objects come back, and nothing outlives the block."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from undrift.learners.base import Learner
from undrift.learners.registry import METHODS, make_learner
from undrift.sharing import once, sharing, trained_once
from undrift.testing.graphs import tiny_stream


@dataclass(frozen=True)
class Settings:
    widths: tuple[int, ...] = (8,)


def test_outside_of_a_block_nothing_is_shared() -> None:
    assert once(object, "a") is not once(object, "a")


def test_values_are_compared_by_value_and_objects_by_identity() -> None:
    thing, other = torch.ones(2), torch.ones(2)
    with sharing():
        first = once(object, "a", 1, Settings(), (1.0, None), thing)
        assert once(object, "a", 1, Settings(), (1.0, None), thing) is first
        assert once(object, "a", 1, Settings((9,)), (1.0, None), thing) is not first
        assert once(object, "a", 2, Settings(), (1.0, None), thing) is not first
        assert once(object, "a", 1, Settings(), (1.0, None), other) is not first
        assert once(object, "a", True, Settings(), (1.0, None), thing) is not first


def test_blocks_do_not_see_each_other() -> None:
    with sharing():
        first = once(object, "a")
        with sharing():
            assert once(object, "a") is not first
        assert once(object, "a") is first


def test_a_generator_is_left_where_the_work_leaves_it() -> None:
    def draw(generator: torch.Generator) -> float:
        return float(torch.rand(3, generator=generator).sum())

    def run(generator: torch.Generator) -> tuple[float, float]:
        shared = trained_once(lambda: draw(generator), generator, "draw")
        return shared, draw(generator)

    alone = run(torch.Generator().manual_seed(5))
    with sharing():
        first = run(torch.Generator().manual_seed(5))
        second = run(torch.Generator().manual_seed(5))
        other = run(torch.Generator().manual_seed(6))
    assert alone == first == second
    assert other[0] != first[0]


def variants(method: str) -> list[Learner]:
    """The default, and each value of the method's grid alone."""
    small = {"epochs": 3, "hidden": (8, 8)}
    known = {**make_learner(method).params()}
    small = {key: value for key, value in small.items() if key in known}
    grid = type(make_learner(method)).grid
    changes: list[dict[str, object]] = [{}]
    changes += [{name: value} for name, values in grid.items() for value in values]
    if method == "adr":
        changes += [{"merge": rule} for rule in ("none", "average", "fisher", "ties", "regmean")]
        changes += [{"start": start} for start in ("merged", "base", "scratch")]
        changes += [{"nodes": "all"}, {"logits": "seen"}, {"relative_gamma": True}]
        changes += [{"solver": "auto"}, {"origin": "initial", "merge": "magmax"}]
    return [make_learner(method, seed=1, **{**small, **change}) for change in changes]


@pytest.mark.parametrize("method", METHODS)
def test_learners_side_by_side_learn_what_each_learns_alone(method: str) -> None:
    """Bit for bit, for every value of the method's grid: no input of a shared step is missing."""
    stream = tiny_stream()
    alone, together = variants(method), variants(method)
    for t in range(len(stream)):
        task = stream.task(t)
        for learner in alone:
            learner.observe(task)
        with sharing():
            for learner in together:
                learner.observe(task)
    graph = stream.task(0).graph
    for one, other in zip(alone, together, strict=True):
        assert torch.equal(one.scores(graph), other.scores(graph)), one
