"""The baseline: plain weights, by how sure they are of a node's class."""

from __future__ import annotations

import torch
from torch import Tensor

from undrift.learners.base import Learner
from undrift.streams.task import Task


def confidence(learner: Learner, task: Task, nodes: Tensor, labels: Tensor) -> Tensor:
    """The margin of each node's class: its score less the best other's; larger means member.

    What a model was trained on it tends to answer with less doubt (Yeom et al., "Privacy risk in
    machine learning", CSF 2018). Needs the class of every node, and scores in the graph of its
    batch. Works on any state, for there are always weights. Cost: one prediction.

    >>> from undrift.learners.propagation import Propagation
    >>> from undrift.testing.graphs import tiny_stream
    >>> task = tiny_stream().task(0)
    >>> margin = confidence(Propagation().observe(task), task, task.train, task.labels[task.train])
    >>> bool(margin.median() > 0)
    True
    """
    scores = learner.scores(task.graph, nodes).double()
    places = {c: i for i, c in enumerate(learner.classes_)}
    columns = torch.tensor([places[int(c)] for c in labels.tolist()])
    own = scores.gather(1, columns.unsqueeze(1)).squeeze(1)
    if scores.shape[1] == 1:
        return own
    scores.scatter_(1, columns.unsqueeze(1), -torch.inf)
    return own - scores.amax(dim=1)
