"""What is known depends on the rows that are in: not on their order, batches, repeats or sites.

Another learner of that kind joins by one line of `LIVING`.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from undrift import Learner, Task, make_learner
from undrift.graphs import disjoint_union
from undrift.testing import tiny_graph
from undrift.testing.check_living import refused, same, tiny_batch

QUICK: dict[str, Any] = {"epochs": 3, "hidden": (6, 6), "alpha": 2}
SMALL: dict[str, Any] = {"hops": 2, "fourier": 0, "sketch": 64}
LIVING: dict[str, Callable[[], Learner]] = {
    "acil": lambda: make_learner("acil", **QUICK),
    "acil balanced": lambda: make_learner("acil", **QUICK, balanced=True),
    "ds-al": lambda: make_learner("ds-al", **QUICK, cleansing=False),
    "propagation": lambda: make_learner("propagation", **SMALL),
    "hybrid": lambda: make_learner("hybrid", **SMALL, epochs=3, hidden=(6, 6)),
    "propagation, no balance": lambda: make_learner("propagation", balanced=False, mix="mean"),
    "hybrid with its encoder": lambda: make_learner("hybrid", epochs=3, hidden=(6,), hops=0),
    "ds-al balanced": lambda: make_learner("ds-al", **QUICK, cleansing=False, balanced=True),
}
TRAINED = [name for name, make in LIVING.items() if "backbone" in vars(make())]
BASE = tiny_batch((0, 1, 2))
CLASSES, PER_CLASS = 6, 6
TRAIN, VAL = (0, 1, 3, 4), (2,)  # places among the nodes of a class; the last one is context


def batch(seed: int, train: tuple[int, ...] = TRAIN, val: tuple[int, ...] = VAL) -> Task:
    """Six nodes of each of two classes, and those of them that are to be learned."""
    rng = np.random.default_rng(seed)
    graph = tiny_graph(nodes=90)
    labels = graph.labelled().numpy()
    classes = sorted(rng.choice(CLASSES, 2, replace=False).tolist())
    nodes = [rng.choice(np.flatnonzero(labels == c), PER_CLASS, replace=False) for c in classes]
    place = torch.arange(PER_CLASS).repeat(2)
    part = graph.subgraph(torch.from_numpy(np.concatenate(nodes)))
    masks = [torch.isin(place, torch.tensor(places)) for places in (train, val)]
    hidden = replace(part, labels=part.labelled().masked_fill(~(masks[0] | masks[1]), -1))
    return Task(hidden, *masks)


def halves(seed: int) -> tuple[Task, Task]:
    """The same batch as two: on one graph, its rows parted."""
    return batch(seed, (0, 1), VAL), batch(seed, (3, 4), ())


def changed(seed: int) -> Task:
    """The same batch as it was before a correction: other features, an edge less, a label more."""
    now = batch(seed)
    labels, train = now.labels.clone(), now.train.clone()
    labels[PER_CLASS - 1], train[PER_CLASS - 1] = labels[0], True
    features = now.graph.features
    assert isinstance(features, torch.Tensor)
    features = features.clone()
    features[PER_CLASS + 1] += 1
    return Task(replace(now.graph, features=features, labels=labels), train, now.val)


def pooled(tasks: list[Task]) -> Task:
    """All batches as one."""
    graph = reduce(disjoint_union, [task.graph for task in tasks])
    train = torch.cat([task.train for task in tasks])
    val = torch.cat([task.val for task in tasks])
    return Task(graph, train, val)


@pytest.mark.parametrize("name", LIVING)
@settings(max_examples=6, deadline=None, derandomize=True, phases=(Phase.generate,))
@given(
    kept=st.lists(st.integers(0, 40), min_size=1, max_size=3),  # the same one may come twice
    split=st.lists(st.integers(41, 60), max_size=1),
    gone=st.lists(st.integers(0, 60), max_size=2),
    corrected=st.lists(st.integers(61, 80), max_size=1),
    chance=st.randoms(use_true_random=False),
)
def test_any_history_is_one_pooled_training(name, kept, split, gone, corrected, chance) -> None:
    here = LIVING[name]().observe(BASE)
    there = here.sibling()
    lives: list[list[tuple[str, tuple[Task, ...]]]] = [
        *([("observe", (batch(s),))] for s in kept),
        *([("observe", (part,))] for s in split for part in halves(s)),
        *([("observe", (batch(s),)), ("forget", (batch(s),))] for s in gone),
        *([("observe", (changed(s),)), ("revise", (changed(s), batch(s)))] for s in corrected),
    ]
    waiting = [(chance.choice([here, there]), life) for life in lives]
    while waiting:
        site, life = chance.choice(waiting)
        verb, tasks = life.pop(0)
        getattr(site, verb)(*tasks, again=True)
        waiting = [each for each in waiting if each[1]]
    first, second = (here, there) if chance.random() < 0.5 else (there, here)
    merged = first.merge(second, again=True)
    everything = pooled([batch(s) for s in (*kept, *split, *corrected)])
    same(merged, LIVING[name]().observe(BASE).observe(everything), "a random history")


@pytest.mark.parametrize("name", TRAINED)
def test_learners_whose_rows_mean_different_things_do_not_merge(name: str) -> None:
    one, other = LIVING[name]().observe(BASE), LIVING[name]().observe(batch(1))
    assert "sibling" in refused("merging two feature maps", lambda: one.merge(other))
    assert one.classes_ == BASE.classes


@pytest.mark.parametrize("name", TRAINED)
def test_the_batch_an_encoder_was_trained_on_stays(name: str) -> None:
    learner = LIVING[name]().observe(BASE).observe(batch(1))
    before = learner.scores(tiny_graph())
    sentences = [
        refused("forgetting the base batch", lambda: learner.forget(BASE)),
        refused("revising the base batch", lambda: learner.revise(BASE, batch(2))),
        refused("a sibling's too", lambda: learner.sibling().observe(BASE).forget(BASE)),
    ]
    assert all("was trained on this batch" in sentence for sentence in sentences)
    assert torch.equal(learner.scores(tiny_graph()), before)


@pytest.mark.parametrize("name", LIVING)
def test_progress_of_every_stage_goes_from_nothing_to_all(name: str) -> None:
    told: dict[str, list[tuple[int, int]]] = {}

    def progress(stage: str, done: int, of: int) -> None:
        told.setdefault(stage, []).append((done, of))

    LIVING[name]().observe(BASE, progress=progress).settle(progress=progress)
    assert told["accumulate"] == [(0, 1), (1, 1)]
    for calls in told.values():
        done = [each for each, _ in calls]
        assert done == sorted(done)
        assert {of for _, of in calls} == {done[-1]}
