"""The conformance checks can fail: each catches a learner that breaks its rule."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from undrift.graphs import Graph
from undrift.learners.acil import Acil
from undrift.learners.base import Learner, at_nodes
from undrift.learners.kept import Inventory
from undrift.learners.ledger import Ledger
from undrift.streams.task import Task
from undrift.testing.check_examples import found_examples, matches, planted, responds, spans
from undrift.testing.check_learner import LEARNER_CHECKS, check_learner
from undrift.typing import Progress, silent


@dataclass(frozen=True, eq=False)
class MeansLearned:
    classes: tuple[int, ...]
    num_features: int
    means: Tensor
    extra: Tensor | None = None


@dataclass(kw_only=True)
class Means(Learner):
    """Nearest class mean: the smallest honest learner."""

    name: ClassVar[str] = "means"
    learned_type: ClassVar[type] = MeansLearned
    scale: float = 1.0

    def _learn(self, task: Task, progress: Progress) -> MeansLearned:
        progress("means", 0, 1)
        x, labels = _dense(task.graph), task.graph.labels
        assert labels is not None
        new = torch.stack([x[task.train & (labels == c)].mean(dim=0) for c in task.classes])
        old = self.learned_
        if old is None:
            return MeansLearned(task.classes, x.shape[1], new)
        return MeansLearned(
            (*old.classes, *task.classes), x.shape[1], torch.cat([old.means, new]), old.extra
        )

    def _scores(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        return -self.scale * torch.cdist(at_nodes(_dense(graph), nodes), learned.means)


def _dense(graph: Graph) -> Tensor:
    return graph.features if isinstance(graph.features, Tensor) else graph.features.to_dense()


def test_an_honest_learner_passes() -> None:
    check_learner(Means())


class Forgetful(Means):
    """Does not restore what it knew."""

    def load(self, state: Any) -> Any:
        super().load(state)
        self.learned_ = MeansLearned(
            self.learned_.classes, self.learned_.num_features, self.learned_.means * 1.001
        )
        return self


class Restless(Means):
    """Draws from a counter: the same seed gives another result."""

    counter: ClassVar[Any] = itertools.count()

    def _learn(self, task: Task, progress: Progress) -> MeansLearned:
        learned = super()._learn(task, progress)
        shift = float(next(self.counter))
        return MeansLearned(learned.classes, learned.num_features, learned.means + shift)


class GlobalNoise(Means):
    """Draws from torch's global generator."""

    def _learn(self, task: Task, progress: Progress) -> MeansLearned:
        torch.rand(1)
        return super()._learn(task, progress)


class Hoarder(Means):
    """Keeps every node it saw and says it keeps none."""

    def _learn(self, task: Task, progress: Progress) -> MeansLearned:
        learned = super()._learn(task, progress)
        return MeansLearned(
            learned.classes, learned.num_features, learned.means, _dense(task.graph)
        )


class Sampler(Means):
    """Keeps one node, whatever the size of the graph, and says it keeps none."""

    def _learn(self, task: Task, progress: Progress) -> MeansLearned:
        learned = super()._learn(task, progress)
        one = _dense(task.graph)[:1]
        return MeansLearned(learned.classes, learned.num_features, learned.means, one)


class Disguiser(Means):
    """Keeps four nodes of the newest task in some disguise and says it keeps none."""

    def disguise(self, rows: Tensor) -> Tensor:
        raise NotImplementedError

    def _learn(self, task: Task, progress: Progress) -> MeansLearned:
        learned = super()._learn(task, progress)
        return replace(learned, extra=self.disguise(_dense(task.graph)[:4]))


def secret(size: int) -> Tensor:
    return torch.randn(size, size, generator=torch.Generator().manual_seed(9))


class Flattener(Disguiser):
    def disguise(self, rows: Tensor) -> Tensor:
        return torch.cat([torch.tensor([3.0]), rows.flatten()])


class Turner(Disguiser):
    def disguise(self, rows: Tensor) -> Tensor:
        return rows.T.contiguous()


class Scaler(Disguiser):
    def disguise(self, rows: Tensor) -> Tensor:
        return rows / rows.norm(dim=1, keepdim=True)


class Mixer(Disguiser):
    """One node with another."""

    def disguise(self, rows: Tensor) -> Tensor:
        return secret(len(rows)) @ rows


class Rotator(Disguiser):
    """One feature with another."""

    def disguise(self, rows: Tensor) -> Tensor:
        return rows @ secret(rows.shape[1])


class Scrambler(Disguiser):
    """Everything with everything."""

    def disguise(self, rows: Tensor) -> Tensor:
        return secret(rows.numel()) @ rows.flatten() + 5.0


class Boaster(Means):
    """Says it keeps examples and has none."""

    keeps_examples: ClassVar[bool] = True


class Hasty(Means):
    """Writes what it learned before it is done."""

    def _learn(self, task: Task, progress: Progress) -> MeansLearned:
        if self.learned_ is not None:
            means = self.learned_.means + 1
            self.learned_ = MeansLearned(self.learned_.classes, means.shape[1], means)
        return super()._learn(task, progress)


