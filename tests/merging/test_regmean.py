"""RegMean: the closed form by plain inversion, and the same from running sums of rows."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from undrift.encoders.architecture import Architecture
from undrift.encoders.encoder import Encoder
from undrift.errors import InputError
from undrift.merging.ham import Ham
from undrift.merging.merger import MergeSettings
from undrift.merging.regmean import RegMean
from undrift.sparse import Csr
from undrift.testing.graphs import tiny_graph


def slow_regmean(grams: list[Tensor], weights: list[Tensor], off_diagonal: float) -> Tensor:
    """Entry by entry shrinkage, then an explicit inverse; an unused input gets a mean."""
    d = grams[0].shape[0]
    used = sum(grams).diagonal() > 1e-8  # type: ignore[union-attr]
    gram, moment = torch.zeros(d, d).double(), torch.zeros_like(weights[0]).double()
    for g, w in zip(grams, weights, strict=True):
        shrunk = g.clone()
        for i in range(d):
            for j in range(d):
                if i != j:
                    shrunk[i, j] *= off_diagonal
        gram += shrunk
        moment += shrunk @ w
    sizes = [float(g.diagonal().mean()) for g in grams]
    merged = torch.zeros_like(moment)
    for size, w in zip(sizes, weights, strict=True):
        merged += size / sum(sizes) * w
    merged[used] = torch.linalg.inv(gram[used][:, used]) @ moment[used]
    return merged


def dense(rows: Tensor | Csr) -> Tensor:
    return rows.to_dense() if isinstance(rows, Csr) else rows


def mean_gram(rows: Tensor | Csr) -> Tensor:
    x = dense(rows).double()
    total = torch.zeros(x.shape[1], x.shape[1]).double()
    for row in x:
        total += torch.outer(row, row)
    return total / x.shape[0]


def trained(seed: int, sparse: bool, nodes: int) -> tuple[tuple[Any, ...], tuple[Tensor, ...]]:
    graph = tiny_graph(seed, sparse=sparse)
    noise = torch.Generator().manual_seed(seed)
    encoder = Encoder.create(Architecture(hidden=(7, 5)), graph.num_features, noise)
    return encoder.trace(graph, torch.arange(nodes)), encoder.weights


@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 50),
    tasks=st.integers(1, 4),
    sparse=st.booleans(),
    off_diagonal=st.sampled_from([0.0, 0.1, 0.9]),
)
def test_running_sums_equal_the_whole_history(
    seed: int, tasks: int, sparse: bool, off_diagonal: float
) -> None:
    steps = [trained(seed + i, sparse, 30 + 10 * i) for i in range(tasks)]
    memory = RegMean(off_diagonal=off_diagonal)
    for trace, weights in steps:
        memory = memory.add(trace, weights)
    for k, fast in enumerate(memory.merge()):
        grams = [mean_gram(trace[k]) for trace, _ in steps]
        slow = slow_regmean(grams, [w[k].double() for _, w in steps], off_diagonal)
        assert float((fast - slow).norm() / slow.norm()) < 1e-5


def test_without_shrinkage_and_with_equal_tasks_it_is_ham() -> None:
    steps = [trained(i, False, 60) for i in range(3)]
    memory = RegMean(off_diagonal=1.0)
    graph = tiny_graph(0)
    shape = Encoder.create(Architecture(hidden=(7, 5)), graph.num_features, torch.Generator())
    ham = Ham.empty(shape, MergeSettings(1e-7))
    for trace, weights in steps:
        memory, ham = memory.add(trace, weights), ham.add(trace, weights)
    for k, (one, other) in enumerate(zip(memory.merge(), ham.merge(), strict=True)):
        hats = torch.cat([dense(trace[k]) for trace, _ in steps]).double()
        assert float((hats @ (one - other)).norm() / (hats @ other).norm()) < 1e-5


def test_an_input_that_no_task_used_gets_a_mean() -> None:
    rows = torch.tensor([[1.0, 0.0], [2.0, 0.0]])
    weights = [torch.tensor([[v], [v]]) for v in (1.0, 3.0)]
    memory = RegMean().add((rows,), (weights[0],)).add((3 * rows,), (weights[1],))
    merged = memory.merge()[0].flatten()
    assert merged.tolist() == pytest.approx([(2.5 * 1 + 22.5 * 3) / 25] * 2, abs=1e-6)


def test_bad_input_is_refused() -> None:
    for share in (1.1, -0.1):
        with pytest.raises(InputError, match=f"from 0 to 1, not {share}"):
            RegMean(off_diagonal=share)
