import numpy as np
import pytest
import torch

from undrift.datasets.synthetic import draw_pairs, generate, word_chances


@pytest.mark.parametrize(("homophily", "off"), [(0.65, 0.03), (0.0, 0.0), (1.0, 0.0)])
def test_the_share_of_edges_inside_a_class_is_the_homophily(homophily, off):
    graph = generate(classes=5, words=20, homophily=homophily)
    edges, labels = graph.adjacency.to_scipy().tocoo(), graph.labels.numpy()
    # repeated draws, which hubs of small classes see more of, cost a little
    share = np.mean(labels[edges.row] == labels[edges.col])
    assert share == pytest.approx(homophily, abs=off)


def test_related_classes_share_words_by_kinship():
    def likeness(kinship):
        chances = np.log(word_chances(np.random.default_rng(0), 4, 2000, kinship))
        angle = np.corrcoef(chances[:4] - chances[4])
        return angle[0, 2] - angle[0, 1]  # class c is related to c + 2

    assert likeness(0.0) == pytest.approx(0.0, abs=0.1)
    assert likeness(0.9) == pytest.approx(0.9, abs=0.1)


def test_the_same_arguments_give_the_same_graph_and_another_seed_another():
    np_before, torch_before = np.random.get_state()[1].copy(), torch.get_rng_state()
    first, second, other = (generate(nodes=200, words=40, seed=s) for s in (1, 1, 2))
    assert torch.equal(first.adjacency.indices, second.adjacency.indices)
    assert torch.equal(first.features.indices, second.features.indices)
    assert torch.equal(first.labels, second.labels)
    assert not torch.equal(first.labels, other.labels)
    assert int(first.features.indptr.diff().min()) >= 1  # no node without a word
    # the global generators are left alone
    assert np.array_equal(np.random.get_state()[1], np_before)
    assert torch.equal(torch.get_rng_state(), torch_before)


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
