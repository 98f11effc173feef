from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from paper.stand_ins import (
    STAND_INS,
    arxiv,
    cora_full,
    load_stand_in,
    scaled_classes,
    scaled_links,
)
from paper.stand_ins.draws import features_of, generator
from undrift.datasets import catalogue
from undrift.datasets.catalogue import DATASETS, function_of, stream_entry
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


def test_a_base_task_of_twenty_classes_has_nearly_half_of_the_nodes():
    sizes = scaled_classes("reddit", 1.0)
    assert sum(sizes[:20]) / sum(sizes[:40]) == pytest.approx(0.48, abs=0.01)


def test_reddit_has_exactly_the_edges_and_sizes_promised(reddit):
    assert reddit.labels.bincount().tolist() == list(scaled_classes("reddit", 0.05))
    assert reddit.num_edges == 2 * scaled_links("reddit", 0.05)
    assert (reddit.num_features, reddit.features.dtype) == (602, torch.float32)


def test_reddit_is_symmetric_binary_and_without_self_loops(reddit):
    matrix = reddit.adjacency.to_scipy()
    assert reddit.adjacency.symmetric
    assert (matrix != matrix.T).nnz == 0
    assert not matrix.diagonal().any()
    assert set(np.unique(matrix.data)) == {1.0}


def test_reddit_is_homophilous_with_a_heavy_tail_and_no_class_order(reddit):
    assert homophily(reddit) == pytest.approx(0.72, abs=0.03)
    found = degrees(reddit).double()
    assert float(found.max()) > 10 * float(found.mean())
    assert float(found.median()) < 0.8 * float(found.mean())
    assert float((reddit.labels[1:] != reddit.labels[:-1]).double().mean()) > 0.9


def test_a_scale_changes_the_size_and_not_the_shape():
    small, large = (load_stand_in("reddit", scale=scale)[0] for scale in (0.03, 0.06))
    assert 1.9 < large.num_nodes / small.num_nodes < 2.1
    assert 3.8 < large.num_edges / small.num_edges < 4.2
    assert homophily(small) == pytest.approx(homophily(large), abs=0.03)


def test_neighbours_help_to_tell_classes_apart(reddit):
    means = torch.stack([reddit.features[reddit.labels == c].mean(dim=0) for c in range(41)])
    means = means - reddit.features.mean(dim=0)

    def accuracy(x):
        nearest = torch.cdist(x - x.mean(dim=0), means).argmin(dim=1)
        return float((nearest == reddit.labels).double().mean())

    alone, helped = accuracy(reddit.features), accuracy(reddit.operator() @ reddit.features)
    assert alone > 0.3
    assert helped > alone + 0.1


def test_the_same_arguments_give_the_same_graph_and_another_seed_another():
    first, second, other = (load_stand_in("reddit", scale=0.01, seed=s)[0] for s in (1, 1, 2))
    for part in ("labels", "features"):
        assert torch.equal(getattr(first, part), getattr(second, part))
        assert not torch.equal(getattr(first, part), getattr(other, part))
    assert torch.equal(first.adjacency.indices, second.adjacency.indices)


def test_generating_leaves_the_global_generators_alone():
    np_before, torch_before = np.random.get_state()[1].copy(), torch.get_rng_state()
    load_stand_in("reddit", scale=0.01)
    assert np.array_equal(np.random.get_state()[1], np_before)
    assert torch.equal(torch.get_rng_state(), torch_before)


def test_the_provenance_is_the_call():
    _, provenance = load_stand_in("reddit", scale=0.01, seed=4)
    assert provenance == {
        "stand_in": "all generated",
        "generator": "paper.stand_ins.reddit.make(scale=0.01, seed=4)",
    }


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
    matrix = graph.adjacency.to_scipy()
    assert graph.adjacency.symmetric
    assert (matrix != matrix.T).nnz == 0
    assert not matrix.diagonal().any()
    assert set(np.unique(matrix.data)) == {1.0}
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


def test_arxiv_is_homophilous_and_a_few_papers_are_cited_by_many(arxiv_file):
    graph, _ = load_stand_in("ogbn-arxiv", directed=True)
    assert homophily(graph) == pytest.approx(0.655, abs=0.06)
    cited = degrees(graph).double()
    citing = degrees_of_columns(graph)
    assert float(cited.max()) > 40 * float(cited.mean())
    assert float(citing.max()) < 15 * float(citing.mean())


def degrees_of_columns(graph):
    return torch.bincount(graph.adjacency.indices.long(), minlength=graph.num_nodes).double()


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


def test_words_of_corafull_follow_zipf_and_tell_classes_apart(cora_file):
    graph, _ = load_stand_in("cora-full")
    counts = np.sort(np.bincount(graph.features.indices.numpy(), minlength=3000))
    assert counts[-300:].sum() > 0.4 * counts.sum()
    x = graph.features.to_dense()
    labels = graph.labels
    half = torch.arange(400) < 200
    means = torch.stack([x[half & (labels == c)].mean(dim=0) for c in range(4)])
    guess = ((x[~half] - x.mean(dim=0)) @ (means - means.mean(dim=0)).T).argmax(dim=1)
    assert float((guess == labels[~half]).double().mean()) > 0.5


def test_a_file_with_other_statistics_does_not_pass(monkeypatch, cora_file):
    wrong = dataclasses.replace(catalogue.DATASETS["cora-full"], edges=126_842)
    expect(monkeypatch, wrong)
    wanted = "the stand-in for it has 800 edges instead of the 126,842 of cora-full; check cora"
    with pytest.raises(InputError, match=wanted):
        load_stand_in("cora-full")


@pytest.mark.parametrize("damage", ["short", "empty", "no labels"])
def test_a_damaged_file_is_named(cora_file, damage):
    if damage == "no labels":
        np.savez(cora_file, other=np.arange(3))
    else:
        data = cora_file.read_bytes()
        cora_file.write_bytes(data[: len(data) // 2] if damage == "short" else b"")
    with pytest.raises(InputError, match=r"cora_full_topology\.npz"):
        load_stand_in("cora-full")


# options and parts ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "wanted"),
    [
        ("reddit", {"scale": 0.0}, "scale of the stand-in for reddit must be .* not 0"),
        ("reddit", {"scale": 1.01}, "above 0 and at most 1, not 1.01"),
        ("reddit", {"scale": float("nan")}, "not nan"),
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


def test_every_stand_in_has_its_dataset_and_its_stream():
    for name, stand_in in STAND_INS.items():
        assert stand_in.imitates == DATASETS[name]
        assert stream_entry(stand_in.stream_name) == stand_in
        assert callable(function_of(stand_in.maker))


def test_features_are_class_means_plus_noise_in_pieces(monkeypatch):
    labels = np.arange(1000) % 2
    whole = features_of(labels, 50, 2.0, generator(0, "features"))
    monkeypatch.setattr("paper.stand_ins.draws._ROWS", 64)
    pieces = features_of(labels, 50, 2.0, generator(0, "features"))
    assert torch.equal(whole, pieces)
    apart = (whole[labels == 0].mean(dim=0) - whole[labels == 1].mean(dim=0)).norm()
    assert float(apart) == pytest.approx(2.0 * 100**0.5, rel=0.3)
    assert float(whole[labels == 0].std(dim=0).mean()) == pytest.approx(1.0, abs=0.05)


def test_another_seed_draws_other_words_of_corafull(cora_file):
    first, _ = cora_full.make(cora_file, 1.0, False, 0)
    second, _ = cora_full.make(cora_file, 1.0, False, 1)
    assert not torch.equal(first.features.indices, second.features.indices)
