"""HAM and RegMean: the joint solution by plain inversion, and the same from running sums."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.harness.references import merged_layer
from undrift.encoders.architecture import KINDS, Architecture
from undrift.encoders.encoder import Encoder
from undrift.evaluation.drift import relative_drift
from undrift.graphs import Graph
from undrift.merging.ham import Ham
from undrift.merging.merger import MergeSettings
from undrift.merging.regmean import RegMean
from undrift.sparse import Csr
from undrift.testing.graphs import tiny_graph


def encoders(kind: str, graphs: list[Graph], hidden: tuple[int, ...]) -> list[Encoder]:
    architecture = Architecture(kind=kind, hidden=hidden)  # type: ignore[arg-type]
    noises = [torch.Generator().manual_seed(seed) for seed in range(len(graphs))]
    pairs = zip(graphs, noises, strict=True)
    return [Encoder.create(architecture, g.num_features, noise).double() for g, noise in pairs]


def dense(rows: torch.Tensor | Csr) -> torch.Tensor:
    return rows.to_dense() if isinstance(rows, Csr) else rows


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 100),
    tasks=st.integers(1, 4),
    sparse=st.booleans(),
    gamma=st.sampled_from([1e-3, 1.0]),
)
def test_merged_layers_equal_the_joint_solution(
    kind: str, seed: int, tasks: int, sparse: bool, gamma: float
) -> None:
    graphs = [tiny_graph(seed + i, sparse=sparse) for i in range(tasks)]
    models = encoders(kind, graphs, (7, 5))
    nodes = torch.arange(0, 60, 2)
    traces = [m.trace(g, nodes) for m, g in zip(models, graphs, strict=True)]
    ham = Ham.empty(models[0], MergeSettings(gamma))
    for trace, model in zip(traces, models, strict=True):
        ham = ham.add(trace, model.weights)
    for k, merged in enumerate(ham.merge()):
        slow = merged_layer(
            [dense(trace[k]) for trace in traces], [m.weights[k] for m in models], gamma
        )
        assert float((merged - slow).norm() / slow.norm()) < 1e-9


def test_no_drift_while_the_stacked_inputs_have_full_row_rank() -> None:
    graphs = [tiny_graph(i, nodes=24, features=120, classes=2) for i in (10, 11, 12)]
    models = encoders("gcn", graphs, (100, 90))
    nodes = torch.arange(24)
    traces = [m.trace(g, nodes) for m, g in zip(models, graphs, strict=True)]
    for k in range(2):
        stacked = torch.cat([dense(trace[k]) for trace in traces])
        assert int(torch.linalg.matrix_rank(stacked)) == stacked.shape[0]
    ham = Ham.empty(models[0], MergeSettings(1e-10))
    for trace, model in zip(traces, models, strict=True):
        ham = ham.add(trace, model.weights)
    unified = models[0].with_weights(ham.merge())
    for graph, model in zip(graphs, models, strict=True):
        assert relative_drift(model.embed(graph), unified.embed(graph)) < 1e-6


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
