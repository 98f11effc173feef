"""The shared part of the contract: parameters, states, and the sentences for bad input."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import undrift
from undrift import learners
from undrift.errors import InputError
from undrift.learners.adr import Adr
from undrift.learners.bare import Bare
from undrift.learners.hybrid import Hybrid
from undrift.learners.parts.backbone import Backbone
from undrift.learners.registry import METHODS, make_learner
from undrift.storage.files import save_state
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


def test_a_class_observed_before_is_named() -> None:
    stream = tiny_stream()
    learner = make_learner("ds-al", epochs=1, hidden=(4,)).observe(stream.task(0))
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


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"gamma": 0}, "gamma must be greater than 0, not 0"),
        ({"gamma": -1.0}, "gamma must be greater than 0"),
        ({"alpha": 0}, "alpha must be a whole number of at least 1"),
        ({"merging": "sum"}, "average, fisher, ham, magmax, none, regmean, ties"),
        ({"start": "zero"}, "start.*any more"),
        ({"nodes": "some"}, "all, train"),
        ({"logits": "x"}, "seen, task"),
        ({"solver": "auto"}, "solver.*any more"),
        ({"epochs": -1}, "epochs"),
        ({"encoder": "gnn"}, "gat, gcn, gin, sage, sgc"),
    ],
)
def test_bad_parameters(bad: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Adr.from_params(**bad)


@pytest.mark.parametrize("name", ["propagation", "adr"])
def test_a_saved_learner_is_loaded_as_it_was(name: str, tmp_path: Path) -> None:
    stream = tiny_stream()
    known = {"epochs": 2, "hidden": (8,)} if name == "adr" else {"hops": 3}
    learner = undrift.make_learner(name, **known).observe(stream.task(0))
    learner.save(tmp_path / "learner")
    again = undrift.load(tmp_path / "learner")
    assert again == learner
    again.observe(stream.task(1))
    learner.observe(stream.task(1))
    assert torch.equal(again.scores(stream.graph), learner.scores(stream.graph))


@dataclass(kw_only=True)
class Mine(Bare):
    """A method of somebody else, in no list."""

    name: ClassVar[str] = "mine"


def test_a_method_in_no_list_is_loaded_by_its_full_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = ModuleType("their_module")
    vars(theirs).update(Mine=Mine, ClassVar=ClassVar)
    monkeypatch.setitem(sys.modules, "their_module", theirs)
    monkeypatch.setattr(Mine, "__module__", "their_module")
    Mine(seed=3).save(tmp_path / "learner")
    assert undrift.load(tmp_path / "learner") == Mine(seed=3)
    del vars(theirs)["Mine"]
    with pytest.raises(InputError, match="'their_module:Mine' cannot be loaded"):
        undrift.load(tmp_path / "learner")


@pytest.mark.parametrize(
    "nodes",
    [[7, 3], (7, 3), np.array([7, 3]), torch.tensor([7, 3]), np.array([7, 3], dtype=np.uint8)],
)
def test_some_nodes_are_a_list_or_an_array(nodes: Any) -> None:
    stream = tiny_stream()
    learner = quick().observe(stream.task(0))
    every = learner.predict(stream.graph)
    assert learner.predict(stream.graph, nodes).tolist() == every[[7, 3]].tolist()


def test_a_mask_of_nodes_and_none_of_them() -> None:
    stream = tiny_stream()
    learner = quick().observe(stream.task(0))
    mask = [node in (3, 7) for node in range(stream.graph.num_nodes)]
    every = learner.predict(stream.graph)
    assert learner.predict(stream.graph, mask).tolist() == every[[3, 7]].tolist()
    assert learner.predict(stream.graph, np.array(mask)).tolist() == every[[3, 7]].tolist()
    assert learner.predict(stream.graph, []).tolist() == []


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (3, r"nodes must be a list of node numbers, not 3; write \[3\]"),
        ("abc", "nodes must be a list or array of node numbers or a mask, not 'abc'"),
        ([[1], [2, 3]], "nodes must be a list or array"),
        ([0.5], "give nodes as a list of whole numbers"),
        ([60], "node 60 is not there: the 60 nodes are numbered from 0"),
        ([-1], "node -1 is not there"),
        ([True], "a node mask needs 60 entries"),
    ],
)
def test_nodes_that_cannot_be_meant_get_one_sentence(nodes: Any, message: str) -> None:
    stream = tiny_stream()
    learner = quick().observe(stream.task(0))
    with pytest.raises(InputError, match=message):
        learner.predict(stream.graph, nodes)


@pytest.mark.parametrize(("method", "params"), [("spy:Mine", {}), ("adr", {"merging": "spy:Rule"})])
def test_a_file_imports_nothing(
    method: str, params: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spy.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    monkeypatch.syspath_prepend(tmp_path)
    save_state(tmp_path / "learner", State(method, params, {}, {}))
    with pytest.raises(InputError, match="a file imports nothing; import spy first"):
        undrift.load(tmp_path / "learner")
    assert not (tmp_path / "ran").exists()


def test_every_method_is_imported_from_one_place() -> None:
    assert len(learners.__all__) == len(METHODS)
    assert learners.Adr is Adr
    assert {getattr(learners, name).name for name in learners.__all__} == set(METHODS)
    with pytest.raises(AttributeError, match="no attribute 'Nobody'"):
        learners.Nobody  # noqa: B018


@pytest.mark.parametrize(
    ("method", "old", "new"),
    [
        (
            "propagation",
            {"words": 9.0, "trust": 0.5},
            {"evidence_threshold": 9.0, "homophily": 0.5},
        ),
        ("hybrid", {"words": 9.0, "trust": 0.5}, {"evidence_threshold": 9.0, "homophily": 0.5}),
        ("adr", {"merge": "none"}, {"merging": "none"}),
        ("adr-plus", {"cure": "none", "cure_gamma": 0.5, "pull": "zero"}, {}),
    ],
)
def test_parameters_recorded_under_an_old_name_still_make_a_learner(
    method: str, old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert make_learner(method, **old) == make_learner(method, **new)
