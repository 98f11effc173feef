"""`LinkSet`: what a row of a link is, that a link is learned as a node is, and erasing of nodes."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.references import link_row
from undrift import (
    Graph,
    InputError,
    LinkSet,
    Propagation,
    TaskStream,
    as_graph,
    as_graph_set,
    evaluate,
    load,
    make_learner,
)


def some_links(count=96, *, undirected=False, hops=2, degrees=False, seed=0) -> LinkSet:
    """Class 2 a + b of a link from a node of kind a to one of kind b; some edges are no links."""
    rng = np.random.default_rng(seed)
    kind = np.arange(40) % 2
    features = np.column_stack([np.eye(2)[kind], rng.normal(size=(40, 3))])
    ends = rng.integers(0, 40, (2, count))
    edges = np.hstack([ends, rng.integers(0, 40, (2, 30))])
    graph = Graph.from_arrays(features, edges, undirected=undirected)
    return LinkSet(graph, ends, 2 * kind[ends[0]] + kind[ends[1]], hops, degrees)


def sparsely(links: LinkSet) -> LinkSet:
    """The same with sparse features."""
    features = sp.csr_matrix(links.graph.features.to_dense().numpy())
    graph = Graph.from_scipy(features, links.graph.adjacency.to_scipy())
    return LinkSet(graph, links.ends, links.labels, links.hops, links.degrees)


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool((a - b).abs().max() <= 1e-9 * b.abs().max())


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize(("hops", "degrees"), [(0, True), (1, False), (2, True)])
def test_a_row_is_that_of_the_slow_twin(undirected: bool, hops: int, degrees: bool) -> None:
    links = some_links(20, undirected=undirected, hops=hops, degrees=degrees)
    pooled = links.pooled()
    assert (pooled.num_nodes, pooled.num_edges) == (20, 0)
    assert pooled.num_features == 3 * (hops + 1) * (5 + 24 * degrees)
    dense = links.graph.adjacency.to_dense().double(), links.graph.features.to_dense()
    for i, (sender, receiver) in enumerate(links.ends.T.tolist()):
        wanted = link_row(*dense, sender, receiver, hops, degrees)
        assert torch.allclose(pooled.features.to_dense()[i].double(), wanted, atol=1e-6)
    sparse = sparsely(links).rows()
    assert not isinstance(sparse, torch.Tensor)
    assert torch.allclose(sparse.to_dense(), pooled.features.to_dense(), atol=1e-7)


def test_direction_counts_and_a_part_keeps_its_rows() -> None:
    links = some_links()
    back = LinkSet(links.graph, links.ends.flip(0), links.labels)
    rows = links.rows().to_dense()
    assert not torch.equal(back.rows().to_dense(), rows)
    part = links.subset([7, 3])
    assert torch.equal(part.rows().to_dense(), rows[[3, 7]])
    assert part.labels.tolist() == links.labels[[3, 7]].tolist()
    assert repr(part) == "LinkSet(2 links of 40 nodes, 5 features, 2 classes)"
    assert repr(part.labelled(None)).endswith("no labels)")


def test_weights_below_zero_and_of_both_directions_add_up() -> None:
    adjacency = sp.csr_matrix(np.array([[0, 3.0, -1.0], [2.0, 0, 0], [0, 0.5, 0]]))
    graph = Graph.from_scipy(np.eye(3), adjacency)
    links = LinkSet(graph, [[0, 2], [1, 1]], hops=1)
    for i, ends in enumerate(links.ends.T.tolist()):
        wanted = link_row(torch.tensor(adjacency.toarray()), torch.eye(3), *ends, 1, False)
        assert torch.allclose(links.rows().to_dense()[i].double(), wanted, atol=1e-6)


@settings(max_examples=6, deadline=None)
@given(st.permutations(range(4)), st.integers(0, 99))
def test_any_order_forgetting_revising_and_merging_equals_pooled_training(order, seed) -> None:
    many = some_links()
    first, rest = many.subset(range(24)), torch.arange(24, 96)
    parts = rest[torch.randperm(72, generator=torch.Generator().manual_seed(seed))].chunk(4)
    batches = [many.subset(part) for part in parts]
    learner = Propagation().observe(first)
    other, pinned = learner.sibling(), Propagation(plan=learner.plan_)
    for place, i in enumerate(order):
        (learner if place % 2 else other).observe(batches[i])
    learner.merge(other)
    gone, corrected, thinned = (batches[i] for i in order[:3])
    learner.forget(gone).forget(thinned, [0, 2])
    learner.revise(corrected, right := corrected.labelled((corrected.labels + 1) % 4))  # type: ignore[operator]
    left = thinned.subset(torch.arange(len(thinned))[[1, *range(3, len(thinned))]])
    alone = pinned.clone()
    for batch in (batches[order[3]], left, right, first):
        alone.observe(batch)
    columns = [learner.classes_.index(c) for c in alone.classes_]
    assert close(learner.scores(many)[:, columns], alone.scores(many))
    ends, labels = (
        [getattr(each, name) for each in (batches[order[3]], left, right, first)]
        for name in ("ends", "labels")
    )
    at_once = pinned.clone().observe(LinkSet(many.graph, torch.hstack(ends), torch.hstack(labels)))
    columns = [learner.classes_.index(c) for c in at_once.classes_]
    assert close(learner.scores(many)[:, columns], at_once.scores(many))


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.integers(0, 39), max_size=3, unique=True),
    st.lists(st.integers(0, 95), max_size=3, unique=True),
    st.booleans(),
    st.booleans(),
)
def test_erasing_nodes_and_links_equals_never_having_had_them(nodes, chosen, undirected, degrees):
    links = some_links(undirected=undirected, degrees=degrees)
    learner = Propagation().observe(links)
    never = Propagation(plan=learner.plan_)
    left = links.without(nodes, chosen)
    learner.revise(links, left)

    # the smaller graph, built from the start: no such nodes, no such edges
    kept = [i for i in range(40) if i not in nodes]
    pairs = {tuple(pair) for pair in links.ends.T[chosen].tolist()}
    if undirected:
        pairs |= {(receiver, sender) for sender, receiver in pairs}
    every = links.graph.adjacency.to_scipy().tocoo()
    edges = [pair for pair in zip(every.col, every.row, strict=True) if pair not in pairs]
    edges = [(kept.index(s), kept.index(r)) for s, r in edges if s in kept and r in kept]
    features = links.graph.features.to_dense()[kept]
    graph = Graph.from_arrays(features, np.array(edges).T, undirected=undirected)
    rest = [i for i, pair in enumerate(links.ends.T.tolist()) if set(pair) <= set(kept)]
    rest = [i for i in rest if i not in chosen]
    ends = [[kept.index(node) for node in row] for row in links.ends[:, rest].tolist()]
    small = LinkSet(graph, ends, links.labels[rest], degrees=degrees)

    never.observe(small)
    assert close(learner.scores(small), never.scores(small))
    assert close(learner.scores(left.subset(rest)), never.scores(small))


def test_forgetting_a_link_keeps_its_edge_and_revising_takes_it() -> None:
    links = some_links()
    learner = Propagation().observe(links)
    never = Propagation(plan=learner.plan_)
    learner.forget(links, [3])
    others = [i for i in range(96) if i != 3]
    assert close(learner.scores(links), never.clone().observe(links.subset(others)).scores(links))
    left = links.without(links=[3])
    assert left.graph.num_edges == links.graph.num_edges - 1
    learner.revise(links, left)
    assert close(learner.scores(left), never.clone().observe(left).scores(left))
    step = links.without(nodes=[5]).without(links=[3])
    both = links.without(nodes=[5], links=[3])
    assert torch.equal(step.rows().to_dense(), both.rows().to_dense())
    assert links.without().graph.num_edges == links.graph.num_edges
    assert LinkSet(links.graph, links.ends).without(nodes=[5]).labels is None


def test_sparse_features_are_learned_and_saved(tmp_path) -> None:
    links = sparsely(some_links())
    learner = Propagation().observe(links)
    assert learner.score(links) > 0.95
    learner.save(tmp_path / "links", least_rows=1)
    assert torch.equal(load(tmp_path / "links").predict(links), learner.predict(links))
    assert learner.predict(links, [3, 5]).shape == (2,)


@pytest.mark.parametrize(
    ("method", "told", "least"),
    [
        ("adr", {"epochs": 20, "hidden": (16, 16)}, 50),  # chance is 25
        ("sgc-ridge", {}, 95),
        ("propagation", {}, 95),
    ],
)
def test_methods_learn_streams_of_links(method: str, told: dict[str, Any], least: float) -> None:
    links = some_links(400)
    stream = TaskStream.from_graph(links, base=2, increment=2, scale="none")
    learner = make_learner(method, **told)
    assert evaluate(learner, stream).by_class.a_f > least
    assert learner.predict(links).shape == (400,)


def test_a_linear_method_compares_the_ends() -> None:
    """Whether both are of one kind, which no linear function of two separate ends tells."""
    links = some_links(400)
    same = links.labelled((links.ends % 2).diff(dim=0).eq(0).long().flatten())
    train, test = same.subset(range(200)), same.subset(range(200, 400))
    assert make_learner("sgc-ridge").observe(train).score(test) > 0.95


def test_links_of_an_unknown_class_look_strange() -> None:
    links = some_links(400)
    assert links.labels is not None
    known = links.labels < 3
    novelty = Propagation().observe(links.subset(known)).novelty(links)
    assert novelty[~known].mean() > novelty[known].mean() + 0.2


def test_a_set_of_links_is_a_graph_and_no_set_of_graphs() -> None:
    links = some_links()
    found = as_graph(links)
    assert torch.equal(found.features.to_dense(), links.rows().to_dense())
    assert torch.equal(found.labelled(), links.labels)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="LinkSet"):
        as_graph_set(links)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda g: LinkSet(g, [[0, 1, 2]]), r"\[2, links\].*transpose"),
        (lambda g: LinkSet(g, [[0], [3]]), "node 3.*drop that link"),
        (lambda g: LinkSet(g, [[0], [-1]]), "node -1.*drop that link"),
        (lambda g: LinkSet(g, [[0.5], [1]]), "links must be whole numbers"),
        (lambda g: LinkSet(g, [[], []]), "at least one link"),
        (lambda g: LinkSet(g, [[0], [1]], [0, 1]), r"1 links.*\(2,\).*one per link"),
        (lambda g: LinkSet(g, [[0], [1]], [0.5]), "whole numbers"),
        (lambda g: LinkSet(g, [[0], [1]], [-2]), "-2.*-1 for unknown"),
        (lambda g: LinkSet(g, [[0], [1]], hops=-1), "0 to 8, not -1"),
        (lambda g: LinkSet(g, [[0], [1]], hops=9), "0 to 8, not 9"),
        (lambda g: LinkSet(g, [[0], [1]], hops=1.5), "1.5"),
        (lambda g: LinkSet(g, [[0], [1]]).without(nodes=[3]), "node 3.*numbered from 0"),
        (lambda g: LinkSet(g, [[0], [1]]).without(links=[1]), "link 1.*numbered from 0"),
        (lambda g: LinkSet(g, [[0], [1]]).subset([4]), "link 4.*numbered from 0"),
    ],
)
def test_what_is_wrong_is_one_sentence(make: Any, told: str) -> None:
    with pytest.raises(InputError, match=told) as error:
        make(Graph.from_arrays(np.eye(3), [[0], [1]]))
    assert "\n" not in str(error.value)
