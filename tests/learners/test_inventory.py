"""Every method says what its state is made of; nothing large is made to say it."""

from pathlib import Path
from typing import Any

import pytest
import torch

from paper.merging.rule import Rule
from undrift import InputError
from undrift.analytic.border import Border
from undrift.analytic.solve import Thin
from undrift.learners.kept import unnamed
from undrift.learners.registry import METHODS, make_learner, method_class
from undrift.testing.check_state import check_inventory
from undrift.testing.graphs import tiny_graph, tiny_stream

QUICK: dict[str, Any] = {"epochs": 2, "hidden": (8, 8), "n_encoders": 5, "alpha": 2}
SUMS = {  # how many sums after a task; the others keep weights, or examples
    "polo": 1, "efc": 1, "acil": 1, "ds-al": 2, "dpcr": 1, "adr": 3, "adr-plus": 3,
    "propagation": 2, "hybrid": 4, "al-gnn": 1, "ugcn": 1, "sgc-ridge": 1, "gacl": 1,
}  # fmt: skip
MORE: dict[str, tuple[str, dict[str, Any]]] = {
    "ds-al balanced": ("ds-al", {"balanced": True}),
    "mas reserved": ("mas", {"batch_importance": True, "outputs": 9}),
    "polo plain means": ("polo", {"gamma": 0.0}),
    "rows of a plan": ("sgc-ridge", {}),
    "propagation thin": ("propagation", {"rank": 4}),
    "propagation wide": ("propagation", {"fourier": 16, "sketch": 6}),
    "propagation with noise": ("propagation", {"epsilon": 5.0, "class_list": (0, 1, 2, 3, 4, 5)}),
}


def quick(name: str, form: dict[str, Any] | None = None, **params: Any) -> Any:
    """`params`: those that the method knows; `form`: all of them."""
    known = method_class(name).defaults()
    known_ones = {k: v for k, v in (QUICK | params).items() if k in known}
    return make_learner(name, **known_ones | (form or {}))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_names_what_it_keeps(name: str) -> None:
    learner = quick(name)
    assert learner.inventory().sums == ()
    learner.observe(tiny_stream().task(0))
    inventory = learner.settle().inventory()
    assert unnamed(learner.learned_, inventory) == {}
    assert inventory.rest
    assert len(inventory.sums) == SUMS.get(name, 0)


@pytest.mark.parametrize("variant", MORE)
def test_the_rows_of_other_forms_add_up_too(variant: str) -> None:
    name, params = MORE[variant]
    check_inventory(quick(name, params))


def test_a_rule_that_does_not_say_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Rule, "grams")
    learner = quick("adr", merging="average").observe(tiny_stream().task(0))
    left = unnamed(learner.learned_, learner.inventory())
    assert left
    assert all(path.startswith("memory.") for path in left)


@pytest.mark.parametrize("name", ["propagation", "hybrid"])
def test_no_gram_is_made_before_it_is_asked_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    thin = {"rank": 4} if name == "propagation" else {}
    learner = quick(name, **thin).observe(tiny_stream().task(0)).settle()
    made: list[str] = []

    def count(owner: Any, what: str) -> None:
        plain = getattr(owner, what)
        monkeypatch.setattr(owner, what, lambda *a, **k: made.append(what) or plain(*a, **k))

    count(Thin, "to_dense")
    count(Border, "around")
    kept = learner.inventory().sums[-1]
    assert (made, kept.has_products, kept.columns > 0) == ([], True, True)
    assert kept.gram is kept.gram
    assert len(made) == 1


def test_a_border_tells_its_columns_without_its_gram() -> None:
    learner = quick("hybrid", fourier=0).observe(tiny_stream().task(0))
    for kept in learner.inventory().sums:
        squares, lowest = kept.column_facts()
        torch.testing.assert_close(squares, kept.gram.diagonal())
        torch.testing.assert_close(lowest, kept.gram.amin(dim=0))


def test_a_backbone_of_attention_depends_on_weights_from_its_first_layer() -> None:
    learner = quick("adr", encoder="gat").observe(tiny_stream().task(0))
    assert not any(kept.current for kept in learner.inventory().sums)


COUNTS = ("propagation", "hybrid", "acil", "ds-al", "adr", "adr-plus", "dpcr", "efc", "polo")


@pytest.mark.parametrize("method", COUNTS)
def test_rows_behind_each_class_are_known_and_few_are_not_written(method, tmp_path) -> None:
    stream = tiny_stream()
    learner = quick(method, cleansing=False, fourier=0)
    learner.observe(stream.task(0)).observe(stream.task(1))
    assert learner.class_rows() == {0: 6, 1: 6, 2: 6, 3: 6}
    learner.save(tmp_path / "six")
    with pytest.raises(InputError, match=r"class 0 has 6 training nodes.*least_rows=6"):
        learner.save(tmp_path / "seven", least_rows=7)
    assert [path.name for path in tmp_path.iterdir()] == ["six"]


@pytest.mark.parametrize("method", ["ds-al", "bare", "joint"])
def test_a_method_without_counts_writes_what_it_has(method: str, tmp_path: Path) -> None:
    learner = quick(method).observe(tiny_stream().task(0))
    assert learner.class_rows() is None
    learner.save(tmp_path / "learner", least_rows=100)


def test_classes_may_grow_in_memory_until_they_can_be_written(tmp_path: Path) -> None:
    learner = make_learner("propagation", fourier=0)
    for seed in (0, 1):
        with pytest.raises(InputError, match="fewer than 5"):
            learner.observe(tiny_graph(seed, nodes=12)).save(tmp_path / "learner")
    learner.observe(tiny_graph(2, nodes=12)).save(tmp_path / "learner")
