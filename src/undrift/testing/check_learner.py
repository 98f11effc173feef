"""What every learner must do, as checks: `check_learner(MyLearner())`.

Each check takes a learner, works on clones of it and raises AssertionError with a sentence.
`LEARNER_CHECKS` has them by name, for pytest's parametrize.
"""

from itertools import product

import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.base import Learner
from undrift.learners.reading import likeliest
from undrift.storage.state import State
from undrift.streams.stream import TaskStream
from undrift.streams.task import Task
from undrift.testing import check_living as living
from undrift.testing.check_living import refused, taught, unchanged
from undrift.testing.check_state import check_inventory, found_examples, matches
from undrift.testing.graphs import tiny_stream


def check_clone_and_repr(learner: Learner) -> None:
    """A clone has the parameters and no memory; repr and params tell the parameters."""
    clone = taught(learner, tiny_stream().task(0)).clone()
    assert clone.classes_ == (), "a clone must have observed nothing"
    assert repr(clone) == repr(learner), "repr must depend on the parameters only"
    assert clone.params() == learner.params(), "a clone must have the same parameters"
    again = type(learner).from_params(**learner.params())
    assert again == learner, "from_params(**params()) must give the same learner"
    for name in learner.params():
        assert f"{name}=" in repr(learner), f"repr must show the parameter {name}"


def check_same_seed_same_result(learner: Learner) -> None:
    """Two learners with one seed agree in every bit, and the global generator is left alone."""
    stream = tiny_stream()
    before = torch.random.get_rng_state()
    first, second = taught(learner, *stream), taught(learner, *stream)
    assert torch.equal(before, torch.random.get_rng_state()), (
        "learning must draw from its own generator, not from torch's global one"
    )
    unchanged(second, first.scores(stream.graph), "learning once more with the same seed")


def check_restored_continues(learner: Learner) -> None:
    """A learner restored from its state after each task goes on bit for bit."""
    stream = tiny_stream()
    through, restored = learner.clone(), learner.clone()
    for task in stream:
        through.observe(task)
        restored = learner.clone().load(living.copied(restored.observe(task).state()))
        unchanged(restored, through.scores(stream.graph), "restoring a state")
    assert restored.classes_ == through.classes_, "a restored learner must know its classes"


def check_state_of_another_method(learner: Learner) -> None:
    """A state that belongs to another method is refused."""
    state = taught(learner, tiny_stream().task(0)).state()
    other = State("another", state.params, state.tensors, state.values)
    refused("the state of another method", lambda: learner.clone().load(other))


def check_unseen_never_predicted(learner: Learner) -> None:
    """Scores have a column per class seen, and only those classes are predicted."""
    stream = tiny_stream()
    clone = learner.clone()
    refused("predicting before anything was observed", lambda: clone.predict(stream.graph))
    for t, task in enumerate(stream):
        clone.observe(task)
        seen = [c for classes in stream.classes[: t + 1] for c in classes]
        scores = clone.scores(stream.graph)
        assert clone.classes_ == tuple(seen), "classes_ must list the classes in arrival order"
        assert scores.shape == (stream.graph.num_nodes, len(seen)), "one column per class seen"
        assert bool(torch.isfinite(scores).all()), "scores must be finite"
        predicted = clone.predict(stream.graph)
        assert set(predicted.tolist()) <= set(seen), "an unseen class predicted"
        assert bool((predicted == likeliest(scores, seen)).all()), (
            "predict must give the class of the largest score"
        )
        _check_probabilities(clone, stream.graph, scores)


def check_some_nodes(learner: Learner) -> None:
    """Asked for some nodes, a learner scores them as when asked for all."""
    stream = tiny_stream()
    clone = taught(learner, *stream)
    three, none = torch.tensor([7, 3, 30]), torch.zeros(60, dtype=torch.bool)
    for graph, nodes in product((stream.graph, living.tiny_path()), (three, stream.test, none)):
        scores, some = clone.scores(graph), clone.scores(graph, nodes)
        assert some.shape == scores[nodes].shape, "one row per node that was asked for"
        gap = (some - scores[nodes]).abs() / scores.abs().max()
        assert bool((gap <= 1e-5).all()), "a node's scores depend on which others are asked for"
    refused("a node that is not there", lambda: clone.predict(stream.graph, torch.tensor([60])))