class Guesser(Means):
    """Predicts a class that nobody taught it."""

    def predict(self, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        return torch.full_like(super().predict(graph, nodes), 77)


class Positional(Means):
    """Scores depend on where a node stands."""

    def _scores(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        place = at_nodes(torch.arange(graph.num_nodes).unsqueeze(1), nodes)
        return super()._scores(learned, graph, nodes) + place * torch.arange(len(learned.classes))


class Vandal(Means):
    """Writes into the task."""

    def _learn(self, task: Task, progress: Progress) -> MeansLearned:
        _dense(task.graph).mul_(2)
        return super()._learn(task, progress)


@dataclass(kw_only=True)
class Silent(Means):
    """Has a parameter that repr does not show."""

    hidden_choice: int = field(default=3, repr=False)


class Blind(Means):
    """Reads sparse features wrongly."""

    def _scores(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        scores = super()._scores(learned, graph, nodes)
        return scores if isinstance(graph.features, Tensor) else scores.flip(1)


class Unordered(Means):
    """Answers for the nodes that were asked for, in an order of its own."""

    def _scores(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        return super()._scores(learned, graph, None if nodes is None else nodes.sort().values)


class Doubling(Means):
    """Says that classes may return, and gives one that does a second column."""

    returns: ClassVar[bool] = True


class Nosy(Means):
    """Reads the labels of nodes that are not to be learned."""

    def _learn(self, task: Task, progress: Progress) -> MeansLearned:
        return super()._learn(Task(task.graph, task.labels >= 0), progress)


class Obliging(Means):
    """Takes everything for done."""

    def forget(self, batch: Any, *, progress: Progress = silent) -> Any:
        return self


class Approximate(Acil):
    """Forgets and merges nearly."""

    def forget(self, *batch: Any, **how: Any) -> Any:
        return super().forget(*batch, **how)._nearly()

    def merge(self, other: Any, *, again: bool = False) -> Any:
        return super().merge(other, again=again)._nearly()

    def _nearly(self) -> Any:
        sums = self.learned_.sums
        moved = replace(sums, moment=sums.moment * (1 + 1e-7))
        self.learned_ = replace(self.learned_, sums=moved, solution=None)
        return self


class Eager(Acil):
    """Forgets before it is done."""

    def forget(self, *batch: Any, progress: Progress = silent, **how: Any) -> Any:
        super().forget(*batch, **how)
        progress("forget", 0, 1)
        return self


class Careless(Acil):
    """Says nothing when it is to forget what it has never seen."""

    def _left(self, classes: Any, sums: Any) -> Any:
        return self.learned_


class Secretive(Acil):
    """Names its weights, and not its sums."""

    def _inventory(self, learned: Any) -> Inventory:
        return replace(super()._inventory(learned), sums=())


class Mislabelling(Acil):
    """Says that its sums are weights."""

    def _inventory(self, learned: Any) -> Inventory:
        return Inventory(rest=("plan", "sums", "solution"))


class Inventing(Acil):
    """Names rows that it did not sum."""

    def _inventory(self, learned: Any) -> Inventory:
        (kept,) = super()._inventory(learned).sums
        other = replace(kept, rows=lambda graph, nodes: kept.rows(graph, nodes) + 0.1)
        return Inventory((other,), rest=("plan", "solution"))


class Miscounting(Acil):
    """Says that more rows stand behind a class than do."""

    def _inventory(self, learned: Any) -> Inventory:
        (kept,) = super()._inventory(learned).sums
        more = replace(kept, counts=learned.sums.counts + 100)
        return Inventory((more,), rest=("plan", "solution"))


class Unaware(Acil):
    """Does not know which batches it has seen."""

    def _ledger(self) -> Ledger:
        return Ledger.empty(complete=False)


def quick(kind: type[Acil]) -> Callable[[], Learner]:
    return lambda: kind.from_params(epochs=2, hidden=(8,), alpha=2)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (Forgetful, "restored_continues"),
        (Restless, "same_seed_same_result"),
        (GlobalNoise, "same_seed_same_result"),
        (Hoarder, "keeps_examples"),
        (Sampler, "keeps_examples"),
        (Boaster, "keeps_examples"),
        (Hasty, "rejected_task"),
        (Guesser, "unseen_never_predicted"),
        (Positional, "node_order"),
        (Unordered, "some_nodes"),
        (Vandal, "input_not_changed"),
        (Silent, "clone_and_repr"),
        (Blind, "sparse_features"),
        (Doubling, "returning_classes"),
        (Nosy, "context_nodes"),
        (Obliging, "refused_verbs"),
        (quick(Approximate), "forgetting_is_exact"),
        (quick(Approximate), "merging_is_exact"),
        (quick(Approximate), "exactness_is_told"),
        (quick(Eager), "interrupted_verbs"),
        (quick(Careless), "refused_verbs"),
        (quick(Secretive), "inventory"),
        (quick(Mislabelling), "inventory"),
        (quick(Inventing), "inventory"),
        (quick(Miscounting), "inventory"),
        (quick(Unaware), "counted_once"),
    ],
)
def test_each_rule_is_enforced(broken: Callable[[], Learner], check: str) -> None:
    with pytest.raises(AssertionError):
        LEARNER_CHECKS[check](broken())


def test_a_learner_that_takes_any_state_is_caught() -> None:
    class Trusting(Means):
        def load(self, state: Any) -> Any:
            return self

    with pytest.raises(AssertionError, match="another method"):
        LEARNER_CHECKS["state_of_another_method"](Trusting())


@pytest.mark.parametrize("kind", [Flattener, Turner, Scaler, Mixer, Rotator, Scrambler])
def test_nodes_in_a_linear_disguise_are_found(kind: type[Learner]) -> None:
    assert found_examples(Means()) is None
    assert found_examples(kind()) is not None


def test_each_way_to_look_finds_what_it_is_for() -> None:
    rows = planted()
    assert matches(torch.cat([torch.ones(5), -3 * rows[7]]), rows)
    assert not matches(rows.sum(dim=0), rows)
    assert spans(secret(4) @ rows[:4], rows)
    assert not spans(rows.unflatten(0, (4, 20)).sum(dim=1), rows)  # four sums
    assert responds(rows, rows + 1, rows - 1)
    assert not responds(rows, rows + 1, rows - 1 + rows**2)
