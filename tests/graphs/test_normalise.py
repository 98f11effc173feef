import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.graphs import random_graph
from tests.harness.references import dense_operator
from undrift.graphs import NORMALISATIONS, Graph, Normalisation, normalise
from undrift.graphs.normalise import Operators
from undrift.sparse import Csr
from undrift.testing.graphs import tiny_graph


def random_adjacency(seed: int, nodes: int, directed: bool, weighted: bool) -> Csr:
    return random_graph(seed, nodes, directed=directed, weighted=weighted).adjacency.double()


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
    assert flags == {"symmetric": not directed, "row": False, "sum": not directed}


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("kind", NORMALISATIONS)
def test_rows_of_an_operator_are_its_rows(kind: Normalisation, self_loops: bool) -> None:
    nodes = torch.tensor([7, 3, 41, 3])
    for graph in (tiny_graph(), Graph.from_arrays(torch.eye(50), [[0, 1, 7], [3, 3, 41]])):
        made_for_them = graph.operator.rows(nodes, kind, self_loops=self_loops)
        whole = graph.operator(kind, self_loops=self_loops)
        assert torch.equal(made_for_them.to_dense(), whole.to_dense()[nodes])


@pytest.mark.parametrize("kind", NORMALISATIONS)
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_times_is_the_product_with_the_operator(kind, self_loops, directed) -> None:
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
