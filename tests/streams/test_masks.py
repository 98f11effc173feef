"""A graph that comes with masks is split by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from undrift import Graph, InputError, LearnerFolder, TaskStream
from undrift.testing.graphs import tiny_graph


def masked(graph: Graph | None = None, **other: Any) -> Graph:
    """Sixty nodes of six classes: one in three trains, one in three is examined."""
    graph = graph or tiny_graph(nodes=60)
    place = torch.arange(60) // 6 % 3
    masks = {"train": place == 0, "val": place == 1, "test": place == 2}
    return graph.with_masks(**{**masks, **other})


@pytest.mark.parametrize("by_time", [False, True])
def test_the_masks_are_the_split(by_time: bool) -> None:
    graph = masked()
    if by_time:
        stream = TaskStream.by_time(graph, graph.labelled() % 3, 3)
    else:
        stream = TaskStream.from_graph(graph, base=2, increment=2)
    for name in ("train", "val", "test"):
        assert torch.equal(getattr(stream, name), graph.masks[name])
    assert stream.fractions is None
    seen = torch.cat([stream.nodes([t])[task.train] for t, task in enumerate(stream)])
    assert not bool(graph.masks["test"][seen].any())  # no test node is ever trained on


@pytest.mark.parametrize(
    ("graph", "match"),
    [
        (tiny_graph(nodes=60).with_masks(train=[True] * 60), "no test mask"),
        (masked(test=torch.ones(60, dtype=torch.bool)), "overlap"),
        (masked(train=torch.ones(60, 2, dtype=torch.bool)), r"2 columns.*\[:, 0\]"),
        (masked(train=torch.arange(60) == 0), "class 1 has no node in the graph's train mask"),
        (masked(test=torch.arange(60) == 1 + 12), "class 0 has no node in the graph's test mask"),
    ],
)
def test_masks_that_are_no_split_are_refused(graph: Graph, match: str) -> None:
    with pytest.raises(InputError, match=rf"(?s){match}.*masks=False"):
        TaskStream.from_graph(graph, base=2, increment=2)
    drawn = TaskStream.from_graph(graph, base=2, increment=2, masks=False)
    assert drawn.fractions == (0.6, 0.2, 0.2)
    with pytest.raises(InputError, match=r"fractions.*masks=False"):
        TaskStream.from_graph(masked(), base=2, increment=2, fractions=(0.8, 0.1, 0.1))


def test_a_file_with_masks_trains_on_its_training_nodes(tmp_path: Path) -> None:
    graph = masked()
    coo = graph.adjacency.to_scipy().tocoo()
    told = {
        "x": graph.features,
        "edge_index": torch.from_numpy(np.stack([coo.col, coo.row])).long(),
    }
    told |= {"y": graph.labels, **{f"{name}_mask": m for name, m in graph.masks.items()}}
    torch.save(told, tmp_path / "graph.pt")
    folder = LearnerFolder.new(tmp_path / "desk", least_rows=2)
    folder.observe(tmp_path / "graph.pt")
    rows = folder.learner().class_rows()
    assert rows is not None
    assert sum(rows.values()) == int(graph.masks["train"].sum())


def test_a_class_of_test_nodes_alone_does_not_break_the_folder(tmp_path: Path) -> None:
    graph = masked()
    train = graph.masks["train"] & (graph.labelled() != 5)
    folder = LearnerFolder.new(tmp_path / "desk", least_rows=2)
    folder.observe(graph.with_masks(train=train, val=graph.masks["val"] & train, test=~train))
    again = LearnerFolder(folder.path)
    assert set(again.predict(graph).classes) <= {"0", "1", "2", "3", "4"}
    assert again.verify() == []
