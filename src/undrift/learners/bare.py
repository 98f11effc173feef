"""Bare: fine-tune on every new task and do nothing against forgetting. The lower bound."""

from dataclasses import dataclass
from typing import ClassVar

from undrift.learners.parts.model_learner import ModelLearner


@dataclass(kw_only=True)
class Bare(ModelLearner):
    """Bare: training on the current task's nodes alone, with nothing against forgetting.

        L = CE(head(encoder(x)), y)

    over all classes seen. The head grows by a task's classes; encoder and head go on from the task
    before. Cost: one training per task. Memory: one model.

    >>> from undrift.testing.graphs import tiny_stream
    >>> first, second, _ = tiny_stream()
    >>> learner = Bare(epochs=20, hidden=8, lr=0.1, lr_next=0.1).observe(first)
    >>> learner.score(first.graph, first.train)
    1.0
    >>> learner.observe(second).score(first.graph, first.train)  # nothing holds what was learned
    0.0
    """

    name: ClassVar[str] = "bare"
    display: ClassVar[str] = "Bare"
    family: ClassVar[str] = "bound"
