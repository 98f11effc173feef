"""RegMean: the joint solution by plain inversion, and the same from running sums."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from paper.merging.regmean import RegMean
from tests.merging.test_ham import dense, encoders
from undrift.sparse import Csr
from undrift.testing.graphs import tiny_graph


def slow_regmean(grams: list[Tensor], weights: list[Tensor]) -> Tensor:
    """Shrinkage, then an explicit inverse; an unused input gets a mean."""
    used = torch.stack(grams).sum(dim=0).diagonal() > 1e-8
    shrunk = [0.9 * g + 0.1 * g.diagonal().diag() for g in grams]
    gram = torch.stack(shrunk).sum(dim=0)
    moment = torch.stack([g @ w for g, w in zip(shrunk, weights, strict=True)]).sum(dim=0)
    sizes = torch.tensor([float(g.diagonal().mean()) for g in grams]).double()
    merged = torch.einsum("t,tij->ij", sizes / sizes.sum(), torch.stack(weights))
    merged[used] = torch.linalg.inv(gram[used][:, used]) @ moment[used]
    return merged


def mean_gram(rows: Tensor | Csr) -> Tensor:
    x = dense(rows).double()
    return x.T @ x / x.shape[0]


@settings(max_examples=10, deadline=None, derandomize=True)
@given(seed=st.integers(0, 50), tasks=st.integers(1, 4), sparse=st.booleans())
def test_running_sums_equal_the_whole_history(seed: int, tasks: int, sparse: bool) -> None:
    graphs = [tiny_graph(seed + i, sparse=sparse) for i in range(tasks)]
    pairs = enumerate(zip(encoders("gcn", graphs, (7, 5)), graphs, strict=True))
    steps = [(e.trace(g, torch.arange(30 + 10 * i)), e.weights) for i, (e, g) in pairs]
    memory = RegMean()
    for trace, weights in steps:
        memory = memory.add(trace, weights)
    for k, fast in enumerate(memory.merge()):
        grams = [mean_gram(trace[k]) for trace, _ in steps]
        slow = slow_regmean(grams, [w[k] for _, w in steps])
        assert float((fast - slow).norm() / slow.norm()) < 1e-5


def test_an_input_that_no_task_used_gets_a_mean() -> None:
    rows = torch.tensor([[1.0, 0.0], [2.0, 0.0]])
    weights = [torch.tensor([[v], [v]]) for v in (1.0, 3.0)]
    memory = RegMean().add((rows,), (weights[0],)).add((3 * rows,), (weights[1],))
    merged = memory.merge()[0].flatten()
    assert merged.tolist() == pytest.approx([(2.5 * 1 + 22.5 * 3) / 25] * 2, abs=1e-6)
