"""A sample of what must not change an answer; `make torture` holds all methods to all of it.

Which methods a relation does not hold for, and why, is `NOT_INVARIANT`.
"""

import pytest
import torch

from tests.harness import metamorphic
from tests.harness.metamorphic import NOT_INVARIANT, OWN_TOLERANCE, QUICK, RELATIONS, check_relation
from undrift.graphs import Graph
from undrift.learners.registry import METHODS, make_learner, method_class
from undrift.testing.graphs import tiny_stream

SAMPLE = [
    ("adr", "relabelled nodes"),
    ("dpcr", "relabelled nodes"),
    ("propagation", "relabelled nodes"),
    ("lwf", "duplicated graph"),
    ("propagation", "duplicated graph"),
    ("acil", "isolated nodes"),
    ("bare", "float64 features"),
    ("bare", "two threads"),
]


@pytest.mark.parametrize(("method", "relation"), SAMPLE)
def test_an_answer_that_must_not_change(method: str, relation: str) -> None:
    check_relation(method, relation)


@pytest.mark.parametrize("relation", NOT_INVARIANT)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_invariant_or_says_why_not(method: str, relation: str) -> None:
    check_relation(method, relation)


@pytest.mark.parametrize("method", METHODS)
def test_graphs_without_nodes_or_edges_are_predicted(method: str) -> None:
    known = method_class(method).defaults()
    settings = {n: v for n, v in QUICK.items() if n in known}
    settings |= {"epochs": 1} if "epochs" in known else {}
    learner = make_learner(method, **settings).observe(tiny_stream().task(0))
    width = tiny_stream().graph.num_features
    for nodes in (0, 1, 3):
        lone = Graph.from_arrays(torch.ones(nodes, width), [])
        assert learner.scores(lone).shape == (nodes, 2)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("method", METHODS)
def test_a_gpu_gives_the_same_answer(method: str) -> None:
    check_relation(method, "on a GPU")


@pytest.mark.parametrize(("method", "draws"), [("polo", True), ("efc", True), ("adr", False)])
def test_on_a_device_only_methods_that_draw_nodes_have_other_numbers(method, draws, monkeypatch):
    """As docs/reliability.md has it: with a generator seeded as that of a device is."""

    def other(generator: torch.Generator, device: object) -> torch.Generator:
        return torch.Generator().manual_seed(int(torch.randint(2**62, (), generator=generator)))

    known = method_class(method).defaults()
    learner = make_learner(method, **{n: v for n, v in QUICK.items() if n in known})
    stream = tiny_stream()
    first = metamorphic._taught(learner, stream).scores(stream.graph)
    monkeypatch.setattr("undrift.encoders.training.on_device", other)
    apart = metamorphic._apart(first, metamorphic._taught(learner, stream).scores(stream.graph))
    assert 1e-4 < apart < OWN_TOLERANCE[method, "on a GPU"] if draws else apart == 0.0


def test_a_broken_relation_and_a_stale_reason_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RELATIONS, "two threads", lambda learner: 0.5)
    with pytest.raises(AssertionError, match="bare, two threads: apart by"):
        check_relation("bare", "two threads")
    monkeypatch.setitem(metamorphic.NOT_INVARIANT, "two threads", {"bare": "the clock is read"})
    check_relation("bare", "two threads")
    monkeypatch.setitem(RELATIONS, "two threads", lambda learner: 0.0)
    with pytest.raises(AssertionError, match="though it is said: the clock"):
        check_relation("bare", "two threads")
