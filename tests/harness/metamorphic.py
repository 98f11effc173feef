"""What must not change an answer: nodes in another order, a graph beside itself, another machine.

`RELATIONS` has each by name: a function of a learner that has observed nothing, which gives the
largest difference of scores, relative to the largest score. `NOT_INVARIANT` says of which methods
a relation does not hold, and why; `check_relation` holds a method to all of it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from undrift import Graph, Learner, TaskStream, make_learner
from undrift.learners.registry import method_class
from undrift.storage.splits import SavedSplit, labels_digest
from undrift.testing import tiny_stream

Relation = Callable[[Learner], float]


def relabelled_nodes(learner: Learner) -> float:
    """The same graph with its nodes in another order, learned and predicted."""
    stream = tiny_stream()
    order = torch.from_numpy(np.random.default_rng(1).permutation(stream.graph.num_nodes))
    found = _taught(learner, stream).scores(stream.graph)
    turned = _split_as(stream, stream.graph.subgraph(order), order.numpy())
    return _apart(found[order], _taught(learner, turned).scores(turned.graph))


def permuted_classes(learner: Learner) -> float:
    """The two classes of every task change their names; columns change places with them."""
    stream = tiny_stream()
    swap = torch.tensor([c ^ 1 for c in range(6)])
    graph = Graph(stream.graph.features, stream.graph.adjacency, swap[stream.graph.labelled()])
    other = _taught(learner, _split_as(stream, graph))
    found = _taught(learner, stream).scores(stream.graph)
    return _apart(found[:, swap[: found.shape[1]]], other.scores(graph))


def duplicated_graph(learner: Learner) -> float:
    """Two copies of a graph side by side: each is predicted as if it were alone."""
    stream = tiny_stream()
    graph = stream.graph
    links = graph.adjacency.to_scipy()
    both = Graph.from_scipy(
        torch.cat([_dense(graph), _dense(graph)]), sp.block_diag([links, links])
    )
    taught = _taught(learner, stream)
    return _apart(taught.scores(graph).repeat(2, 1), taught.scores(both))


def relearned(change: Callable[[Graph], Graph]) -> Relation:
    """Another graph, in which nodes keep their places, is learned with the same split."""

    def apart(learner: Learner) -> float:
        stream = tiny_stream()
        graph = change(stream.graph)
        found = _taught(learner, stream).scores(stream.graph)
        other = _taught(learner, _split_as(stream, graph)).scores(graph)
        return _apart(found, other[: len(found)])

    return apart


def isolated_nodes(graph: Graph) -> Graph:
    """Unlabelled nodes without edges beside those of a graph."""
    rows = torch.rand(7, graph.num_features, generator=torch.Generator().manual_seed(2))
    links = sp.block_diag([graph.adjacency.to_scipy(), sp.csr_matrix((7, 7))])
    labels = torch.cat([graph.labelled(), torch.full((7,), -1)])
    return Graph.from_scipy(torch.cat([_dense(graph), rows]), links, labels)


def scaled_features(graph: Graph) -> Graph:
    """Every row of features four times as long."""
    return Graph(4.0 * _dense(graph), graph.adjacency, graph.labels)


def double_features(graph: Graph) -> Graph:
    """Features given as float64."""
    edges = np.stack(graph.adjacency.to_scipy().T.nonzero())
    return Graph.from_arrays(_dense(graph).double().numpy(), edges, graph.labelled().numpy())


def two_threads(learner: Learner) -> float:
    """Two threads in place of one."""
    stream, before, found = tiny_stream(), torch.get_num_threads(), []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(_taught(learner, stream).scores(stream.graph))
    finally:
        torch.set_num_threads(before)
    return _apart(*found)


def on_cuda(learner: Learner) -> float:
    """A GPU in place of the CPU; for machines that have one."""
    stream = tiny_stream()
    found = _taught(learner, stream).scores(stream.graph)
    other = type(learner).from_params(**learner.params() | {"device": "cuda"})
    return _apart(found, _taught(other, stream).scores(stream.graph))


RELATIONS: dict[str, Relation] = {
    "relabelled nodes": relabelled_nodes,
    "permuted classes": permuted_classes,
    "duplicated graph": duplicated_graph,
    "isolated nodes": relearned(isolated_nodes),
    "scaled features": relearned(scaled_features),
    "float64 features": relearned(double_features),
    "two threads": two_threads,
    "on a GPU": on_cuda,
}
TOLERANCE: dict[str, tuple[float, float]] = {  # with an encoder in float32, all in float64
    "relabelled nodes": (1e-5, 1e-12),
    "permuted classes": (1e-5, 1e-12),
    "duplicated graph": (1e-6, 1e-12),
    "isolated nodes": (1e-6, 1e-12),
    "scaled features": (1e-6, 1e-12),
    "float64 features": (0.0, 0.0),
    "two threads": (1e-5, 1e-12),
    "on a GPU": (1e-6, 1e-11),
}
OWN_TOLERANCE = {("polo", "on a GPU"): 5e-3, ("efc", "on a GPU"): 5e-3}
"""Where a method has one of its own: these two draw nodes, on a GPU from its own generator."""
DOUBLE = ("propagation", "hybrid")
"""Methods whose rows and sums are float64 throughout, on the tiny stream of these checks."""

_TRAINED = (
    *("bare", "joint", "lwf", "ewc", "mas", "twp", "er-gnn", "cat", "polo", "efc"),
    *("acil", "ds-al", "dpcr", "adr", "adr-plus", "gacl"),
)
_HEAD = (
    "a head is trained, or was for the encoder, that starts from random columns, one per class id"
)
_ROWS = "its encoder sees features as they are: rows are not normalised"
_RANDOM = ("al-gnn", "ugcn")  # whose encoder is drawn and never trained
NOT_INVARIANT: dict[str, dict[str, str]] = {
    "permuted classes": dict.fromkeys(_TRAINED, _HEAD),
    "scaled features": dict.fromkeys((*_TRAINED, *_RANDOM), _ROWS),
}
QUICK: dict[str, Any] = {"epochs": 3, "hidden": (8,), "n_encoders": 4, "dropout": 0.0}
"""Few epochs; without dropout, which is drawn node by node and so knows their order."""


def check_relation(method: str, relation: str) -> float:
    """Hold a method to a relation, or to its entry in `NOT_INVARIANT`; the difference."""
    known = method_class(method).defaults()
    settings = {name: value for name, value in QUICK.items() if name in known}
    found = RELATIONS[relation](make_learner(method, **settings))
    limit = OWN_TOLERANCE.get((method, relation), TOLERANCE[relation][method in DOUBLE])
    reason = NOT_INVARIANT.get(relation, {}).get(method)
    if reason is None:
        assert found <= limit, f"{method}, {relation}: apart by {found:.1e}, not {limit:.0e}"
    else:
        assert found > limit, f"{method} is invariant ({relation}), though it is said: {reason}"
    return found


def _taught(learner: Learner, stream: TaskStream) -> Learner:
    return learner.clone().observe(stream.task(0)).observe(stream.task(1))


def _split_as(stream: TaskStream, graph: Graph, order: Any = None) -> TaskStream:
    """A graph with the tasks and the split of a stream; nodes that it lacks are in none."""
    split = stream.saved_split()
    more = np.zeros(graph.num_nodes - split.nodes, np.bool_)
    place = np.arange(split.nodes) if order is None else order
    masks = (np.append(mask[place], more) for mask in (split.train, split.val, split.test))
    train, val, test = masks
    digest = labels_digest(graph.labelled().numpy())
    made = SavedSplit(split.classes, train, val, test, digest)
    return TaskStream.with_split(graph, made, name="tiny")


def _apart(one: Tensor, other: Tensor) -> float:
    """The largest difference relative to the largest number."""
    if one.shape != other.shape:
        return float("inf")
    scale = float(one.double().abs().max()) or 1.0
    return float((one.double() - other.double()).abs().max()) / scale


def _dense(graph: Graph) -> Tensor:
    assert isinstance(graph.features, Tensor)
    return graph.features
