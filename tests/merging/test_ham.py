"""HAM: the joint solution by plain inversion."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.references import merged_layer
from undrift.encoders.architecture import KINDS, Architecture
from undrift.encoders.encoder import Encoder
from undrift.graphs import Graph
from undrift.merging.ham import Ham
from undrift.merging.merger import MergeSettings
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
def test_merged_layers_equal_the_joint_solution(kind, seed, tasks, sparse, gamma) -> None:
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
