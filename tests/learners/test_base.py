"""The shared part of the contract: parameters, states, and the sentences for bad input."""

import gc
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import undrift
from undrift import Adr, Bare, InputError, make_learner, plugins
from undrift.learners import Hybrid
from undrift.learners.parts.backbone import OngoingBackbone
from undrift.learners.reading import likeliest
from undrift.storage import State, save_state
from undrift.testing import tiny_graph, tiny_stream


def quick() -> Adr:
    return Adr.from_params(epochs=2, hidden=(8,))


def test_a_part_goes_by_its_path_where_its_name_is_taken() -> None:
    assert (Hybrid().params()["hops"], Hybrid().params()["backbone__hops"]) == (8, 2)
    assert Hybrid.from_params(hops=3)._propagation().hops == 3
    assert Hybrid.from_params(backbone__hops=3).backbone.hops == 3
    assert Adr.from_params(backbone__hops=3) == Adr.from_params(hops=3)
    nested = Adr().set_params(backbone__lr=0.5, gamma=2)
    assert (nested.backbone.lr, nested.gamma) == (0.5, 2)
    assert Adr().set_params(backbone=OngoingBackbone(epochs=3), lr=0.5).backbone == OngoingBackbone(
        epochs=3, lr=0.5
    )


def test_a_learner_that_has_learned_keeps_its_parameters() -> None:
    learner = quick().observe(tiny_stream().task(0))
    with pytest.raises(InputError, match="gamma cannot be set after 2 classes were observed"):
        learner.set_params(gamma=2.0)
    assert learner.clone().set_params(gamma=2.0).gamma == 2.0


@pytest.mark.parametrize("learner", [undrift.Propagation(), quick()], ids=["sums", "trained"])
def test_a_batch_leaves_memory_once_it_is_learned(learner: undrift.Learner) -> None:
    gc.collect()
    gc.disable()  # what stands in a cycle would wait for it, with all its edges and features
    try:
        task = tiny_stream().task(0)
        left = [weakref.ref(task.graph), weakref.ref(task.graph.features)]
        learner.observe(task).predict(task.graph, [0])
        other = learner.clone().observe(task).state().tensors
        kept = weakref.ref(other[max(other)])
        del task, other
        assert [each() for each in (*left, kept)] == [None, None, None]
    finally:
        gc.enable()


