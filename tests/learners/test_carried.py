"""An optimiser that goes on from task to task: what it keeps, and that files bring it back."""

from pathlib import Path
from typing import Any

import pytest
import torch

import undrift
from undrift.learners.base import Learner
from undrift.learners.registry import make_learner, method_class
from undrift.testing.graphs import tiny_stream

QUICK: dict[str, Any] = {"epochs": 3, "hidden": (4, 4), "n_encoders": 2}
KEEPING = ("bare", "lwf", "ewc", "mas", "twp", "er-gnn", "polo", "efc", "dpcr", "adr", "adr-plus")


def made(name: str, optimiser: str = "carried", **params: Any) -> Learner:
    learner = make_learner(name, optimiser=optimiser, **params)
    known = learner.params()
    return learner.set_params(**{key: value for key, value in QUICK.items() if key in known})


@pytest.mark.parametrize("name", KEEPING)
def test_moments_are_kept_and_change_what_is_learned(name: str, tmp_path: Path) -> None:
    stream = tiny_stream()
    params: dict[str, Any] = {"logits": "seen"} if name.startswith("adr") else {}
    one, fresh = made(name, **params), made(name, "fresh", **params)
    for learner in (one, fresh):
        learner.observe(stream.task(0))
    assert torch.equal(one.scores(stream.graph), fresh.scores(stream.graph))
    assert not [key for key in fresh.state().tensors if ".squares." in key]
    one.save(tmp_path / "one", least_rows=1)
    again = undrift.load(tmp_path / "one")
    for learner in (one, fresh, again):
        learner.observe(stream.task(1))
    for key, tensor in one.state().tensors.items():
        assert torch.equal(tensor, again.state().tensors[key]), key
    values = one.state().values
    steps = [value for key, value in values.items() if ".steps." in f".{key}" and key[-1] != "#"]
    assert steps
    assert set(steps) == {2 * QUICK["epochs"]}
    assert not torch.equal(one.scores(stream.graph), fresh.scores(stream.graph))


@pytest.mark.parametrize("name", ["joint", "cat", "acil", "gacl", "ds-al", "hybrid"])
def test_who_trains_once_or_anew_has_nothing_to_set_but_reads_what_it_had(name: str) -> None:
    before = {"lr_next": 1e-4, "optimiser": "carried", "dropout_next": None}
    assert not before.keys() & method_class(name).defaults().keys()
    assert make_learner(name, **before) == make_learner(name)


def test_the_head_of_a_tasks_own_classes_begins_without_moments() -> None:
    stream = tiny_stream()
    learner = made("adr").observe(stream.task(0)).observe(stream.task(1))
    moments = learner.learned_.moments
    assert moments.means[-1].numel() == 0
    assert float(moments.squares[0].max()) > 0


def test_dropout_of_later_tasks() -> None:
    stream = tiny_stream()
    plain, off, same = (
        made("bare", "fresh", dropout=0.5, dropout_next=value) for value in (None, 0.0, 0.5)
    )
    for learner in (plain, off, same):
        learner.observe(stream.task(0))
    assert torch.equal(plain.scores(stream.graph), off.scores(stream.graph))
    for learner in (plain, off, same):
        learner.observe(stream.task(1))
    assert torch.equal(plain.scores(stream.graph), same.scores(stream.graph))
    assert not torch.equal(plain.scores(stream.graph), off.scores(stream.graph))
    assert off.learned_.model.encoder.architecture.dropout == 0.5
