"""Regions: connected, nearest centre first, whole in one batch, the same for the same seed."""

import numpy as np
from scipy.sparse.csgraph import connected_components, shortest_path

from undrift.graphs import Graph
from undrift.streams.arrange import grow_regions, share_out
from undrift.testing.graphs import tiny_graph


def test_every_node_goes_with_its_nearest_centre() -> None:
    graph = tiny_graph(seed=1)
    found = grow_regions(graph, 5, seed=3)
    hops = shortest_path(graph.adjacency.to_scipy(), unweighted=True)
    centres = np.random.default_rng([3, 2, 5]).permutation(graph.num_nodes)[:5]
    assert found[centres].tolist() == [0, 1, 2, 3, 4]
    # the first of the nearest centres: the slow way
    assert found.tolist() == hops[centres].argmin(axis=0).tolist()


def test_regions_are_connected() -> None:
    graph = tiny_graph(seed=2)
    found, links = grow_regions(graph, 6, seed=0), graph.adjacency.to_scipy()
    for region in range(6):
        mine = np.flatnonzero(found == region)
        assert connected_components(links[mine][:, mine])[0] == 1


def test_a_part_without_a_centre_is_a_region_of_its_own() -> None:
    edges = np.array([[0, 1, 4], [1, 2, 5]])
    graph = Graph.from_arrays(np.eye(7), edges, undirected=True)
    found = grow_regions(graph, 1, seed=0)
    parts = connected_components(graph.adjacency.to_scipy())[1]
    assert len(set(found.tolist())) == 4
    assert len(set(zip(found.tolist(), parts.tolist(), strict=True))) == 4


def test_more_regions_than_nodes_are_the_nodes() -> None:
    assert sorted(grow_regions(tiny_graph(), 1000, seed=0).tolist()) == list(range(60))


def test_another_seed_gives_other_regions() -> None:
    first, again, other = (grow_regions(tiny_graph(), 4, seed=s).tolist() for s in (0, 0, 1))
    assert first == again != other


def test_regions_are_shared_out_whole_and_almost_evenly() -> None:
    regions = np.repeat(np.arange(9), [9, 8, 7, 6, 5, 4, 3, 2, 1])
    batch = share_out(regions, 3)
    assert all(len(set(batch[regions == r].tolist())) == 1 for r in range(9))
    assert np.bincount(batch).tolist() == [16, 15, 14]
