"""The border with PyTorch Geometric, and its word on what a GCN propagates."""

import sys
import warnings

import pytest
import torch

from tests.harness.graphs import random_graph
from undrift import Graph, InputError
from undrift.sparse import Csr

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its own import is not free of warnings
    pytest.importorskip("torch_geometric", reason="install it with: pip install 'undrift[pyg]'")
    from torch_geometric.data import Data
    from torch_geometric.nn import GCNConv


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_there_and_back(sparse, weighted):
    graph = random_graph(0, sparse=sparse, weighted=weighted, directed=weighted)
    data = graph.to_pyg()
    data.validate()
    assert (data.edge_weight is not None) is weighted
    assert (data.x.layout == torch.sparse_csr) is sparse
    back = Graph.from_pyg(data)
    assert torch.equal(back.adjacency.to_dense(), graph.adjacency.to_dense())
    assert torch.equal(back.features.to_dense(), graph.features.to_dense())
    assert isinstance(back.features, Csr) is sparse
    assert torch.equal(back.labels, graph.labels)
    assert back.adjacency.symmetric is not weighted


def test_masks_are_kept_there_and_back():
    data = random_graph(0).to_pyg()
    assert Graph.from_pyg(data).masks == {}
    data.train_mask = torch.arange(12) < 5
    data.test_mask = torch.arange(24).reshape(12, 2) > 9  # several splits, a column each
    graph = Graph.from_pyg(data)
    assert list(graph.masks) == ["train", "test"]
    back = graph.to_pyg()
    assert torch.equal(back.train_mask, data.train_mask)
    assert torch.equal(back.test_mask, data.test_mask)
    part = graph.subgraph([4, 5])
    assert part.masks["train"].tolist() == [True, False]
    assert part.masks["test"].shape == (2, 2)


def test_duplicates_count_once_without_weights_and_add_up_with_them():
    edges = torch.tensor([[0, 0, 1], [1, 1, 1]])
    once = Graph.from_pyg(Data(x=torch.eye(2), edge_index=edges))
    assert once.adjacency.to_dense().tolist() == [[0, 0], [1, 0]]
    weight = torch.tensor([0.5, 0.25, 9.0])
    summed = Graph.from_pyg(Data(x=torch.eye(2), edge_index=edges, edge_weight=weight))
    assert summed.adjacency.to_dense().tolist() == [[0, 0], [0.75, 0]]
    twice = torch.tensor([[0.0, 0.0], [2.0, 0.0]]).to_sparse()  # values of adj_t are weights
    assert Graph.from_pyg(Data(x=torch.eye(2), adj_t=twice)).adjacency.values.tolist() == [2]
    with pytest.warns(UserWarning, match="1 edge weights are below 0, so neighbours are subtr"):
        Graph.from_pyg(weighted(1, -1.0))


def masked(mask):
    return Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]), train_mask=mask)


def weighted(target, *weights):
    edge = torch.tensor([[0], [target]])
    return Data(x=torch.eye(2), edge_index=edge, edge_weight=torch.tensor(weights))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Data(edge_index=torch.tensor([[0], [1]])), "no node features `x`; set data.x first"),
        (Data(x=torch.eye(2)), "no edges `edge_index`; set data.edge_index first"),
        (weighted(1, 1.0, 1.0), r"edge_weight must be 1 numbers, one per edge, not of shape \(2,"),
        (masked(torch.tensor([0])), r"give torch\.isin\(torch\.arange\(2\), indices\)"),
        (masked(torch.tensor([0, 1], dtype=torch.uint8)), r"give mask\.bool\(\)"),
        (masked(torch.tensor([True])), "give an entry for each node"),
        (weighted(1, torch.nan), "edge weights contain NaN or infinity"),
    ],
)
def test_incomplete_or_wrong_data_is_refused(data, message):
    with pytest.raises(InputError, match=message):
        Graph.from_pyg(data)


def test_without_pyg_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_geometric.data", None)
    with pytest.raises(InputError, match=r"install it with: pip install 'undrift\[pyg\]'"):
        random_graph(1).to_pyg()


@pytest.mark.parametrize("weighted", [False, True])
def test_a_gcn_layer_comes_out_the_same(weighted):
    graph = random_graph(3, nodes=40, weighted=weighted)
    data = graph.to_pyg()
    layer = GCNConv(4, 4, bias=False)
    with torch.no_grad():
        weight = torch.randn(4, 4, generator=torch.Generator().manual_seed(1))
        layer.lin.weight.copy_(weight.T)
        expected = layer(data.x, data.edge_index, data.edge_weight)
    torch.testing.assert_close(
        graph.operator() @ (graph.features @ weight), expected, rtol=1e-5, atol=1e-6
    )
