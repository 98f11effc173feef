"""HAM: equals the joint solution of eq. 6, and is without drift exactly where it can be."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.references import merged_layer
from undrift.encoders.architecture import KINDS, Architecture
from undrift.encoders.encoder import Encoder
from undrift.errors import InputError
from undrift.evaluation.drift import relative_drift
from undrift.graphs import Graph
from undrift.merging.ham import Ham
from undrift.merging.merger import MergeSettings
from undrift.sparse import Csr
from undrift.testing.graphs import tiny_graph


def encoders(kind: str, graphs: list[Graph], hidden: tuple[int, ...]) -> list[Encoder]:
    architecture = Architecture(kind=kind, hidden=hidden)  # type: ignore[arg-type]
    single = [
        Encoder.create(architecture, g.num_features, torch.Generator().manual_seed(s))
        for s, g in enumerate(graphs)
    ]
    return [Encoder(architecture, tuple(w.double() for w in e.weights)) for e in single]


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


def test_row_weights_count_a_node_as_often_as_they_say() -> None:
    graph = tiny_graph()
    model = encoders("gcn", [graph], (6, 5))[0]
    nodes = torch.arange(20)
    often = torch.arange(20) % 3
    weighted = Ham.empty(model, MergeSettings(0.5)).add(
        model.trace(graph, nodes), model.weights, often.double()
    )
    repeated = torch.repeat_interleave(nodes, often)
    plain = Ham.empty(model, MergeSettings(0.5)).add(model.trace(graph, repeated), model.weights)
    for one, other in zip(weighted.merge(), plain.merge(), strict=True):
        assert torch.allclose(one, other, rtol=1e-9, atol=1e-12)


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
    merged = ham.merge()
    for trace, model in zip(traces, models, strict=True):
        for k in range(2):
            wanted = dense(trace[k]) @ model.weights[k]
            assert relative_drift(wanted, dense(trace[k]) @ merged[k]) < 1e-6
    unified = models[0].with_weights(merged)
    for graph, model in zip(graphs, models, strict=True):
        assert relative_drift(model.embed(graph), unified.embed(graph)) < 1e-6


def test_layers_must_match() -> None:
    graph = tiny_graph()
    model = encoders("gcn", [graph], (6, 6))[0]
    with pytest.raises(InputError, match="2 layers"):
        Ham.empty(model, MergeSettings(1.0)).add((torch.ones(3, 12),), model.weights[:1])
