from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from paper.stand_ins import STAND_INS, arxiv, load_stand_in, scaled_classes, scaled_links
from undrift.datasets import catalogue
from undrift.datasets.catalogue import DATASETS
from undrift.errors import InputError
from undrift.sparse import Csr


def degrees(graph):
    return graph.adjacency.indptr.diff()


def homophily(graph):
    edges, labels = graph.adjacency.to_scipy().tocoo(), graph.labels.numpy()
    return float(np.mean(labels[edges.row] == labels[edges.col]))


@pytest.fixture(scope="module")
def reddit():
    return load_stand_in("reddit", scale=0.05)[0]


# reddit --------------------------------------------------------------------------------------


def test_full_size_is_that_of_the_dataset():
    dataset = DATASETS["reddit"]
    assert sum(scaled_classes("reddit", 1.0)) == dataset.nodes
    assert 2 * scaled_links("reddit", 1.0) == dataset.edges
    assert len(scaled_classes("reddit", 1.0)) == dataset.classes


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
    assert homophily(reddit) == pytest.approx(0.72, abs=0.03)
    found = degrees(reddit).double()
    assert float(found.max()) > 10 * float(found.mean())
    assert float(found.median()) < 0.8 * float(found.mean())
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


# arxiv and corafull, on small files of the same layout ---------------------------------------


def expect(monkeypatch, dataset):
    """Let the catalogue and the stand-in know the dataset as this one."""
    monkeypatch.setitem(catalogue.OWN, dataset.stream_name, dataset)
    changed = dataclasses.replace(STAND_INS[dataset.name], imitates=dataset)
    monkeypatch.setitem(STAND_INS, dataset.name, changed)


@pytest.fixture
def arxiv_file(monkeypatch, tmp_path):
    """Labels of 4,000 nodes in 5 classes, one of them tiny, and a catalogue that expects them."""
    sizes = [1990, 1000, 800, 200, 10]
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(5), sizes))
    np.savez(tmp_path / "arxiv_labels_split.npz", label=labels.astype(np.int16))
    changed = dataclasses.replace(DATASETS["ogbn-arxiv"], nodes=4000, edges=28_000, classes=5)
    expect(monkeypatch, changed)
    monkeypatch.setattr(arxiv, "PAIRS", 27_800)
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    return labels


def test_arxiv_keeps_the_labels_and_is_made_symmetric(arxiv_file):
    graph, provenance = load_stand_in("ogbn-arxiv")
    assert graph.labels.tolist() == arxiv_file.tolist()
    assert graph.num_edges == 2 * 27_800
    assert plain(graph)
    assert graph.num_features == 128
    assert len(provenance["arxiv_labels_split.npz"]) == 64


def test_directed_arxiv_has_the_published_number_of_citations(arxiv_file):
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
def cora_file(monkeypatch, tmp_path):
    """A ring of 400 nodes in 4 classes, without features, and a catalogue that expects it."""
    n = 400
    nodes = np.arange(n)
    np.savez(
        tmp_path / "cora_full_topology.npz",
        adj_data=np.ones(n, np.float32),
        adj_indices=(nodes + 1) % n,
        adj_indptr=np.arange(n + 1),
        adj_shape=np.array([n, n]),
        labels=nodes % 4,
    )
    changed = dataclasses.replace(
        DATASETS["cora-full"], nodes=n, edges=2 * n, classes=4, features=3000
    )
    expect(monkeypatch, changed)
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    return tmp_path / "cora_full_topology.npz"


def test_corafull_keeps_links_and_labels_and_gets_words(cora_file):
    graph, _ = load_stand_in("cora-full")
    assert graph.labels.tolist() == [i % 4 for i in range(400)]
    assert (graph.num_edges, graph.num_features) == (800, 3000)
    assert isinstance(graph.features, Csr)
    words = graph.features.indptr.diff().double()
    assert 50 < float(words.mean()) < 66
    assert set(graph.features.values.tolist()) == {1.0}


def test_a_file_with_other_statistics_does_not_pass(monkeypatch, cora_file):
    wrong = dataclasses.replace(catalogue.DATASETS["cora-full"], edges=126_842)
    expect(monkeypatch, wrong)
    wanted = "the stand-in for it has 800 edges instead of the 126,842 of cora-full; check cora"
    with pytest.raises(InputError, match=wanted):
        load_stand_in("cora-full")


def test_a_damaged_file_is_named(cora_file):
    data = cora_file.read_bytes()
    for damaged in (data[: len(data) // 2], b""):
        cora_file.write_bytes(damaged)
        with pytest.raises(InputError, match=r"cora_full_topology\.npz"):
            load_stand_in("cora-full")


# options and parts ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "wanted"),
    [
        ("reddit", {"scale": 0.0}, "scale of the stand-in for reddit must be .* not 0"),
        ("reddit", {"scale": 1.01}, "above 0 and at most 1, not 1.01"),
        ("reddit", {"directed": True}, "reddit has no directed form"),
        ("reddit", {"seed": -1}, "seed of the stand-in for reddit must be 0 or more, not -1"),
        ("cora-full", {"scale": 0.5}, "cora-full has one size; leave the scale out"),
        ("coauthor-cs", {}, "unknown stand-in 'coauthor-cs'.*choose one of: cora-full, ogbn-arxiv"),
    ],
)
def test_bad_options_are_explained(name, options, wanted):
    with pytest.raises(InputError, match=wanted):
        load_stand_in(name, **options)


@pytest.mark.parametrize("name", ["cora-full", "ogbn-arxiv"])
def test_a_missing_real_part_is_named(monkeypatch, tmp_path, name):
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    file = STAND_INS[name].file
    assert not STAND_INS[name].on_disk()
    with pytest.raises(InputError, match=f"{file} is .*UNDRIFT_DATA"):
        load_stand_in(name)