SEEN = quick().observe(tiny_stream().task(0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: setattr(Adr(), "seed", 0.5), "seed must be a whole number, not 0.5"),
        (lambda: Bare(seed=-1), r"from 0 to 2\*\*63 - 1, not -1"),
        (lambda: setattr(Adr(), "seed", 2**63), r"from 0 to 2\*\*63 - 1"),
        (lambda: SEEN.predict(tiny_graph(features=5)), "has 5 features per node, but 12 were"),
        (lambda: quick().predict(tiny_graph()), "observe a batch before predicting"),
        (lambda: quick().set_params(gamma=0.5).load(SEEN.state()), r"with gamma=1\.0, this .*0\.5"),
        (lambda: Adr(30), r"Adr takes settings by name, as in Adr\(seed=0\)"),  # type: ignore
        (lambda: Adr(learning_rate=0.1), "'learning_rate' .did you mean 'lr'"),
        (lambda: undrift.Propagation(epochs=30), "does not train a network; leave out epochs, or"),
        (lambda: make_learner("EWC"), "'EWC' .did you mean 'ewc'"),
        (lambda: Adr().load(Bare().state()), "belongs to method 'bare', not 'adr'"),
    ],
)
def test_what_cannot_be_gets_one_sentence(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_a_damaged_state_leaves_the_learner_as_it_was() -> None:
    stream = tiny_stream()
    learner = quick().observe(stream.task(0))
    before = learner.scores(stream.graph)
    state = learner.state()
    tensors = {k: v for k, v in state.tensors.items() if k != "classifier"}
    with pytest.raises(InputError, match="damaged: 'classifier' is missing"):
        learner.load(State(state.method, state.params, tensors, state.values))
    assert torch.equal(learner.scores(stream.graph), before)


@dataclass(kw_only=True)
class Mine(Bare):
    """A method of somebody else, in no list."""

    name: ClassVar[str] = "mine"


def test_a_method_in_no_list_is_loaded_by_its_full_name(tmp_path: Path, monkeypatch) -> None:
    theirs = ModuleType("their_module")
    vars(theirs).update(Mine=Mine, ClassVar=ClassVar)
    monkeypatch.setitem(sys.modules, "their_module", theirs)
    monkeypatch.setattr(Mine, "__module__", "their_module")
    Mine(seed=3).save(tmp_path / "learner")
    assert undrift.load(tmp_path / "learner") == Mine(seed=3)
    del vars(theirs)["Mine"]
    with pytest.raises(InputError, match="'their_module:Mine' cannot be loaded"):
        undrift.load(tmp_path / "learner")


def test_some_nodes_are_a_list_an_array_or_a_mask() -> None:
    stream = tiny_stream()
    learner = quick().observe(stream.task(0))
    every = learner.predict(stream.graph)
    asked = np.array([7, 3])
    for nodes in ([7, 3], (7, 3), asked, torch.tensor([7, 3]), asked.astype(np.uint8), []):
        assert learner.predict(stream.graph, nodes).tolist() == [int(every[i]) for i in nodes]
    mask = [node in (3, 7) for node in range(stream.graph.num_nodes)]
    for masked in (mask, np.array(mask)):
        assert learner.predict(stream.graph, masked).tolist() == every[[3, 7]].tolist()


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (3, r"nodes must be .*, not 3; write \[3\]"),
        ("abc", "nodes must be .*, not 'abc'"),
        (torch.ones(60, 10, dtype=torch.bool), r"10 columns.*data.test_mask\[:, 0\]"),
        (["a"], "no node 'a' among the 60 of this batch; give numbers from 0, .* no ids"),
        ({3}, "write sorted"),
        ([[1], [2, 3]], r"no node \[1\] among"),
        ([0.5], "no node 0.5 among"),
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
def test_a_file_imports_nothing(method, params, tmp_path, monkeypatch) -> None:
    (tmp_path / "spy.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    monkeypatch.syspath_prepend(tmp_path)
    save_state(tmp_path / "learner", State(method, params, {}, {}))
    with pytest.raises(InputError, match="a file imports nothing; import spy first"):
        undrift.load(tmp_path / "learner")
    assert not (tmp_path / "ran").exists()


NOW = {"evidence_threshold": 9.0, "homophily": 0.5}


@pytest.mark.parametrize(
    ("method", "old", "new"),
    [
        *((name, {"words": 9.0, "trust": 0.5}, NOW) for name in ("propagation", "hybrid")),
        ("adr", {"merge": "none"}, {"merging": "none"}),
        ("adr-plus", {"cure": "none", "cure_gamma": 0.5, "pull": "zero"}, {}),
    ],
)
def test_an_old_name_of_a_setting_still_makes_a_learner(method, old, new, caplog, monkeypatch):
    monkeypatch.setattr(plugins, "_NOTED", set())
    assert make_learner(method, **old) == make_learner(method, **new)
    names = zip(old, new, strict=False)
    said = [f"undrift: note: {a} of {method} is called {b} now; write {b}" for a, b in names]
    assert caplog.messages == said


def test_rounding_does_not_decide_between_classes() -> None:
    scores = torch.tensor([[0.3, 0.7, 0.7], [0.3, 0.7, 0.8], [0.0, 0.0, 0.0]], dtype=torch.float64)
    noise = torch.tensor([[0, 1e-14, 0], [0, 1e-14, 0], [0, 0, 0]], dtype=torch.float64)
    for other in (scores, scores + noise, scores - noise):
        assert likeliest(other, [4, 9, 2]).tolist() == [2, 2, 2]
        assert likeliest(other[:, [2, 0, 1]], [2, 4, 9]).tolist() == [2, 2, 2]  # in any order
