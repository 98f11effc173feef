"""Streams whose classes come back: what every arrival promises, and what each one is."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.storage.splits import load_split, save_split
from undrift.streams.arrange import arrange
from undrift.streams.split import Times
from undrift.streams.stream import TaskStream
from undrift.streams.summary import imbalance_of
from undrift.testing.check_stream import check_stream
from undrift.testing.graphs import tiny_stream

EVERY = (
    *("blurry", "blurry:disjoint=0,blurry=1", "blurry:batches=5,context=seen", "domain"),
    *("domain:batches=4,regions=2,context=seen", "online", "online:batch=7", "online:batch=1"),
    *("online:batch=9,order=given,context=seen", "time", "time:periods=7,context=seen"),
)


def made(arrive: str, seed: int = 0) -> TaskStream:
    stream = tiny_stream(seed, nodes=120)
    time = np.random.default_rng(5).integers(2000, 2010, 120)
    return arrange(replace(stream, times=Times.of(time)), arrive)


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


@pytest.mark.parametrize("arrive", ["blurry", "domain", "online:batch=30"])
def test_another_seed_is_another_stream(arrive: str) -> None:
    assert not torch.equal(made(arrive, 0).task_of, made(arrive, 1).task_of)


@pytest.mark.parametrize("arrive", EVERY)
def test_a_saved_split_gives_the_same_stream_again(
    arrive: str, tmp_path: pytest.TempPathFactory
) -> None:
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
    whole, moved, blurred = 0, 0, 0
    for c in range(6):
        tasks = np.bincount(of_class(stream, c), minlength=3)
        whole += int((tasks > 0).sum() == 1)
        if (tasks > 0).sum() > 1:
            moved += int(tasks.sum() - tasks.max())
            blurred += 200
    if share == 0.0:
        assert whole == 6
        return
    assert whole == 3  # half of the classes lie in one task
    assert blurred == 600
    # a third of the shuffled nodes comes home again
    assert moved == pytest.approx(share * blurred * 2 / 3, rel=0.15)


def test_all_disjoint_is_by_class() -> None:
    stream = arrange(tiny_stream(), "blurry:disjoint=1")
    assert sorted(c for classes in stream.classes for c in classes) == list(range(6))


def test_every_class_has_a_home_and_homes_are_dealt_out_evenly() -> None:
    stream = arrange(tiny_stream(nodes=300), "blurry:disjoint=0.5,blurry=0.1")
    homes = [np.bincount(of_class(stream, c), minlength=3).argmax() for c in range(6)]
    assert np.bincount(homes).tolist() == [2, 2, 2]


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
    assert stream.times is not None
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


def test_rho_is_of_the_nodes_of_the_task() -> None:
    stream = made("online:batch=50,order=given")
    assert imbalance_of(stream) == pytest.approx([9 / 8, 9 / 8, 4 / 3])


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
        (lambda: arrange(tiny_stream(), "time"), "has no times.*stream.toml"),
        (lambda: arrange(arrange(tiny_stream(), "online"), "blurry"), "was arranged before"),
        (lambda: arrange(tiny_stream(), "tme"), "unknown arrival 'tme'"),
    ],
)
def test_what_cannot_be_arranged_is_one_sentence(make: Callable[[], object], why: str) -> None:
    with pytest.raises(InputError, match=why):
        make()


def test_arrives_must_name_tasks() -> None:
    stream = tiny_stream()
    with pytest.raises(InputError, match="arrives must be the number of a task, 0 to 2"):
        replace(stream, arrives=torch.full((60,), 3))


def test_classes_is_the_stream_itself() -> None:
    stream = tiny_stream()
    assert arrange(stream, "classes") is stream
