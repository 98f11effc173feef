"""A task checks itself: every way to give a wrong one is one sentence."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from undrift import Graph, InputError, Task
from undrift.testing import tiny_graph


def mask(*places: int) -> torch.Tensor:
    chosen = torch.zeros(6, dtype=torch.bool)
    chosen[list(places)] = True
    return chosen


def parts(**changed: Any) -> dict[str, Any]:
    labels = changed.pop("labels", [0, 0, 0, 1, 1, 1])
    graph = Graph.from_arrays(torch.ones(6, 2), [[0, 1], [1, 0]], labels)
    good = {"graph": graph, "train": mask(0, 3), "val": mask(1, 4), "test": mask(2, 5)}
    return {**good, "classes": (0, 1), **changed}


def test_masks_and_classes_that_are_not_given() -> None:
    given = parts(labels=[7, 7, -1, 3, -1, -1])
    task = Task(given["graph"], train=mask(0, 1, 3))
    assert task.classes == (3, 7)
    assert not bool((task.val | task.test).any())
    assert task.val.shape == task.test.shape == (6,)
    assert replace(task, val=mask(1), train=mask(0, 3)).val.tolist() == mask(1).tolist()


def test_test_labels_may_be_hidden_but_not_the_others() -> None:
    Task(**parts(labels=[0, 0, -1, 1, 1, -1]))
    with pytest.raises(InputError, match="label -1 is outside the task's classes"):
        Task(**parts(labels=[0, -1, 0, 1, 1, 1]))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"classes": ()}, r"one or more different class ids from 0, not \(\)"),
        ({"classes": (-1, 1)}, "different class ids from 0"),
        ({"classes": (0,)}, r"label 1 is outside the task's classes \(0,\)"),
        ({"classes": (0, 1, 2)}, "class 2 of the task has no training node"),
        ({"labels": None}, "needs labels"),
        ({"train": mask()}, "without training nodes"),
        ({"train": mask(0, 1, 3)}, "overlap"),
        ({"train": torch.ones(5, dtype=torch.bool)}, "train mask must be 6 booleans"),
    ],
)
def test_bad_tasks(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Task(**parts(**changed))


def test_the_masks_of_a_graph_count_where_none_are_given() -> None:
    graph = tiny_graph()
    whole = torch.ones(graph.num_nodes, dtype=torch.bool)
    split = graph.with_masks(train=whole & (graph.labelled() < 4), val=whole & (graph.labels > 9))
    task = Task(split)
    assert task.classes == (0, 1, 2, 3)
    assert torch.equal(task.train, split.masks["train"])
    assert not task.test.any()
    with pytest.raises(InputError, match="without training nodes"):
        Task(graph)
