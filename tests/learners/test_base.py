"""The shared part of the contract: parameters, states, and the sentences for bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.adr import Adr
from undrift.learners.bare import Bare
from undrift.learners.hybrid import Hybrid
from undrift.learners.parts.training.backbone import Backbone, columns_of, generator_for
from undrift.storage.state import State
from undrift.testing.graphs import tiny_graph, tiny_stream


def quick() -> Adr:
    return Adr.from_params(epochs=2, hidden=(8,))


def test_parameters_of_a_part_stand_beside_the_others() -> None:
    learner = Adr(gamma=0.1, backbone=Backbone(epochs=7, hidden=(4, 4)))
    params = learner.params()
    assert params["gamma"] == 0.1
    assert params["epochs"] == 7
    assert params["hidden"] == [4, 4]
    assert Adr.from_params(**params) == learner


def test_a_part_goes_by_its_path_where_its_name_is_taken() -> None:
    assert (Hybrid().params()["hops"], Hybrid().params()["backbone__hops"]) == (8, 2)
    assert Hybrid.from_params(hops=3)._propagation().hops == 3
    assert Hybrid.from_params(backbone__hops=3).backbone.hops == 3
    assert Adr.from_params(backbone__hops=3) == Adr.from_params(hops=3)
    nested = Adr().set_params(backbone__lr=0.5, gamma=2)
    assert (nested.backbone.lr, nested.gamma) == (0.5, 2)
    assert Adr().set_params(backbone=Backbone(epochs=3), lr=0.5).backbone == Backbone(
        epochs=3, lr=0.5
    )


def test_a_learner_that_has_learned_keeps_its_parameters() -> None:
    learner = quick().observe(tiny_stream().task(0))
    with pytest.raises(InputError, match="gamma cannot be set after 2 classes were observed"):
        learner.set_params(gamma=2.0)
    assert learner.clone().set_params(gamma=2.0).gamma == 2.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Adr(gamma="1"), "gamma must be a finite number, not '1'"),
        (lambda: Adr(gamma=float("inf")), "gamma must be a finite number, not inf"),
        (lambda: Adr(balanced="no"), "balanced must be true or false, not 'no'"),
        (lambda: Adr(backbone="gcn"), "backbone must be a Backbone, not 'gcn'"),
        (lambda: Backbone(hidden="64"), "hidden must be whole numbers, not '64'"),
        (lambda: setattr(Adr(), "seed", 0.5), "seed must be a whole number, not 0.5"),
    ],
)
def test_python_is_held_to_the_types_too(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_defaults_are_the_papers_settings() -> None:
    defaults = Adr.defaults()
    assert defaults["hidden"] == [128, 128]
    assert (defaults["dropout"], defaults["epochs"]) == (0.5, 200)
    assert (defaults["lr"], defaults["lr_next"]) == (1e-3, 1e-4)
    assert defaults["class_weighted"] is True


def test_a_class_observed_before_is_named() -> None:
    stream = tiny_stream()
    learner = quick().observe(stream.task(0))
    with pytest.raises(InputError, match="class 0 was observed before"):
        learner.observe(stream.task(0))


def test_a_feature_width_that_differs_names_both_numbers() -> None:
    learner = quick().observe(tiny_stream().task(0))
    with pytest.raises(InputError, match="has 5 features per node, but 12 were learned"):
        learner.predict(tiny_graph(features=5))


def test_predicting_first_says_what_to_call() -> None:
    with pytest.raises(InputError, match="call observe"):
        quick().predict(tiny_graph())


def test_a_state_with_other_parameters_names_the_parameter() -> None:
    state = quick().observe(tiny_stream().task(0)).state()
    with pytest.raises(InputError, match=r"learned with gamma=1\.0, this learner has gamma=0\.5"):
        Adr.from_params(epochs=2, hidden=(8,), gamma=0.5).load(state)


def test_a_state_of_another_method_names_both() -> None:
    state = Bare().state()
    with pytest.raises(InputError, match="belongs to method 'bare', not 'adr'"):
        Adr().load(state)


def test_a_damaged_state_leaves_the_learner_as_it_was() -> None:
    stream = tiny_stream()
    learner = quick().observe(stream.task(0))
    before = learner.scores(stream.graph)
    state = learner.state()
    tensors = {k: v for k, v in state.tensors.items() if k != "classifier"}
    with pytest.raises(InputError, match="damaged: 'classifier' is missing"):
        learner.load(State(state.method, state.params, tensors, state.values))
    assert torch.equal(learner.scores(stream.graph), before)


def test_an_empty_state_restores_a_learner_that_saw_nothing() -> None:
    learner = quick().observe(tiny_stream().task(0))
    assert learner.load(quick().state()).classes_ == ()


def test_columns_of_labels() -> None:
    graph = Graph.from_arrays(torch.ones(4, 1), [[], []], [5, 3, -1, 5])
    assert columns_of(graph, (3, 5)).tolist() == [1, 0, 0, 1]


def test_generators_depend_on_seed_and_task_only() -> None:
    draws = {
        (seed, t): float(torch.rand((), generator=generator_for(seed, t)))
        for seed in range(3)
        for t in range(3)
    }
    assert len(set(draws.values())) == 9
    assert draws[1, 2] == float(torch.rand((), generator=generator_for(1, 2)))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"gamma": 0}, "gamma must be greater than 0, not 0"),
        ({"gamma": -1.0}, "gamma must be greater than 0"),
        ({"alpha": 0}, "alpha must be a whole number of at least 1"),
        ({"merge": "sum"}, "average, fisher, ham, magmax, none, regmean, ties"),
        ({"start": "zero"}, "base, merged, previous, scratch"),
        ({"nodes": "some"}, "all, train"),
        ({"logits": "x"}, "seen, task"),
        ({"solver": "x"}, "auto, direct"),
        ({"epochs": -1}, "epochs"),
        ({"encoder": "gat"}, "gcn, gin, sage, sgc"),
    ],
)
def test_bad_parameters(bad: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Adr.from_params(**bad)
