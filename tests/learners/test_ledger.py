"""A batch is counted once and subtracted once, whatever its form and whatever came between."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.learners.test_forgetting_nodes import batch, without
from undrift import Graph, InputError, Learner, Task, load, make_learner
from undrift.learners.ledger import Ledger
from undrift.sparse import Csr
from undrift.storage import State
from undrift.streams.task import batch_digest, is_digest_of
from undrift.testing.check_living import tiny_batch

JAN, FEB = batch(0, (0, 1)), batch(1, (2, 1))


def learner(**settings: Any) -> Learner:
    return make_learner("propagation", gamma=0.1, fourier=0, **settings)


def unchanged(taught: Learner, call: Callable[[], object], match: str) -> None:
    before = taught.learned_, taught.batches_
    with pytest.raises(InputError, match=match):
        call()
    assert taught.learned_ is before[0]
    assert taught.batches_ is before[1]


def close(found: Learner, wanted: Learner) -> None:
    graph = batch(2, (0, 2)).graph
    mine, theirs = found.scores(graph), wanted.scores(graph)
    order = [found.classes_.index(c) for c in wanted.classes_]
    assert float((mine[:, order] - theirs).abs().max() / theirs.abs().max()) < 1e-9


def test_a_batch_is_observed_once() -> None:
    taught = learner().observe(JAN).observe(FEB)
    unchanged(taught, lambda: taught.observe(JAN), "again=True")
    taught.observe(JAN, again=True)
    close(taught.forget(JAN), learner().observe(JAN).observe(FEB))


def test_a_batch_is_forgotten_once_and_only_if_it_is_in() -> None:
    taught = learner().observe(JAN).observe(FEB)
    unchanged(taught, lambda: taught.forget(batch(3, (0, 1))), "not in")
    taught.forget(FEB)
    unchanged(taught, lambda: taught.forget(FEB), "not in")
    close(taught.observe(FEB), learner().observe(JAN).observe(FEB))


@settings(max_examples=12, deadline=None, derandomize=True, phases=(Phase.generate,))
@given(
    nodes=st.lists(st.integers(0, 89), min_size=2, max_size=6, unique=True),
    directed=st.booleans(),
    cut=st.integers(1, 5),
)
def test_nodes_are_taken_out_of_the_batch_as_it_was(nodes, directed, cut) -> None:
    later = batch(1, (2, 1), directed=directed)
    taught = learner().observe(JAN).observe(later)
    for some in (nodes[:cut], nodes[cut:]):
        taught.forget(later, some)
    close(taught, learner().observe(JAN).observe(without(later, nodes)))
    close(taught.forget(later), learner().observe(JAN))


def test_a_batch_may_be_given_without_what_was_taken_out() -> None:
    taught = learner().observe(JAN).observe(FEB).forget(FEB, [2, 7])
    smaller = without(FEB, [2, 7])
    taught.forget(smaller, [5])
    close(taught, learner().observe(JAN).observe(without(smaller, [5])))
    for known in (FEB, smaller, without(smaller, [5])):
        unchanged(taught, lambda known=known: taught.observe(known), "again=True")
    close(taught.forget(without(smaller, [5])), learner().observe(JAN))


def test_a_node_is_taken_out_once() -> None:
    taught = learner().observe(JAN).observe(FEB).forget(FEB, [2])
    unchanged(taught, lambda: taught.forget(FEB, [5, 2]), "node 2 was taken out")
    taught.forget(FEB, [5, 2], again=True)
    close(taught, learner().observe(JAN).observe(without(FEB, [2, 5])))


def test_of_two_copies_each_has_its_own_nodes() -> None:
    taught = learner().observe(JAN).observe(FEB).observe(FEB, again=True)
    taught.forget(FEB, [2]).forget(FEB, [2])
    unchanged(taught, lambda: taught.forget(FEB, [2]), "node 2 was taken out")
    close(taught.forget(FEB).forget(FEB), learner().observe(JAN))
    unchanged(taught, lambda: taught.forget(FEB), "not in")


def test_the_last_training_nodes_take_the_batch_along() -> None:
    every = FEB.train.nonzero().flatten().tolist()
    taught = learner().observe(JAN).observe(FEB).forget(FEB, every[1:])
    close(taught.forget(FEB, every[:1]), learner().observe(JAN))
    unchanged(taught, lambda: taught.forget(FEB), "not in")


def test_a_node_that_was_taken_out_stays_out_of_a_correction() -> None:
    corrected = Task(
        replace(FEB.graph, features=FEB.graph.features + 1), FEB.train, FEB.val, None, FEB.classes
    )
    names = [f"n{i}" for i in range(90)]
    order = np.random.default_rng(0).permutation(90)
    shuffled = Task(corrected.graph.subgraph(order), corrected.train[order], corrected.val[order])
    wanted = learner().observe(JAN).observe(without(corrected, [2]))
    taught = learner().observe(JAN).observe(FEB).forget(FEB, [2])
    again = learner().load(taught.state())
    taught.revise(FEB, corrected)
    close(taught, wanted)
    again.revise(FEB, shuffled, ids=(names, [names[i] for i in order]))
    close(again, wanted)
    unchanged(taught, lambda: taught.observe(FEB), "another version")
    close(taught.forget(corrected), learner().observe(JAN))


def test_a_correction_must_be_of_a_batch_that_is_in_and_be_new() -> None:
    taught = learner().observe(JAN).observe(FEB)
    unchanged(taught, lambda: taught.revise(batch(3, (0, 1)), batch(4, (0, 1))), "not in")
    unchanged(taught, lambda: taught.revise(FEB, JAN), "already")


def test_a_batch_of_two_learners_is_counted_once() -> None:
    one = learner().observe(JAN)
    other = one.sibling().observe(FEB)
    one.observe(FEB)
    unchanged(one, lambda: one.merge(other), "again=True")
    alone = learner().observe(JAN)  # the same first batch, and no sibling
    unchanged(one, lambda: one.merge(alone), "again=True")
    twice = learner().observe(JAN).observe(FEB).observe(FEB, again=True)
    close(one.merge(other, again=True), twice)


def test_the_ledger_travels_with_a_file_and_not_with_a_clone(tmp_path: Path) -> None:
    taught = learner().observe(JAN).observe(FEB).forget(FEB, [2])
    taught.save(tmp_path / "learner", least_rows=1)
    restored = load(tmp_path / "learner")
    unchanged(restored, lambda: restored.observe(JAN), "again=True")
    unchanged(restored, lambda: restored.forget(FEB, [2]), "node 2")
    close(restored.forget(FEB), learner().observe(JAN))
    assert taught.clone().batches_ is None
    assert not taught.sibling().batches_.held  # type: ignore[union-attr]


def old(taught: Learner) -> Learner:
    """As from a file of before there was a ledger."""
    return taught.clone().load(taught.state(batches=False))


def test_a_state_without_a_ledger_knows_of_no_batch() -> None:
    taught = old(learner().observe(JAN).observe(FEB))
    never, changed = batch(7, (0, 1)), batch(8, (2, 1))
    for unknown in (lambda: taught.forget(never), lambda: taught.revise(FEB, changed)):
        unchanged(taught, unknown, "again=True")
    taught.forget(FEB, [2], again=True)  # now it is known
    unchanged(taught, lambda: taught.forget(FEB, [2]), "node 2")
    close(taught.forget(FEB), learner().observe(JAN))
    taught.observe(never)
    unchanged(taught, lambda: taught.observe(never), "again=True")
    taught = old(taught.forget(never))
    with pytest.raises(InputError, match="fewer rows"):  # as far as sums can tell
        taught.forget(never, again=True)


def test_a_state_without_a_ledger_gives_no_batch_twice(tmp_path: Path) -> None:
    taught = old(learner().observe(JAN).observe(FEB).observe(batch(3, (0, 1))))
    taught.forget(batch(3, (0, 1)), again=True).revise(FEB, batch(4, (2, 1)), again=True)
    taught.save(tmp_path / "learner")
    for known in (taught, load(tmp_path / "learner"), taught.sibling().merge(taught)):
        for gone in (batch(3, (0, 1)), FEB):
            unchanged(known, lambda k=known, b=gone: k.forget(b, again=True), "already")
    close(taught.forget(batch(4, (2, 1))), learner().observe(JAN))
    assert not learner().observe(JAN).observe(FEB).forget(FEB).batches_.gone  # type: ignore[union-attr]


def test_the_ledger_of_a_private_learner_is_written_nowhere() -> None:
    private = make_learner("propagation", epsilon=1.0, class_list=(0, 1, 2), testing=True)
    private.observe(JAN)
    unchanged(private, lambda: private.observe(JAN), r"already.*leave it out \(")
    unchanged(private, lambda: private.observe(JAN, again=True), "leave out again=True")
    other = private.sibling().observe(JAN)
    unchanged(private, lambda: private.merge(other), "share 1 of 1.*anew")
    unchanged(private, lambda: private.merge(other, again=True), "leave out again=True")
    assert not [name for name in private.state().values if "batches" in name]
    assert old(private).batches_ is None


def test_digests_in_a_file_are_salted() -> None:
    text = repr(learner().observe(JAN).state().values)
    assert "@batches.held.0.mark" in text
    assert batch_digest(JAN).partition(":")[2] not in text


@pytest.mark.parametrize(
    ("name", "value"), [("salt", "no"), ("held.0.mark", "x"), ("held.0.out.#", -1)]
)
def test_a_damaged_ledger_is_one_sentence(name: str, value: Any) -> None:
    state = learner().observe(JAN).state()
    values = {**state.values, f"@batches.{name}": value}
    with pytest.raises(InputError, match="damaged"):
        learner().load(State(state.method, state.params, state.tensors, values))


def graph_of(rows: Any, pairs: list[tuple[int, int]], labels: list[int]) -> Graph:
    return Graph.from_arrays(rows, np.array(pairs).T, labels)


ROWS = np.array([[1.0, 0, 2], [0, 0, -0.5], [3, 1, 0], [0, 0, 0]], dtype=np.float32)
PAIRS = [(0, 1), (1, 2), (2, 3), (3, 0)]
LABELS = [0, 1, 1, -1]


def test_a_digest_does_not_see_how_a_batch_is_stored() -> None:
    wanted = batch_digest(Task(graph_of(ROWS, PAIRS, LABELS), torch.arange(4) < 3))
    zero = ROWS.copy()
    zero[3, 1] = -0.0
    dense = graph_of(zero, PAIRS[::-1], [0, 1, 1, -1])
    stored = Csr(
        torch.tensor([0, 3, 4, 6, 6], dtype=torch.int32),
        torch.tensor([0, 1, 2, 2, 0, 1], dtype=torch.int32),
        torch.tensor([1.0, 0, 2, -0.5, 3, 1]),
        (4, 3),
    )
    for graph in (dense, replace(dense, features=stored)):
        assert batch_digest(Task(graph, torch.arange(4) < 3)) == wanted


@pytest.mark.parametrize(
    "change",
    [
        lambda rows, pairs, labels: (rows[:, [1, 0, 2]], pairs, labels),
        lambda rows, pairs, labels: (rows[[1, 0, 2, 3]], pairs, labels),
        lambda rows, pairs, labels: (np.nextafter(rows, np.float32(9)), pairs, labels),
        lambda rows, pairs, labels: (-rows, pairs, labels),
        lambda rows, pairs, labels: (rows, pairs[:-1], labels),
        lambda rows, pairs, labels: (rows, [(b, a) for a, b in pairs], labels),
        lambda rows, pairs, labels: (rows, [*pairs[:-1], (3, 1)], labels),
        lambda rows, pairs, labels: (rows, pairs, [1, 0, 1, -1]),
    ],
)
def test_a_digest_sees_every_difference(change: Callable[..., Any]) -> None:
    train = torch.arange(4) < 3
    wanted = batch_digest(Task(graph_of(ROWS, PAIRS, LABELS), train))
    assert batch_digest(Task(graph_of(*change(ROWS, PAIRS, LABELS)), train)) != wanted


def test_a_digest_sees_splits_and_weights_and_no_hidden_label() -> None:
    graph = graph_of(ROWS, PAIRS, LABELS)
    train, last = torch.arange(4) < 2, torch.arange(4) == 2
    wanted = batch_digest(Task(graph, train))
    assert batch_digest(Task(graph, train, last)) != wanted
    assert batch_digest(Task(graph, train, None, last)) == wanted
    heavier = replace(graph, adjacency=graph.adjacency.with_values(graph.adjacency.values * 2))
    assert batch_digest(Task(heavier, train)) != wanted


def test_encoders_know_their_batch() -> None:
    taught = make_learner("acil", epochs=1, hidden=(4,), alpha=1).observe(tiny_batch((0, 1)))
    assert is_digest_of(taught.learned_.plan.trained_on, tiny_batch((0, 1)))
    with pytest.raises(InputError, match="noted before version"):
        is_digest_of("058b450d243806f3", tiny_batch((0, 1)))
    with pytest.raises(InputError, match="was trained on this batch"):
        taught.forget(tiny_batch((0, 1)))


def test_two_learners_of_other_processes_have_other_salts() -> None:
    one, two = Ledger("0" * 32), Ledger("1" * 32)
    both = one.observed("a", again=False).merged(two.observed("b", again=False), again=False)
    for digest in ("a", "b"):
        with pytest.raises(InputError, match="again=True"):
            both.observed(digest, again=False)
        assert both.find(digest)[0] is not None
