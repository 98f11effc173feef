"""`GraphSet`: what a row of a graph is, and that a graph is learned as a node is."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.references import pooled_row
from undrift import (
    Graph,
    GraphSet,
    InputError,
    Learner,
    LearnerFolder,
    Propagation,
    TaskStream,
    arrange,
    as_graph,
    as_graph_set,
    evaluate,
    load,
    make_learner,
)
from undrift.graphs import Pooling
from undrift.learners.registry import METHODS, method_class


def some_graphs(count: int = 48, classes: int = 4, pooling: Pooling | None = None) -> GraphSet:
    """Trees whose class is how many of their nodes have the first mark."""
    rng, graphs, labels = np.random.default_rng(0), [], []
    for i in range(count):
        nodes, label = int(rng.integers(classes, 9)), i % classes
        marks = np.zeros((nodes, 3))
        marks[np.arange(nodes), rng.integers(1, 3, nodes)] = 1
        marks[rng.permutation(nodes)[:label], 0] = 1
        parents = [int(rng.integers(0, node)) for node in range(1, nodes)]
        edges = [parents, list(range(1, nodes))]
        graphs.append(Graph.from_arrays(marks, edges, undirected=True))
        labels.append(label)
    return GraphSet.of(graphs, labels, pooling)


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool((a - b).abs().max() <= 1e-9 * b.abs().max())


def test_a_row_is_that_of_the_slow_twin_and_of_its_graph_alone() -> None:
    many = some_graphs(9)
    pooled = many.pooled()
    assert pooled.num_edges == 0
    assert pooled.num_features == Pooling().width(3)
    for i in range(len(many)):
        one = many.subset([i])
        assert torch.equal(one.pooled().features.to_dense()[0], pooled.features.to_dense()[i])
        dense = one.graph.adjacency.to_dense(), one.graph.features.to_dense()
        wanted = pooled_row(*dense, hops=2, places=40)
        assert torch.allclose(pooled.features.to_dense()[i].double(), wanted, atol=1e-6)


@pytest.mark.parametrize("sign", [1, -1])
def test_curves_of_large_and_negative_sums_end_in_the_last_place(sign: int) -> None:
    x = sign * np.array([[3.0], [1e9], [60.5]])
    rows = GraphSet.of([Graph.from_arrays(x[[i]], []) for i in range(3)]).pooled().features
    wanted = torch.stack([pooled_row(torch.zeros(1, 1), torch.tensor(x[[i]])) for i in range(3)])
    assert torch.allclose(rows.to_dense().double(), wanted, rtol=1e-6)
    assert rows.to_dense()[1, 56] == sign


def test_a_graph_of_one_node_without_edges_and_of_ten_thousand_nodes() -> None:
    rng, n = np.random.default_rng(0), 10_000
    large = Graph.from_arrays(np.ones((n, 3)), rng.integers(0, n, (2, 3 * n)), undirected=True)
    single = Graph.from_arrays(np.ones((1, 3)), [])
    apart = Graph.from_arrays(np.eye(3), [])
    graphs = GraphSet.of([large, single, apart], [1, 0, 0])
    alone = Propagation().observe(some_graphs())
    learner = alone.sibling().observe(some_graphs()).observe(graphs)
    one_by_one = alone.clone().load(alone.state())
    for i in (2, 0, 1):
        one_by_one.observe(graphs.subset([i]))
    assert close(learner.scores(graphs), one_by_one.scores(graphs))
    assert close(learner.forget(graphs).scores(graphs), alone.scores(graphs))
    single_row = graphs.pooled().features.to_dense()[1]
    assert torch.equal(single_row[:3], torch.ones(3))


@settings(max_examples=6, deadline=None)
@given(st.permutations(range(4)), st.integers(0, 99))
def test_any_order_split_forgetting_and_merging_equals_pooled_training(order, seed) -> None:
    many = some_graphs(pooling=Pooling(hops=1, places=8))
    first, rest = many.subset(range(12)), torch.arange(12, 48)
    parts = rest[torch.randperm(36, generator=torch.Generator().manual_seed(seed))].chunk(4)
    batches = [many.subset(part) for part in parts]
    learner = Propagation(fourier=0).observe(first)
    other = learner.sibling()
    pinned = Propagation(plan=learner.plan_)
    for place, i in enumerate(order):
        (learner if place % 2 else other).observe(batches[i])
    learner.merge(other)
    whole = learner.scores(many)
    columns = [learner.classes_.index(c) for c in range(4)]
    at_once = pinned.clone().observe(many)
    assert close(whole[:, columns], at_once.scores(many)[:, list(at_once.classes_)])
    gone = batches[order[0]]
    learner.forget(batches[order[1]]).forget(gone, [0, 2])
    kept = torch.cat([torch.arange(12), parts[order[2]], parts[order[3]]])
    some = parts[order[0]].sort().values
    left = torch.cat([kept, some[[i for i in range(len(some)) if i not in (0, 2)]]])
    alone = pinned.clone().observe(many.subset(left))
    assert close(learner.scores(many)[:, columns], alone.scores(many)[:, list(alone.classes_)])


def test_a_corrected_label_is_revised_and_a_saved_learner_goes_on(tmp_path) -> None:
    many = some_graphs()
    wrong = many.labelled([3, *many.labels.tolist()[1:]])  # type: ignore[union-attr]
    learner = Propagation().observe(wrong)
    assert learner.revise(wrong, many).added == 1
    right = Propagation(plan=learner.plan_).observe(many)
    order = [learner.classes_.index(c) for c in right.classes_]
    assert close(learner.scores(many)[:, order], right.scores(many))
    learner.save(tmp_path / "graphs", least_rows=1)
    again = load(tmp_path / "graphs")
    assert torch.equal(again.predict(many), learner.predict(many))
    assert learner.score(many) == 1.0


QUICK: dict[str, Any] = {"epochs": 2, "hidden": (8, 8), "n_encoders": 10, "cleansing": False}
SMALL = {"hybrid": {"sketch": 64, "fourier": 32}}


def quick(method: str) -> Learner:
    known = method_class(method).defaults()
    told = {key: QUICK[key] for key in QUICK if key in known}
    return make_learner(method, **told, **SMALL.get(method, {}))


# one of each kind of state: to all of them a set of graphs is a graph without edges
@pytest.mark.parametrize("method", ["bare", "er-gnn", "cat", "adr", "ds-al", "dpcr", "propagation"])
def test_methods_run_on_streams_of_graphs(method: str, tmp_path) -> None:
    many = some_graphs(pooling=Pooling(hops=1, places=8))
    learner = quick(method)
    stream = TaskStream.from_graph(many, base=2, increment=1, scale="none")
    assert len(evaluate(learner, stream).by_class.rows) == 3
    scores = learner.scores(many)
    assert scores.shape == (48, 4)
    assert scores.isfinite().all()
    assert set(learner.predict(many, [3, 5]).tolist()) <= set(range(4))
    learner.save(tmp_path / "graphs", least_rows=1)
    assert torch.equal(load(tmp_path / "graphs").scores(many), scores)
    if learner.can("returns"):
        evaluate(quick(method), arrange(stream, "online:batch=16"))


@pytest.mark.parametrize("method", [m for m, known in METHODS.items() if known.merges])
def test_all_verbs_of_every_method_that_merges(method: str) -> None:
    many = some_graphs(pooling=Pooling(hops=1, places=8))
    first, second, third = (many.subset(range(k, k + 16)) for k in (0, 16, 32))
    learner = quick(method).observe(first)
    other, whole = learner.sibling().observe(third), learner.sibling().observe(many)
    alone = learner.sibling().observe(first)
    learner.observe(second).merge(other)
    assert close(learner.scores(many), whole.scores(many))
    learner.forget(second).forget(third)
    assert close(learner.scores(many), alone.scores(many))
    assert learner.novelty(many).shape == (48,)


@pytest.mark.parametrize("places", [111, 30])
def test_another_pooling_is_refused_by_name(places: int, tmp_path) -> None:
    learner = quick("propagation").observe(some_graphs(pooling=Pooling(hops=1, places=47)))
    assert not any("no edges" in note for note in learner.notes_)
    learner.save(tmp_path / "one", least_rows=1)
    other = some_graphs(pooling=Pooling(hops=0, places=places))  # 111: of the same width
    for verb in (learner.predict, learner.observe, load(tmp_path / "one").predict):
        with pytest.raises(InputError, match=r"Pooling\(hops=0, .* learned were .*Pooling\(hops=1"):
            verb(other)
    folder = LearnerFolder.new(tmp_path / "folder", least_rows=1)
    folder.observe(some_graphs(pooling=Pooling(hops=1, places=47)))
    for verb in (folder.predict, folder.observe):
        with pytest.raises(InputError, match=r"made by .*Pooling\(hops=0"):
            verb(other)
    with pytest.raises(InputError, match="learned other columns"):
        learner.merge(quick("propagation").observe(other))


def test_graphs_of_an_unknown_class_look_strange() -> None:
    many, known = some_graphs(120), torch.arange(120) % 4 < 3
    novelty = Propagation().observe(many.subset(known)).novelty(many)
    assert novelty[~known].mean() > novelty[known].mean() + 0.2


def test_lists_batches_and_datasets_of_pyg_and_networkx_are_the_same() -> None:
    pyg, nx = pytest.importorskip("torch_geometric.data"), pytest.importorskip("networkx")
    from torch_geometric.utils import to_networkx

    many = some_graphs(6)
    data, graphs = [], []
    for i in range(6):
        each = many.subset([i]).graph.to_pyg(dense=True)
        graphs.append(to_networkx(each, node_attrs=["x"], to_undirected=True))
        assert isinstance(graphs[-1], nx.Graph)
        graphs[-1].graph["label"] = i % 4
        each.y = torch.tensor([i % 4])
        data.append(each)

    class Mine(pyg.InMemoryDataset):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__(None)
            self.data, self.slices = self.collate(data)

    wanted = many.pooled()
    for form in (data, tuple(data), pyg.Batch.from_data_list(data), Mine(), graphs, many):
        found = as_graph(form)
        assert torch.equal(found.features.to_dense(), wanted.features.to_dense())
        assert torch.equal(found.labelled(), wanted.labelled())
    unknown = as_graph([(np.eye(2), [[0], [1]]), (np.ones((1, 2)), [])])
    assert (unknown.num_nodes, unknown.labels) == (2, None)
    assert len(as_graph_set(data)) == len(as_graph_set(graphs)) == 6
    with pytest.raises(InputError, match="cannot read graphs from int"):
        as_graph_set(3)
    data[2].y = torch.tensor([1, 2])
    graphs[2].graph["label"] = "toxic"
    for form in (data, graphs):
        with pytest.raises(InputError, match=r"graph 2 has the label.*give it one whole number"):
            as_graph(form)
    data[1] = pyg.Data(x=torch.ones(2, 3))
    with pytest.raises(InputError, match="graph 1: this PyG Data has no edges"):
        as_graph_set(data)
    last = [pyg.Data(x=torch.ones(n, 3), edge_index=torch.empty(2, 0).long()) for n in (2, 0)]
    with pytest.raises(InputError, match="graph 1 has no node"):
        as_graph_set(pyg.Batch.from_data_list(last))
    with pytest.raises(InputError, match="from an empty list"):
        as_graph_set([])
    with pytest.raises(InputError, match=r"for a whole graph, give a list: \[graph\]"):
        Propagation().observe(many).predict(many.subset([0]).graph)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda g: GraphSet(g, torch.tensor([0, 0])), "index must be 3 whole numbers"),
        (lambda g: GraphSet(g, torch.tensor([0, 0, 2])), "graph 1 has no node"),
        (lambda g: GraphSet(g, torch.tensor([0, 0, 1]), torch.tensor([4])), "there are 1 labels"),
        (lambda g: GraphSet(g, torch.tensor([0, 0, -1])), "a node is of graph -1"),
        (lambda g: GraphSet(g, torch.tensor([0, 1, 1])), "joins node 0 of graph 0 with node 1 of"),
        (lambda g: GraphSet.of([g, g], [1]), "2 graphs but 1 labels"),
        (lambda g: GraphSet.of([g, g], np.eye(2)), r"list of class ids, not of shape \(2, 2"),
        (lambda g: GraphSet.of([{}]), "not a dict; read other kinds with undrift.as_graph_set"),
        (lambda g: GraphSet.of([]), "the list of graphs is empty"),
        (lambda g: GraphSet.of([g, Graph.from_arrays(np.eye(2), [])]), "graph 1 has 2 features"),
        (lambda g: Pooling(hops=-1), "hops >= 0"),
    ],
)
def test_what_is_wrong_is_one_sentence(make: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        make(Graph.from_arrays(np.eye(3), [[0], [1]]))


def test_sparse_features_give_the_rows_of_dense_ones() -> None:
    dense = some_graphs(5)
    sparse = sp.csr_matrix(dense.graph.features.to_dense().numpy())
    graph = Graph.from_scipy(sparse, dense.graph.adjacency.to_scipy())
    rows = GraphSet(graph, dense.index).pooled().features
    assert torch.equal(rows.to_dense(), dense.pooled().features.to_dense())
