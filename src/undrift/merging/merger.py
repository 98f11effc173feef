"""`Merger`: what every merging rule keeps and gives, and what it may read of a trained encoder."""

from dataclasses import dataclass
from typing import ClassVar, Protocol, Self, runtime_checkable

import torch
from torch import Tensor

from undrift.encoders.encoder import Encoder, Head
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.sharing import once
from undrift.typing import Rows


@dataclass(frozen=True)
class MergeSettings:
    """What a learner tells its rule: `gamma`, the ridge of rules that regress."""

    gamma: float = 1.0


@dataclass(frozen=True, eq=False)
class Adapted:
    """An encoder theta_i as it came out of task i, with the task's data while it is still there.

    `nodes` are the indices of the nodes that count, `row_weights` how much each counts in a sum
    (None: once); noise comes from `generator`. A rule keeps none of it.
    """

    encoder: Encoder
    head: Head
    graph: Graph
    nodes: Tensor
    generator: torch.Generator
    row_weights: Tensor | None = None

    def trace(self) -> tuple[Rows, ...]:
        """H_hat_k of every layer at the nodes that count: the inputs of its linear maps."""
        inputs = (self.encoder, self.graph, self.nodes)
        return once(lambda: self.encoder.trace(self.graph, self.nodes), "trace", *inputs)


@runtime_checkable
class Merger(Protocol):
    """The running memory of a merging rule: frozen, packable, of a size that tasks do not grow.

    Every rule is a dataclass with a `name` and a `display` name for tables. A rule may also say
    which sums over rows it keeps, per layer, in a property `grams`; of one that does not, an audit
    says that it was not judged.
    """

    name: ClassVar[str]
    display: ClassVar[str]

    @classmethod
    def empty(cls, encoder: Encoder, settings: MergeSettings) -> Self:
        """The memory before the first task; `encoder` has the random weights it starts from."""

    def observe(self, adapted: Adapted) -> Self:
        """The memory after this encoder; this one stays as it is."""

    def merge(self) -> tuple[Tensor, ...]:
        """The merged weights, layer by layer."""


def nothing_added(rule: str) -> InputError:
    """The error of a memory that is asked for a merge too early."""
    return InputError(f"{rule} has nothing to merge yet; add the weights of a task first")
