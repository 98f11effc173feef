"""Streams whose classes come back: what every arrival promises, and what each one is."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import connected_components, shortest_path

from tests.harness.check_stream import check_stream
from undrift import Graph, InputError, TaskStream, arrange
from undrift.storage.splits import load_split, save_split
from undrift.streams.arrange import grow_regions, share_out
from undrift.streams.arrival import parse_arrival
from undrift.streams.split import Times
from undrift.testing import tiny_graph, tiny_stream

EVERY = (
    *("blurry", "blurry:disjoint=0,blurry=1", "blurry:batches=5,context=seen", "domain"),
    *("domain:batches=4,regions=2,context=seen", "online", "online:batch=7", "online:batch=1"),
    *("online:batch=9,order=given,context=seen", "time", "time:periods=7,context=seen"),
)


def made(arrive: str, seed: int = 0) -> TaskStream:
    stream = tiny_stream(seed, nodes=120)
    time = np.random.default_rng(5).integers(2000, 2010, 120)
    return arrange(replace(stream, times=Times(np.asarray(time, float))), arrive)


def of_class(stream: TaskStream, c: int, mask: torch.Tensor | None = None) -> list[int]:
    """The tasks of the nodes of a class."""
    mine = stream.graph.labelled() == c
    return stream.task_of[mine if mask is None else mine & mask].tolist()


@pytest.mark.parametrize("arrive", EVERY)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_arrival_keeps_the_promises_of_a_stream(arrive: str, seed: int) -> None:
    stream, plain = made(arrive, seed), tiny_stream(seed, nodes=120)
    check_stream(stream, lambda s: made(arrive, s))
    assert stream.returning
    assert bool((stream.task_of >= 0).all())
    for split in ("train", "val", "test"):
        assert torch.equal(getattr(stream, split), getattr(plain, split))
    train = stream.train
    for t, classes in enumerate(stream.classes):
        found = stream.graph.labelled()[train & (stream.task_of == t)].unique().tolist()
        assert list(classes) == found


@pytest.mark.parametrize("arrive", EVERY)
def test_a_saved_split_gives_the_same_stream_again(arrive: str, tmp_path) -> None:
    stream = made(arrive)
    path = f"{tmp_path}/split.npz"
    save_split(path, stream.saved_split())
    again = TaskStream.with_split(stream.graph, load_split(path, stream.saved_split().sha256))
    assert torch.equal(again.task_of, stream.task_of)
    assert (again.classes, again.context) == (stream.classes, stream.context)
    other = arrange(tiny_stream(nodes=120), "online:batch=31").saved_split()
    assert other.sha256 != stream.saved_split().sha256


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_blurry_moves_the_blurry_share_of_the_blurry_classes(share: float) -> None:
    graph = tiny_stream(nodes=1200).graph
    plain = TaskStream.from_graph(graph, base=2, increment=2)
    stream = arrange(plain, f"blurry:disjoint=0.5,blurry={share}")
    tasks = [np.bincount(of_class(stream, c), minlength=3) for c in range(6)]
    away = [int(each.sum() - each.max()) for each in tasks]
    assert away.count(0) == (6 if share == 0.0 else 3)  # half of the classes lie in one task
    # a third of the shuffled nodes comes home again
    assert sum(away) == pytest.approx(share * 600 * 2 / 3, rel=0.15)
    if share < 0.5:  # homes are dealt out evenly
        assert np.bincount([each.argmax() for each in tasks]).tolist() == [2, 2, 2]


def test_domain_keeps_regions_whole_and_brings_most_classes() -> None:
    stream = made("domain:batches=3,regions=4")
    assert len(stream) == 3
    assert min(len(classes) for classes in stream.classes) >= 4
    inside = sum(row.edges for row in stream.describe())
    shuffled = sum(row.edges for row in made("online:batch=40").describe())
    assert inside > 1.2 * shuffled  # more edges stay inside than by chance


def test_online_cuts_an_order_into_batches() -> None:
    given = made("online:batch=50,order=given")
    assert given.task_of.tolist() == [0] * 50 + [1] * 50 + [2] * 20
    drawn = made("online:batch=50")
    assert drawn.task_of.bincount().tolist() == [50, 50, 20]
    assert drawn.task_of.tolist() != given.task_of.tolist()


def test_a_batch_without_training_nodes_joins_the_next() -> None:
    stream = made("online:batch=1,order=given")
    train = stream.train.tolist()
    wanted, at = [], 0
    for here in train:
        wanted.append(at)
        at += here
    assert stream.task_of.tolist() == [min(t, sum(train) - 1) for t in wanted]
    assert len(stream) == sum(train)


def test_context_is_the_neighbours_that_came_before() -> None:
    with_context, without = made("online:batch=30,context=seen"), made("online:batch=30")
    links = with_context.graph.adjacency.to_scipy()
    for t in range(4):
        own = without.shown(t).tolist()
        around = {int(v) for u in own for v in links[u].indices if int(without.task_of[v]) < t}
        assert with_context.shown(t).tolist() == sorted({*own, *around})
        assert with_context.task(t).graph.num_edges >= without.task(t).graph.num_edges
    assert with_context.shown(3).numel() > without.shown(3).numel()


def test_time_puts_every_node_into_its_period() -> None:
    stream = made("time:periods=5")
    assert stream.task_of.tolist() == np.minimum((stream.times.values - 2000) // 1.8, 4).tolist()


def test_a_stream_by_time_keeps_its_own_periods() -> None:
    labels = [1] * 5 + [0] * 5 + [1] * 5
    graph = Graph.from_arrays(np.eye(15), [[0], [1]], labels=labels)
    plain = TaskStream.by_time(graph, [2001] * 5 + [2002] * 5 + [2004] * 5, [2002, 2004])
    assert plain.classes == ((1,), (0,))
    stream = arrange(plain, "time")
    assert stream.classes == ((1,), (0,), (1,))
    assert stream.task_of.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    assert stream.num_classes == 2
    assert stream.seen(1) == stream.arrived == (1, 0)


def test_unlabelled_nodes_stay_outside() -> None:
    graph = tiny_stream().graph
    labels = graph.labelled().masked_fill(graph.labelled() == 5, -1)
    stream = TaskStream.from_graph(
        Graph(graph.features, graph.adjacency, labels), base=2, increment=1
    )
    for arrive in ("blurry", "domain", "online:batch=9"):
        found = arrange(stream, arrive)
        assert torch.equal(found.task_of < 0, labels < 0)
        check_stream(found)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: replace(tiny_stream(), arrives=torch.full((60,), 3)), "number of a task, 0 to 2"),
        (lambda: arrange(tiny_stream(), "time"), "has no times.*stream.toml"),
        (lambda: arrange(arrange(tiny_stream(), "online"), "blurry"), "was arranged before"),
        (lambda: arrange(tiny_stream(), "tme"), "unknown arrival 'tme'"),
    ],
)
def test_what_cannot_be_arranged_is_one_sentence(make: Callable[[], object], why: str) -> None:
    with pytest.raises(InputError, match=why):
        make()


def test_every_node_goes_with_its_nearest_centre() -> None:
    graph = tiny_graph(seed=1)
    found = grow_regions(graph, 5, seed=3)
    hops = shortest_path(graph.adjacency.to_scipy(), unweighted=True)
    centres = np.random.default_rng([3, 2, 5]).permutation(graph.num_nodes)[:5]
    # the first of the nearest centres: the slow way
    assert found.tolist() == hops[centres].argmin(axis=0).tolist()
    assert sorted(grow_regions(graph, 1000, seed=0).tolist()) == list(range(60))


def test_a_part_without_a_centre_is_a_region_of_its_own() -> None:
    graph = Graph.from_arrays(np.eye(7), [[0, 1, 4], [1, 2, 5]], undirected=True)
    found = grow_regions(graph, 1, seed=0)
    parts = connected_components(graph.adjacency.to_scipy())[1]
    assert len(set(found.tolist())) == 4
    assert len(set(zip(found.tolist(), parts.tolist(), strict=True))) == 4


def test_regions_are_shared_out_whole_and_almost_evenly() -> None:
    regions = np.repeat(np.arange(9), [9, 8, 7, 6, 5, 4, 3, 2, 1])
    batch = share_out(regions, 3)
    assert all(len(set(batch[regions == r].tolist())) == 1 for r in range(9))
    assert np.bincount(batch).tolist() == [16, 15, 14]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("blurry:disjoint=0.5,blurry=0.1", "blurry"),
        ("blurry:blurry=0.30, disjoint=0.2", "blurry:disjoint=0.2,blurry=0.3"),
        ("online:batch=64", "online"),
        ("online:order=given,batch=8", "online:batch=8,order=given"),
        ("online:context=seen", "online:context=seen"),
    ],
)
def test_the_same_arrival_is_always_written_the_same(text: str, written: str) -> None:
    assert str(parse_arrival(text)) == written
    assert parse_arrival(written) == parse_arrival(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("blury", "unknown arrival 'blury'.*blurry"),
        ("blurry:disjont=1", "unknown option of arrival 'blurry' 'disjont'.*disjoint"),
        ("blurry:disjoint=1.5", "disjoint of arrival .* must be a share from 0 to 1, not '1.5'"),
        ("blurry:blurry=nan", "must be a share"),
        ("blurry:0.5", "needs name=value after the colon"),
        ("online:batch=0", "batch of arrival .* must be a whole number of at least 1, not '0'"),
        ("online:order=label", "must be random or given, not 'label'"),
        ("classes:a=1", "takes no option; leave 'a=1' out"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why) as found:
        parse_arrival(text)
    assert "\n" not in str(found.value)
