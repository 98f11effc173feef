import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.references import dense_operator
from undrift.graphs import NORMALISATIONS, Graph, Normalisation, normalise
from undrift.graphs.normalise import Operators
from undrift.sparse import Csr
from undrift.testing.graphs import tiny_graph


def random_adjacency(
    seed: int, nodes: int, directed: bool, weighted: bool, dtype: torch.dtype = torch.float64
) -> Csr:
    """Node 0 has no edge; in a directed graph node 1 only sends."""
    rng = np.random.default_rng(seed)
    weights = (rng.random((nodes, nodes)) < 0.4).astype(np.float64)
    if weighted:
        weights *= rng.uniform(0.1, 3.0, size=weights.shape)
    if not directed:
        weights = np.maximum(weights, weights.T)
    np.fill_diagonal(weights, 0.0)
    weights[:1] = 0.0
    weights[:, :1] = 0.0
    if directed:
        weights[1:2] = 0.0
    return Csr.from_scipy(sp.csr_matrix(weights), dtype=dtype, symmetric=not directed)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.integers(0, 10**6),
    st.integers(0, 8),
    st.booleans(),
    st.booleans(),
    st.sampled_from(NORMALISATIONS),
    st.booleans(),
)
def test_operators_equal_their_dense_twins(seed, nodes, directed, weighted, kind, self_loops):
    adjacency = random_adjacency(seed, nodes, directed, weighted)
    operator = normalise(adjacency, kind, self_loops=self_loops)
    twin = dense_operator(adjacency.to_dense(), kind, self_loops=self_loops)
    torch.testing.assert_close(operator.to_dense(), twin, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("directed", [False, True])
def test_only_a_symmetric_operator_is_flagged_so(directed):
    adjacency = random_adjacency(1, 7, directed, weighted=True)
    made = {kind: normalise(adjacency, kind) for kind in NORMALISATIONS}
    for operator in made.values():  # a wrong flag would hand out the matrix itself
        torch.testing.assert_close(operator.t().to_dense(), operator.to_dense().T)
    flags = {kind: operator.symmetric for kind, operator in made.items()}
    assert flags == {
        "symmetric": not directed,
        "row": False,
        "sum": not directed,
    }


@pytest.mark.parametrize("kind", NORMALISATIONS)
def test_a_node_without_neighbours_aggregates_to_zero_or_to_itself(kind):
    adjacency = random_adjacency(3, 6, directed=True, weighted=False)
    h = torch.full((6, 2), 5.0, dtype=torch.float64)
    assert (normalise(adjacency, kind, self_loops=False) @ h)[0].tolist() == [0.0, 0.0]
    assert (normalise(adjacency, kind, self_loops=True) @ h)[0].tolist() == [5.0, 5.0]
    for self_loops in (False, True):
        assert torch.isfinite(normalise(adjacency, kind, self_loops=self_loops).values).all()


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("kind", NORMALISATIONS)
def test_rows_of_an_operator_are_its_rows(kind: Normalisation, self_loops: bool) -> None:
    nodes = torch.tensor([7, 3, 41, 3])
    for graph in (tiny_graph(), Graph.from_arrays(torch.eye(50), [[0, 1, 7], [3, 3, 41]])):
        made_for_them = graph.operator.rows(nodes, kind, self_loops=self_loops)
        whole = graph.operator(kind, self_loops=self_loops)
        assert torch.equal(made_for_them.to_dense(), whole.to_dense()[nodes])
        cut = graph.operator.rows(nodes, kind, self_loops=self_loops)
        assert torch.equal(cut.to_dense(), whole.to_dense()[nodes])


@pytest.mark.parametrize("kind", NORMALISATIONS)
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_times_is_the_product_with_the_operator(
    kind: Normalisation, self_loops: bool, directed: bool
) -> None:
    adjacency = random_adjacency(4, 11, directed, weighted=True)
    dense = torch.from_numpy(np.random.default_rng(0).standard_normal((11, 3)))
    nodes = torch.tensor([9, 0, 4])
    wanted = normalise(adjacency, kind, self_loops=self_loops).to_dense() @ dense
    operators = Operators(adjacency)
    for _ in range(2):  # without the operator, and with it
        found = operators.times(dense, kind=kind, self_loops=self_loops)
        some = operators.times(dense, nodes, kind, self_loops=self_loops)
        assert torch.allclose(found, wanted, rtol=1e-13, atol=1e-14)
        assert torch.allclose(some, wanted[nodes], rtol=1e-13, atol=1e-14)
        operators(kind, self_loops=self_loops)


def test_weights_that_add_up_to_nothing_aggregate_to_nothing() -> None:
    matrix = sp.csr_matrix(np.array([[0, 1, -1], [2, 0, 0], [0, 0, 0]], dtype=np.float32))
    for kind in ("row", "symmetric"):
        found = normalise(Csr.from_scipy(matrix), kind, self_loops=False).to_dense()
        assert found.tolist() == [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
