"""The conformance checks can fail: each catches a learner that breaks its rule."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from undrift import Graph, Learner, Task
from undrift.learners import Acil
from undrift.learners.additive import Classifier
from undrift.learners.base import at_nodes
from undrift.learners.kept import Inventory
from undrift.learners.ledger import Ledger
from undrift.learners.sgc_ridge import HopRows, SgcRidge
from undrift.testing import LEARNER_CHECKS, check_learner
from undrift.testing.check_state import found_examples
from undrift.typing import Progress, silent


@dataclass(frozen=True, eq=False)
class Learned:
    classes: tuple[int, ...]
    num_features: int
    means: Tensor
    extra: Tensor | None = None


@dataclass(kw_only=True)
class Means(Learner):
    """Nearest class mean: the smallest honest learner."""

    name: ClassVar[str] = "means"
    learned_type: ClassVar[type] = Learned
    scale: float = 1.0

    def _learn(self, task: Task, progress: Progress) -> Learned:
        progress("means", 0, 1)
        x, labels = _dense(task.graph), task.graph.labels
        assert labels is not None
        new = torch.stack([x[task.train & (labels == c)].mean(dim=0) for c in task.classes])
        old = self.learned_
        if old is None:
            return Learned(task.classes, x.shape[1], new)
        return Learned(
            (*old.classes, *task.classes), x.shape[1], torch.cat([old.means, new]), old.extra
        )

    def _scores(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        return -self.scale * torch.cdist(at_nodes(_dense(graph), nodes), learned.means)


def _dense(graph: Graph) -> Tensor:
    return graph.features if isinstance(graph.features, Tensor) else graph.features.to_dense()


def test_an_honest_learner_passes() -> None:
    check_learner(Means())


def learned(change: Callable[[Learned, Task], Learned]) -> Callable[[], Learner]:
    """Changes what the honest learner learned."""

    def learn(self: Means, task: Task, progress: Progress) -> Learned:
        return change(Means._learn(self, task, progress), task)

    return kind(Means, _learn=learn)


def _scored(change: Callable[[Tensor, Graph], Tensor]) -> Callable[..., Tensor]:
    def scores(self: Means, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        return at_nodes(change(Means._scores(self, learned, graph, None), graph), nodes)

    return scores


def kind(parent: type[Learner], **parts: Any) -> Callable[[], Learner]:
    """A learner with some parts of its class replaced."""
    broken = type("Broken", (parent,), parts)
    if issubclass(parent, Acil):
        return lambda: broken.from_params(epochs=2, hidden=(8,), alpha=2)
    return broken


def secret(size: int) -> Tensor:
    return torch.randn(size, size, generator=torch.Generator().manual_seed(9))


def keeping(disguise: Callable[[Tensor], Tensor]) -> Callable[[], Learner]:
    """Keeps nodes of the newest task in some disguise and says it keeps none."""
    return learned(lambda found, task: replace(found, extra=disguise(_dense(task.graph))))


counter = itertools.count()


def _restored(self: Means, state: Any) -> Means:
    Means.load(self, state)
    self.learned_ = replace(self.learned_, means=self.learned_.means * 1.001)
    return self


def first(act: Callable[[Means, Task], object]) -> Callable[[], Learner]:
    """Does something else before it learns."""

    def learn(self: Means, task: Task, progress: Progress) -> Learned:
        act(self, task)
        return Means._learn(self, task, progress)

    return kind(Means, _learn=learn)


def _hasten(self: Means, task: Task) -> None:
    if self.learned_ is not None:
        self.learned_ = replace(self.learned_, means=self.learned_.means + 1)


def _nosy(self: Means, task: Task, progress: Progress) -> Learned:
    return Means._learn(self, Task(task.graph, task.labels >= 0), progress)


def _place(scores: Tensor, graph: Graph) -> Tensor:
    return scores + torch.arange(graph.num_nodes).unsqueeze(1) * torch.arange(scores.shape[1])


def _blind(scores: Tensor, graph: Graph) -> Tensor:
    return scores if isinstance(graph.features, Tensor) else scores.flip(1)


def _guessed(self: Means, graph: Graph, nodes: Tensor | None = None) -> Tensor:
    return torch.full_like(Means.predict(self, graph, nodes), 77)


@dataclass(kw_only=True)
class Silent(Means):
    hidden_choice: int = field(default=3, repr=False)


def _nearly(self: Any) -> Any:
    sums = self.learned_.sums
    moved = replace(sums, moment=sums.moment * (1 + 1e-7))
    self.learned_ = replace(self.learned_, sums=moved, solution=None)
    return self


NEAR = {"looks": lambda self, graph, nodes, hops: torch.zeros_like(nodes).bool()}
BENT = {"scores": lambda self, rows: Classifier.scores(self, rows).exp()}


def _changed(name: str, parent: type, parts: dict[str, Any]) -> Callable[[], Learner]:
    """Has a value with other parts where `name` gives one."""
    to = type("Other", (parent,), parts)
    return kind(SgcRidge, **{name: lambda *given: to(**vars(getattr(SgcRidge, name)(*given)))})


def _eager(self: Acil, *batch: Any, progress: Progress = silent, **how: Any) -> Any:
    Acil.forget(self, *batch, **how)
    progress("forget", 0, 1)
    return self


APPROXIMATE = kind(
    Acil,
    forget=lambda self, *batch, **how: _nearly(Acil.forget(self, *batch, **how)),
    merge=lambda self, other, **how: _nearly(Acil.merge(self, other, **how)),
)


def _telling(change: Callable[[Any], Any]) -> Callable[[], Learner]:
    """Says of its one sum something that is not so."""

    def inventory(self: Acil, learned: Any) -> Inventory:
        (kept,) = Acil._inventory(self, learned).sums
        return Inventory((change(kept),), rest=("plan", "solution"))

    return kind(Acil, _inventory=inventory)


BROKEN: dict[str, tuple[Callable[[], Learner], str]] = {
    "does not restore what it knew": (kind(Means, load=_restored), "restored_continues"),
    "another result for the same seed": (
        learned(lambda found, _: replace(found, means=found.means + next(counter))),
        "same_seed_same_result",
    ),
    "draws from torch's generator": (first(lambda *_: torch.rand(1)), "same_seed_same_result"),
    "takes any state": (kind(Means, load=lambda self, state: self), "state_of_another_method"),
    "keeps every node": (keeping(lambda rows: rows), "keeps_examples"),
    "keeps one node": (keeping(lambda rows: rows[:1]), "keeps_examples"),
    "says it keeps examples": (kind(Means, keeps_examples=True), "keeps_examples"),
    "writes before it is done": (first(_hasten), "rejected_task"),
    "predicts what nobody taught": (kind(Means, predict=_guessed), "unseen_never_predicted"),
    "scores by place": (kind(Means, _scores=_scored(_place)), "node_order"),
    "answers in its own order": (
        kind(
            Means,
            _scores=lambda self, known, graph, nodes: Means._scores(
                self, known, graph, None if nodes is None else nodes.sort().values
            ),
        ),
        "some_nodes",
    ),
    "writes into the task": (
        first(lambda _, task: _dense(task.graph).mul_(2)),
        "input_not_changed",
    ),
    "hides a parameter": (Silent, "clone_and_repr"),
    "reads sparse features wrongly": (kind(Means, _scores=_scored(_blind)), "sparse_features"),
    "gives a class two columns": (kind(Means, returns=True), "returning_classes"),
    "reads labels of context": (kind(Means, _learn=_nosy), "context_nodes"),
    "takes everything for done": (kind(Means, forget=lambda self, *_, **__: self), "refused_verbs"),
    "forgets nearly": (APPROXIMATE, "forgetting_is_exact"),
    "merges nearly": (APPROXIMATE, "merging_is_exact"),
    "is less exact than it says": (APPROXIMATE, "exactness_is_kept"),
    "looks farther than it says": (kind(SgcRidge, _hops=lambda *_: 1), "some_nodes"),
    "forgets a node, not what others saw": (
        _changed("_plan", HopRows, NEAR),
        "forgetting_is_exact",
    ),
    "is not linear in its weights": (_changed("_solve", Classifier, BENT), "exactness_is_kept"),
    "forgets before it is done": (kind(Acil, forget=_eager), "interrupted_verbs"),
    "forgets what it never saw": (
        kind(Acil, _replaced=lambda self, *_: (self.learned_, None)),
        "refused_verbs",
    ),
    "names no sum": (
        kind(Acil, _inventory=lambda self, known: replace(Acil._inventory(self, known), sums=())),
        "inventory",
    ),
    "says that sums are weights": (
        kind(Acil, _inventory=lambda *_: Inventory(rest=("plan", "sums", "solution"))),
        "inventory",
    ),
    "names rows that it did not sum": (
        _telling(lambda kept: replace(kept, rows=lambda *given: kept.rows(*given) + 0.1)),
        "inventory",
    ),
    "counts more rows": (
        _telling(lambda kept: replace(kept, counts=kept.counts + 100)),
        "inventory",
    ),
    "knows no batch": (kind(Acil, _ledger=lambda _: Ledger.empty(complete=False)), "counted_once"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_each_rule_is_enforced(what: str) -> None:
    broken, check = BROKEN[what]
    with pytest.raises(AssertionError):
        LEARNER_CHECKS[check](broken())


def test_whatever_goes_wrong_the_check_is_named() -> None:
    with pytest.raises(AttributeError) as found:
        check_learner(kind(Means, clone=lambda self: None)())
    assert "check_" in str(found.value.__notes__)


DISGUISES: dict[str, Callable[[Tensor], Tensor]] = {
    "flat": lambda rows: torch.cat([torch.tensor([3.0]), rows.flatten()]),
    "turned": lambda rows: rows.T.contiguous(),
    "scaled": lambda rows: rows / rows.norm(dim=1, keepdim=True),
    "one node with another": lambda rows: secret(len(rows)) @ rows,
    "one feature with another": lambda rows: rows @ secret(rows.shape[1]),
    "everything with everything": lambda rows: secret(rows.numel()) @ rows.flatten() + 5.0,
}


@pytest.mark.parametrize("how", DISGUISES)
def test_nodes_in_a_linear_disguise_are_found(how: str) -> None:
    assert found_examples(keeping(lambda rows: DISGUISES[how](rows[:4]))()) is not None
