"""`Task`: all that a learner may see at one step of a stream, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.graphs import Graph

__all__ = ["Task"]


@dataclass(frozen=True)
class Task:
    """A task T_t = {G_t, Y_t} of the stream.

    `graph` holds this task's nodes only; edges to other tasks are not in it. `train`, `val` and
    `test` are disjoint boolean masks over its nodes. `classes` are the classes that arrive with
    the task. Labels of test nodes are not in it (-1): a learner cannot look at what it does not
    have.
    """

    graph: Graph
    train: Tensor
    val: Tensor
    test: Tensor
    classes: tuple[int, ...]

    def __post_init__(self) -> None:
        n = self.graph.num_nodes
        if n == 0 or not self.classes:
            raise InputError(
                f"an empty task ({n} nodes, {len(self.classes)} classes) cannot be learned; "
                "leave it out of the stream"
            )
        if len(set(self.classes)) != len(self.classes) or min(self.classes) < 0:
            raise InputError(f"a task's classes must be different ids from 0, not {self.classes}")
        masks = {"train": self.train, "val": self.val, "test": self.test}
        for name, mask in masks.items():
            if mask.dtype != torch.bool or mask.shape != (n,):
                raise InputError(
                    f"the {name} mask must be {n} booleans, one per node, not "
                    f"{tuple(mask.shape)} of {mask.dtype}"
                )
        if bool((self.train & self.val | self.train & self.test | self.val & self.test).any()):
            raise InputError("the train, val and test masks overlap; a node belongs to one of them")
        if not bool(self.train.any()):
            raise InputError("a task without training nodes cannot be learned; set its train mask")
        self._check_labels()

    @property
    def labels(self) -> Tensor:
        """A class id per node, -1 where it is unknown."""
        return self.graph.labelled()

    def to(self, device: torch.device | str) -> Task:
        """The same task on another device; itself when it is there already."""
        graph = self.graph.to(device)
        if graph is self.graph and self.train.device == graph.device:
            return self
        train, val, test = (mask.to(graph.device) for mask in (self.train, self.val, self.test))
        return Task(graph, train, val, test, self.classes)

    def _check_labels(self) -> None:
        if self.graph.labels is None:
            raise InputError("a task's graph needs labels for its training nodes")
        known = self.graph.labels[self.train | self.val]
        wanted = torch.tensor(self.classes, device=known.device)
        strange = known[~torch.isin(known, wanted)]
        if strange.numel():
            raise InputError(
                f"label {int(strange[0])} is outside the task's classes {self.classes}; add the "
                "class to the task or take its nodes out of train and val"
            )
        present = self.graph.labels[self.train]
        missing = [c for c in self.classes if not bool((present == c).any())]
        if missing:
            raise InputError(
                f"class {missing[0]} of the task has no training node; leave the class out or "
                "move some of its nodes to train"
            )