def _check_probabilities(learner: Learner, graph: Graph, scores: Tensor) -> None:
    """Probabilities, where there are any, add up to one and rank classes as scores do."""
    try:
        probabilities = learner.predict_proba(graph)
    except InputError:
        return
    assert probabilities.shape == scores.shape, "one probability per node and class seen"
    sums = probabilities.sum(dim=1)
    assert torch.allclose(sums, torch.ones_like(sums)), "probabilities of a node must sum to one"
    same = bool((probabilities.argmax(dim=1) == scores.argmax(dim=1)).all())
    assert same, "the likeliest class must be the one with the largest score"


def check_node_order(learner: Learner) -> None:
    """Nodes given in another order get the same scores."""
    stream = tiny_stream()
    mine = taught(learner, *stream)
    order = torch.randperm(stream.graph.num_nodes, generator=torch.Generator().manual_seed(5))
    shuffled = mine.scores(stream.graph.subgraph(order))
    straight = mine.scores(stream.graph)[order]
    error = float((shuffled - straight).norm() / straight.norm())
    assert error < 1e-4, f"scores change by {error:.1e} when nodes are reordered"


def check_keeps_examples(learner: Learner) -> None:
    """A learner that says it keeps no examples has a state that does not grow with nodes.

    It grows if each of three streams, larger than the one before, leaves more numbers behind. Nor
    may its tensors hold a training node's features, as a row or linearly disguised (`check_state`).
    One that says it keeps examples must be caught by one of these.
    """
    streams = [tiny_stream(nodes=nodes) for nodes in (66, 80, 96)]
    states = [taught(learner, *stream).state() for stream in streams]
    small, middle, large = (sum(t.numel() for t in state.tensors.values()) for state in states)
    grows = small < middle < large
    nodes = streams[-1].graph.features.to_dense()
    holds = any(matches(tensor, nodes) for tensor in states[-1].tensors.values())
    disguised = None if grows or holds else found_examples(learner)
    if learner.keeps_examples:
        assert grows or holds or disguised, "says it keeps examples, but its state has none"
    else:
        assert not grows, "says it keeps no examples, but its state grows with the nodes"
        assert not holds, "says it keeps no examples, but its state has a node's features"
        assert not disguised, f"says it keeps no examples, but {disguised}"


def check_rejected_task(learner: Learner) -> None:
    """A task that is refused or breaks off in the middle leaves the learner as it was."""
    stream = tiny_stream()
    mine = taught(learner, stream.task(0), stream.task(1))
    before, last = mine.scores(stream.graph), stream.task(2)
    narrow = last.graph.features.to_dense()[:, :-1].contiguous()
    graph = Graph(narrow, last.graph.adjacency, last.graph.labels)
    narrower = Task(graph, last.train, last.val, last.test, last.classes)
    refused("another feature width", lambda: mine.observe(narrower))
    unchanged(mine, before, "a wrong feature width")
    living.interrupted("observe", mine, lambda stop: mine.observe(last, progress=stop))


def check_input_not_changed(learner: Learner) -> None:
    """Observing and predicting leave the task's tensors as they were."""
    task = tiny_stream().task(0)
    assert isinstance(task.graph.features, Tensor)
    parts = [task.graph.features, task.graph.adjacency.values, task.train]
    copies = [part.clone() for part in parts]
    learner.clone().observe(task).predict(task.graph)
    same = all(map(torch.equal, parts, copies))
    assert same, "a learner must not write into the task it was given"


def check_sparse_features(learner: Learner) -> None:
    """Sparse and dense forms of the same features give the same result up to rounding."""
    sparse = tiny_stream(sparse=True)
    same = Graph(sparse.graph.features.to_dense(), sparse.graph.adjacency, sparse.graph.labels)
    dense = TaskStream.from_graph(same, base=2, increment=2, seed=0)
    one = taught(learner, *sparse).scores(sparse.graph)
    other = taught(learner, *dense).scores(same)
    error = float((one - other).norm() / other.norm())
    assert error < 1e-2, f"sparse features change the scores by {error:.1e}"


LEARNER_CHECKS = {
    **living.named_checks(globals()),
    "inventory": check_inventory,
    **living.LIVING_CHECKS,
}
"""The checks of `check_learner` by name, for pytest's parametrize.

>>> from undrift import Propagation
>>> LEARNER_CHECKS["node_order"](Propagation())
"""


def check_learner(learner: Learner) -> None:
    """Run every check of a method; the learner given is not changed.

    >>> from undrift import Bare
    >>> check_learner(Bare(epochs=1, hidden=8))
    """
    for check in LEARNER_CHECKS.values():
        try:
            check(learner)
        except Exception as error:
            error.add_note(f"{check.__name__}: {(check.__doc__ or '').splitlines()[0]}")
            raise
