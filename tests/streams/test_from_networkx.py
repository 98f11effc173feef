from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

from undrift import Graph, InputError, graph_from_networkx


def people(kind: Any = nx.Graph) -> Any:
    g = kind()
    g.add_node("ann", x=torch.tensor([1.0, 2.0]), age=30, label="db")
    g.add_node("bob", x=np.array([3, 4]), age=40.5, label="ai")
    g.add_node("cid", x=[5.0, 6.0], age=50)
    g.add_edge("cid", "ann", w=2)
    g.add_edge("bob", "ann")
    return g


def weights(graph: Graph) -> Any:
    return graph.adjacency.to_scipy().toarray().tolist()


def test_attributes_may_hold_a_number_each() -> None:
    g = people()
    graph = graph_from_networkx(g, features=["age"], label=None)
    assert graph.features.tolist() == [[30], [40.5], [50]]  # type: ignore[union-attr]
    assert graph.labels is None
    assert torch.equal(graph_from_networkx(g, features="age").features, graph.features)  # type: ignore[arg-type]


def test_edges_go_from_source_to_target_with_weights_where_asked_for() -> None:
    directed = people(nx.DiGraph)
    assert weights(graph_from_networkx(directed)) == [[0, 1, 1], [0, 0, 0], [0, 0, 0]]
    assert weights(graph_from_networkx(directed, weight="w")) == [[0, 1, 2], [0, 0, 0], [0, 0, 0]]
    assert weights(graph_from_networkx(people(), weight="w")) == [[0, 1, 2], [1, 0, 0], [2, 0, 0]]


def test_parallel_edges_count_once_or_add_up_and_loops_are_left_out() -> None:
    g = people(nx.MultiGraph)
    g.add_edge("ann", "cid", w=3)
    g.add_edge("bob", "bob", w=9)
    assert weights(graph_from_networkx(g)) == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert weights(graph_from_networkx(g, weight="w")) == [[0, 1, 5], [1, 0, 0], [5, 0, 0]]


@pytest.mark.parametrize(
    ("change", "named", "what"),
    [
        ({}, {"features": "y"}, "3 of the 3 nodes have no attribute 'y'.*, as in undrift.graph_"),
        ({"x": [1.0]}, {}, "attribute 'x' of node 'bob' is .1.0.; a feature must be"),
        ({"x": [1.0, float("nan")]}, {}, "attribute 'x' of node 'bob' is"),
        ({}, {"features": []}, "features names no node attribute"),
    ],
)
def test_bad_features_are_one_sentence(change, named, what) -> None:
    g = people()
    g.nodes["bob"].update(change)
    with pytest.raises(InputError, match=what) as caught:
        graph_from_networkx(g, **named)
    assert "\n" not in str(caught.value)


def test_other_bad_input_is_one_sentence() -> None:
    with pytest.raises(InputError, match="needs a NetworkX graph, not a dict"):
        graph_from_networkx({})
    with pytest.raises(InputError, match="has no nodes"):
        graph_from_networkx(nx.Graph())
    g = people()
    g.edges["cid", "ann"]["w"] = "heavy"
    with pytest.raises(InputError, match=r"the edge from .* has w='heavy'"):
        graph_from_networkx(g, weight="w")
    g.nodes["ann"]["label"], g.nodes["bob"]["label"] = 0.5, 1
    with pytest.raises(InputError, match=r"node attribute 'label' holds '0.5'"):
        graph_from_networkx(g)
