from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift.datasets.synthetic import draw_pairs, generate
from undrift.errors import InputError


@pytest.fixture(scope="module")
def graph():
    return generate()


def test_classes_are_unequal_in_the_given_ratio_and_mixed(graph):
    sizes = graph.labels.bincount()
    assert 5.5 < int(sizes.max()) / int(sizes.min()) < 6.5
    assert sizes.unique().numel() == 10
    assert 0.7 < float((graph.labels[1:] != graph.labels[:-1]).double().mean()) < 0.95


@pytest.mark.parametrize(("homophily", "off"), [(0.65, 0.03), (0.0, 0.0), (1.0, 0.0)])
def test_the_share_of_edges_inside_a_class_is_the_homophily(homophily, off):
    graph = generate(classes=5, words=20, homophily=homophily)
    edges, labels = graph.adjacency.to_scipy().tocoo(), graph.labels.numpy()
    # repeated draws, which hubs of small classes see more of, cost a little
    share = np.mean(labels[edges.row] == labels[edges.col])
    assert share == pytest.approx(homophily, abs=off)


def test_hubs_make_degrees_unequal():
    def largest(hubs):
        graph = generate(nodes=1000, words=20, hubs=hubs)
        return int(graph.adjacency.indptr.diff().max())

    assert largest(0.0) < 25
    assert largest(1.0) > 2 * largest(0.0)


def test_a_few_words_are_frequent_and_most_are_rare(graph):
    counts = np.sort(np.bincount(graph.features.indices.numpy(), minlength=1000))
    assert counts[-100:].sum() > 0.4 * counts.sum()
    assert np.median(counts) < 0.02 * graph.num_nodes


def test_related_classes_share_words_by_kinship():
    def likeness(kinship):
        graph = generate(nodes=2000, classes=4, size_ratio=1.0, topic_share=1.0, kinship=kinship)
        means = torch.stack(
            [graph.features.to_dense()[graph.labels == c].mean(dim=0) for c in range(4)]
        )
        angle = torch.corrcoef(means)
        return float(angle[0, 2] - angle[0, 1])  # class c is related to c + 2

    assert likeness(0.0) == pytest.approx(0.0, abs=0.1)
    assert likeness(0.9) > 0.15


def test_the_same_arguments_give_the_same_graph_and_another_seed_another():
    first, second, other = (generate(nodes=200, words=40, seed=s) for s in (1, 1, 2))
    assert torch.equal(first.adjacency.indices, second.adjacency.indices)
    assert torch.equal(first.features.indices, second.features.indices)
    assert torch.equal(first.labels, second.labels)
    assert not torch.equal(first.labels, other.labels)


def test_generating_leaves_the_global_generators_alone():
    np_before, torch_before = np.random.get_state()[1].copy(), torch.get_rng_state()
    generate(nodes=200, words=40)
    assert np.array_equal(np.random.get_state()[1], np_before)
    assert torch.equal(torch.get_rng_state(), torch_before)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    nodes=st.integers(150, 400),
    words=st.integers(2, 60),
    classes=st.integers(2, 6),
    ratio=st.floats(1.0, 5.0),
    homophily=st.floats(0.0, 1.0),
    hubs=st.floats(0.0, 1.5),
    seed=st.integers(0, 2**40),
)
def test_any_settings_give_a_sound_graph(nodes, words, classes, ratio, homophily, hubs, seed):
    options = {"size_ratio": ratio, "homophily": homophily, "hubs": hubs, "seed": seed}
    sizes = {"nodes": nodes, "words": words, "classes": classes}
    graph = generate(**sizes, **options, average_degree=3.0, words_per_node=5.0)
    assert graph.num_nodes == nodes
    assert graph.num_edges == 2 * round(nodes * 1.5)
    assert graph.labels.unique().tolist() == list(range(classes))
    assert int(graph.features.indptr.diff().min()) >= 1  # no node without a word


# pairs ---------------------------------------------------------------------------------------


def pairs(wanted=400, *, sizes=(30, 50), seed=0, homophily=0.7, **options):
    rng = np.random.default_rng(seed)
    sizes = np.array(sizes)
    weights = options.pop("weights", np.ones(sizes.sum()))
    return draw_pairs(rng, sizes, weights, wanted, homophily, **options)


def test_pairs_run_out_where_there_are_no_more():
    keys, _ = pairs(10_000, sizes=(5, 6), homophily=1.0, rounds=50)
    assert keys.size == 10 + 15


def test_a_homophily_per_class_holds_for_its_sources():
    keys, backwards = pairs(sizes=(40, 40), homophily=np.array([1.0, 0.0]))
    low, high = keys // 80, keys % 80
    source, target = np.where(backwards, high, low), np.where(backwards, low, high)
    assert (target < 40).all()  # class 0 stays at home, class 1 goes out
    assert (source >= 40).any()


def test_attraction_draws_targets_and_propensity_draws_sources():
    attraction = np.zeros(80)
    attraction[[3, 60]] = 1.0
    keys, backwards = pairs(60, homophily=0.5, attraction=attraction)
    target = np.where(backwards, keys // 80, keys % 80)
    assert set(target.tolist()) == {3, 60}


def test_names_replace_the_numbers_by_class():
    plain, _ = pairs()
    names = np.random.default_rng(5).permutation(80)
    named, _ = pairs(names=names)
    ends = np.sort(names[np.stack([plain // 80, plain % 80])], axis=0)
    # later rounds may meet other repeats first, so the sets need not be drawn in one order
    assert set((ends[0] * 80 + ends[1]).tolist()) == set(named.tolist())


@pytest.mark.parametrize(
    ("settings_", "wanted"),
    [
        ({"nodes": 9}, "nodes of a generated graph must be 10 or more, not 9"),
        ({"words": 1}, "words .* 2 or more"),
        ({"classes": 1}, "classes .* 2 or more"),
        ({"seed": -1}, "seed .* 0 or more, not -1"),
        ({"homophily": 1.1}, "homophily .* from 0 to 1, not 1.1"),
        ({"topic_share": -0.1}, "topic_share .* from 0 to 1"),
        ({"kinship": 2}, "kinship .* from 0 to 1"),
        ({"hubs": float("nan")}, "hubs .* not nan"),
        ({"size_ratio": 0.5}, "size_ratio .* from 1 to"),
        ({"average_degree": 2000}, "average_degree .* from 0 to 1500, not 2000"),
        ({"words_per_node": 0}, "words_per_node .* from 1 to"),
        ({"nodes": 50}, "50 nodes in 10 classes .* leave a class of 1, .* give more nodes"),
    ],
)
def test_bad_settings_name_the_value_and_the_range(settings_, wanted):
    with pytest.raises(InputError, match=wanted):
        generate(**settings_)
