import dataclasses

import numpy as np
import pytest
import torch

from paper.stand_ins import STAND_INS, arxiv, load_stand_in, scaled_classes, scaled_links
from undrift.datasets import catalogue
from undrift.datasets.catalogue import DATASETS
from undrift.errors import InputError
from undrift.sparse import Csr


@pytest.fixture(scope="module")
def reddit():
    return load_stand_in("reddit", scale=0.05)[0]


@pytest.mark.parametrize("scale", [1e-9, 0.001, 0.01, 0.3, 1.0])
def test_no_class_is_too_small_and_no_node_too_lonely_at_any_scale(scale):
    sizes, links = scaled_classes("reddit", scale), scaled_links("reddit", scale)
    assert min(sizes) >= 10
    assert 2 * links / sum(sizes) >= 9.99
    assert links < sum(sizes) * (sum(sizes) - 1) / 8  # a pair to draw is easy to find


def plain(graph):
    """Whether it is symmetric, binary and without self-loops."""
    matrix = graph.adjacency.to_scipy()
    assert graph.adjacency.symmetric
    return not (matrix != matrix.T).nnz and not matrix.diagonal().any() and {*matrix.data} == {1.0}


def test_reddit_has_exactly_the_edges_and_sizes_promised(reddit):
    assert reddit.labels.bincount().tolist() == list(scaled_classes("reddit", 0.05))
    assert reddit.num_edges == 2 * scaled_links("reddit", 0.05)
    assert (reddit.num_features, reddit.features.dtype) == (602, torch.float32)
    assert plain(reddit)


def test_reddit_is_homophilous_with_a_heavy_tail_and_no_class_order(reddit):
    edges, labels = reddit.adjacency.to_scipy().tocoo(), reddit.labels.numpy()
    assert np.mean(labels[edges.row] == labels[edges.col]) == pytest.approx(0.72, abs=0.03)
    degrees = np.bincount(edges.row)
    assert degrees.max() > 10 * degrees.mean()
    assert np.median(degrees) < 0.8 * degrees.mean()
    assert float((reddit.labels[1:] != reddit.labels[:-1]).double().mean()) > 0.9


def test_the_same_arguments_give_the_same_graph_and_another_seed_another():
    np_before, torch_before = np.random.get_state()[1].copy(), torch.get_rng_state()
    first, second, other = (load_stand_in("reddit", scale=0.01, seed=s)[0] for s in (1, 1, 2))
    for part in ("labels", "features"):
        assert torch.equal(getattr(first, part), getattr(second, part))
        assert not torch.equal(getattr(first, part), getattr(other, part))
    assert torch.equal(first.adjacency.indices, second.adjacency.indices)
    # the global generators are left alone
    assert np.array_equal(np.random.get_state()[1], np_before)
    assert torch.equal(torch.get_rng_state(), torch_before)


@pytest.fixture
def expect(monkeypatch, tmp_path):
    """Let the catalogue and the stand-in know a dataset by these counts."""
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))

    def known(name, **counts):
        dataset = dataclasses.replace(DATASETS[name], **counts)
        monkeypatch.setitem(catalogue.OWN, dataset.stream_name, dataset)
        monkeypatch.setitem(STAND_INS, name, dataclasses.replace(STAND_INS[name], **counts))

    return known


@pytest.fixture
def arxiv_labels(monkeypatch, tmp_path, expect):
    """Labels of 4,000 nodes in 5 classes, one of them tiny, and a catalogue that expects them."""
    sizes = [1990, 1000, 800, 200, 10]
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(5), sizes))
    np.savez(tmp_path / "arxiv_labels_split.npz", label=labels.astype(np.int16))
    expect("ogbn-arxiv", nodes=4000, edges=28_000, classes=5)
    monkeypatch.setattr(arxiv, "PAIRS", 27_800)
    return labels


def test_arxiv_keeps_the_labels_and_is_made_symmetric(arxiv_labels):
    graph, provenance = load_stand_in("ogbn-arxiv")
    assert graph.labels.tolist() == arxiv_labels.tolist()
    assert graph.num_edges == 2 * 27_800
    assert plain(graph)
    assert graph.num_features == 128
    assert len(provenance["arxiv_labels_split.npz"]) == 64


@pytest.mark.usefixtures("arxiv_labels")
def test_directed_arxiv_has_the_published_number_of_citations():
    graph, provenance = load_stand_in("ogbn-arxiv", directed=True)
    assert graph.num_edges == 28_000
    assert not graph.adjacency.symmetric
    both = graph.adjacency.to_scipy()
    assert both.multiply(both.T).nnz == 2 * 200  # the answered ones
    assert "directed=True" in provenance["generator"]
    undirected, _ = load_stand_in("ogbn-arxiv")
    assert ((both + both.T) != 0).nnz == undirected.num_edges
    assert torch.equal(graph.features, undirected.features)


@pytest.fixture
def cora(tmp_path):
    """The counts of a ring of 400 nodes in 4 classes, without features."""
    nodes, shape = np.arange(400), np.array([400, 400])
    ring = {"adj_data": np.ones(400, np.float32), "adj_indices": (nodes + 1) % 400}
    ring |= {"adj_indptr": np.arange(401), "adj_shape": shape, "labels": nodes % 4}
    np.savez(tmp_path / "cora_full_topology.npz", **ring)
    return {"nodes": 400, "edges": 800, "classes": 4, "features": 3000}


def test_corafull_keeps_links_and_labels_and_gets_words(expect, cora):
    expect("cora-full", **cora)
    graph, _ = load_stand_in("cora-full")
    assert graph.labels.tolist() == [i % 4 for i in range(400)]
    assert (graph.num_edges, graph.num_features) == (800, 3000)
    assert isinstance(graph.features, Csr)
    words = graph.features.indptr.diff().double()
    assert 50 < float(words.mean()) < 66
    assert set(graph.features.values.tolist()) == {1.0}


def test_a_file_with_other_statistics_does_not_pass(expect, cora):
    expect("cora-full", **cora | {"edges": 126_842})
    wanted = "the stand-in for it has 800 edges instead of the 126,842 of cora-full; check cora"
    with pytest.raises(InputError, match=wanted):
        load_stand_in("cora-full")


@pytest.mark.parametrize("name", ["cora-full", "ogbn-arxiv"])
def test_a_missing_real_part_is_named(monkeypatch, tmp_path, name):
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    file = STAND_INS[name].names[0]
    assert not STAND_INS[name].on_disk()
    with pytest.raises(InputError, match=f"{file} is .*UNDRIFT_DATA"):
        load_stand_in(name)
