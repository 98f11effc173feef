"""The samplers against brute force over the whole class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.parts import exemplars
from undrift.learners.parts.exemplars import SAMPLERS, conflicts, distance_to_mean, select
from undrift.sparse import Csr
from undrift.testing.graphs import tiny_graph


def chosen(graph: Graph, train: Tensor, sampler: str, **options: Any) -> dict[int, list[int]]:
    """The selected nodes by class."""
    settings: dict[str, Any] = {"budget": 4, "distance": 4.0, "seed": 0, **options}
    generator = torch.Generator().manual_seed(settings.pop("seed"))
    assert graph.labels is not None
    classes = tuple(sorted(set(graph.labels.tolist())))
    nodes = select(
        graph,
        train,
        classes,
        sampler=sampler,  # type: ignore[arg-type]
        generator=generator,
        **settings,
    ).tolist()
    return {c: [i for i in nodes if int(graph.labels[i]) == c] for c in classes}


def dense(graph: Graph) -> np.ndarray:
    features = graph.features
    return (features.to_dense() if isinstance(features, Csr) else features).double().numpy()


def members(graph: Graph, train: Tensor, c: int) -> list[int]:
    assert graph.labels is not None
    return [i for i in train.tolist() if int(graph.labels[i]) == c]


TRAIN = torch.tensor([i for i in range(60) if i % 5])


@pytest.mark.parametrize("sparse", [False, True])
def test_mf_takes_the_nearest_to_the_class_mean(sparse: bool) -> None:
    graph = tiny_graph(sparse=sparse)
    x = dense(graph)
    for c, nodes in chosen(graph, TRAIN, "mf").items():
        mine = members(graph, TRAIN, c)
        mean = sum(x[i] for i in mine) / len(mine)
        nearest = sorted(mine, key=lambda i: float(np.linalg.norm(x[i] - mean)))
        assert nodes == nearest[:4]


@pytest.mark.parametrize("sparse", [False, True])
def test_cm_takes_those_with_fewest_other_class_nodes_around(sparse: bool) -> None:
    graph = tiny_graph(sparse=sparse)
    x = dense(graph)

    def around(i: int, c: int) -> int:
        others = [j for j in TRAIN.tolist() if j not in members(graph, TRAIN, c)]
        return sum(float(np.linalg.norm(x[i] - x[j])) < 4.0 for j in others)

    ranks = []
    for c, nodes in chosen(graph, TRAIN, "cm").items():
        counts = sorted(around(i, c) for i in members(graph, TRAIN, c))
        assert [around(i, c) for i in nodes] == counts[:4]
        ranks += counts
    assert len(set(ranks)) > 3, "the graph must not make every node alike"


@pytest.mark.parametrize("pairs", [1, 50, 333])
@pytest.mark.parametrize("sparse", [False, True])
def test_chunks_do_not_change_the_counts(
    monkeypatch: pytest.MonkeyPatch, pairs: int, sparse: bool
) -> None:
    features = tiny_graph(sparse=sparse).features
    mine = torch.arange(25)
    a, b = (
        features.select(rows) if isinstance(features, Csr) else features[rows]
        for rows in (mine, torch.arange(25, 60))
    )
    whole = conflicts(a, b, 3.0)
    monkeypatch.setattr(exemplars, "_PAIRS", pairs)
    assert torch.equal(conflicts(a, b, 3.0), whole)
    assert 0 < int(whole.max()) < 35


def test_cm_ranks_the_whole_of_a_large_class() -> None:
    """2,000 nodes sit on the other class; the five that do not are found wherever they are."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2100, 3)) * 0.1
    free = [3, 700, 1200, 1500, 1999]
    x[free] += 50.0
    labels = np.repeat([0, 1], [2000, 100])
    graph = Graph.from_arrays(x, np.zeros((2, 0), dtype=int), labels)
    found = chosen(graph, torch.arange(2100), "cm", budget=5, distance=1.0)[0]
    assert sorted(found) == free


def test_ties_fall_at_random_and_not_by_index() -> None:
    graph = tiny_graph()
    first, second = (chosen(graph, TRAIN, "cm", distance=1e-3, seed=s) for s in (1, 2))
    assert first != second
    assert first == chosen(graph, TRAIN, "cm", distance=1e-3, seed=1)


def test_random_depends_on_the_seed_only() -> None:
    graph = tiny_graph()
    draws = [chosen(graph, TRAIN, "random", seed=s) for s in range(20)]
    assert draws[0] == chosen(graph, TRAIN, "random", seed=0)
    everyone = {i for draw in draws for i in draw[0]}
    assert everyone == set(members(graph, TRAIN, 0)), "every node must have its chance"


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_only_training_nodes_within_the_budget(sampler: str) -> None:
    graph = tiny_graph()
    for budget in (1, 3, 100):
        for c, nodes in chosen(graph, TRAIN, sampler, budget=budget).items():
            mine = members(graph, TRAIN, c)
            assert set(nodes) <= set(mine)
            assert len(nodes) == len(set(nodes)) == min(budget, len(mine))


def test_a_single_class_has_no_conflicts() -> None:
    x = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    assert conflicts(x, x[:0], 5.0).tolist() == [0] * 6


def test_sparse_and_dense_rows_are_equally_far_from_their_mean() -> None:
    features = tiny_graph(sparse=True).features
    assert isinstance(features, Csr)
    assert torch.allclose(distance_to_mean(features), distance_to_mean(features.to_dense()))


def test_an_unknown_sampler_lists_the_names() -> None:
    with pytest.raises(InputError, match="cm, mf, random"):
        chosen(tiny_graph(), TRAIN, "mean")
