"""What a learner that lives with its data must do: classes that return, forgetting, merging.

Part of `check_learner`. A learner says on its class what it can (`returns`, `forgets`, `merges`);
here it is held to that, and to refusing the rest in one sentence.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.additive import Classifier
from undrift.learners.any_learner import Verb
from undrift.learners.base import Learner
from undrift.learners.reading import EXACT
from undrift.learners.small_classes import has_noise
from undrift.storage.state import State
from undrift.streams.task import Task, without
from undrift.testing.graphs import tiny_graph
from undrift.typing import Progress


def tiny_batch(classes: Sequence[int], part: slice = slice(None)) -> Task:
    """A batch of `tiny_graph`: its nodes of these classes, or a part of them.

    Of every class's nodes the third is for validation and the fourth has no label.
    """
    graph = tiny_graph()
    labels = graph.labelled()
    nodes = [(labels == c).nonzero().flatten()[part] for c in classes]
    place = torch.cat([torch.arange(each.numel()) % 5 for each in nodes])
    found = graph.subgraph(torch.cat(nodes))
    unknown = place == 3
    hidden = replace(found, labels=found.labelled().masked_fill(unknown, -1))
    return Task(hidden, ~unknown & (place != 2), place == 2, classes=classes)


def tiny_path() -> Graph:
    """The nodes of `tiny_graph` in a row, each with an edge to the next: rows are far apart."""
    graph, i = tiny_graph(), torch.arange(59)
    return Graph.from_arrays(graph.features, torch.stack([i, i + 1]), graph.labels, undirected=True)


def taught(learner: Learner, *batches: Task) -> Learner:
    """A clone that has observed these batches."""
    clone = learner.clone()
    for batch in batches:
        clone.observe(batch)
    return clone


def copied(state: State) -> State:
    """A state as a file gives it back: tensors in order of rows, as another layout may round."""
    tensors = {key: tensor.contiguous().clone() for key, tensor in state.tensors.items()}
    return State(state.method, dict(state.params), tensors, dict(state.values))


def unchanged(learner: Learner, before: Tensor, why: str) -> None:
    """The scores of `tiny_graph` are what they were."""
    assert torch.equal(learner.scores(tiny_graph()), before), f"{why} changed what was learned"


def same(found: Learner, wanted: Learner, what: str, tolerance: float = EXACT) -> None:
    """Both know the same classes and score alike, to `tolerance` of the largest score."""
    graph = tiny_graph()
    assert set(found.classes_) == set(wanted.classes_), (
        f"{what} leaves the classes {found.classes_}, not {wanted.classes_}"
    )
    order = [found.classes_.index(c) for c in wanted.classes_]
    expected = wanted.scores(graph).double()
    error = float((found.scores(graph).double()[:, order] - expected).abs().max())
    relative = error / float(expected.abs().max())
    assert relative <= tolerance, f"{what} is off by {relative:.1e} from training from scratch"


def refused(what: str, call: Callable[[], object]) -> str:
    """The sentence with which a call is refused."""
    try:
        call()
    except InputError as error:
        return str(error)
    raise AssertionError(f"{what} was accepted; it must raise InputError")


def interrupted(verb: str, learner: Learner, call: Callable[[Progress], object]) -> None:
    """A call that breaks off where it tells its progress leaves the learner as it was."""
    before = learner.scores(tiny_graph())

    def stop(phase: str, done: int, total: int) -> None:
        raise InterruptedError

    try:
        call(stop)
    except InterruptedError:
        unchanged(learner, before, f"an interrupted {verb}")
    else:
        raise AssertionError(f"{verb} must call progress at least once")


def check_returning_classes(learner: Learner) -> None:
    """A batch of known and new classes is learned, or refused in one sentence."""
    graph = tiny_graph()
    mine = learner.clone().observe(tiny_batch((0, 3)))
    before = mine.scores(graph)
    both, known = tiny_batch((4, 3)), tiny_batch((0, 4), slice(0, 5))
    if not learner.can("returns"):
        refused("a class that was observed before", lambda: mine.observe(both))
        unchanged(mine, before, "a class observed before")
        return
    mine.observe(both)
    assert mine.classes_ == (0, 3, 4), "new classes follow the known ones"
    restored = learner.clone().load(copied(mine.state())).observe(known)
    mine.observe(known)
    assert mine.classes_ == (0, 3, 4), "a batch of known classes brings no other"
    scores = mine.scores(graph)
    assert scores.shape == (graph.num_nodes, 3), "one column per class seen"
    assert bool(torch.isfinite(scores).all()), "scores must be finite"
    assert torch.equal(scores, restored.scores(graph)), (
        "restored between two batches of one class, a learner must go on bit for bit"
    )


def check_context_nodes(learner: Learner) -> None:
    """Nodes without a label are context: no label but those to be learned is read."""
    graph = tiny_batch((0, 1, 2)).graph
    observed = learner.clone().observe(graph)
    assert observed.classes_ == (0, 1, 2), "a node without a label brings no class"
    task = learner.as_task(graph)
    context = ~(task.train | task.val)
    labels = graph.labelled().masked_fill(context, 2)
    lying = Task(replace(graph, labels=labels), task.train, task.val, context, task.classes)
    assert torch.equal(learner.clone().observe(lying).scores(graph), observed.scores(graph)), (
        "a label outside the training and validation nodes was read"
    )


def check_refused_verbs(learner: Learner) -> None:
    """What a learner cannot do it refuses in one sentence, and stays as it was."""
    first = tiny_batch((0, 3), slice(0, 5))
    mine = learner.clone().observe(first)
    before = mine.scores(tiny_graph())
    verbs: dict[str, tuple[Verb, Callable[[], object]]] = {
        "forgetting": ("forgets", lambda: mine.forget(first)),
        "revising": ("forgets", lambda: mine.revise(first, first)),
        "merging": ("merges", lambda: mine.merge(learner.clone())),
        "a sibling": ("merges", mine.sibling),
    }
    for what, (verb, call) in verbs.items():
        if not learner.can(verb):
            refused(what, call)
            unchanged(mine, before, what)
    if learner.can("forgets"):
        strange, more = tiny_batch((5,)), tiny_batch((0, 3))
        refused("forgetting a class never observed", lambda: mine.forget(strange))
        refused("a batch that is not in", lambda: mine.forget(more))
        refused("more rows than there are", lambda: mine.forget(more, again=True))
        unchanged(mine, before, "what was never observed")
    if learner.can("merges"):
        other = learner.clone().set_params(seed=learner.seed + 1)
        refused("merging other settings", lambda: mine.merge(other))


def check_interrupted_verbs(learner: Learner) -> None:
    """A verb that breaks off in the middle leaves the learner as it was."""
    if not learner.can("forgets"):
        return
    first, second = tiny_batch((0, 3)), tiny_batch((1, 2))
    mine = taught(learner, first, second)
    interrupted("forget", mine, lambda stop: mine.forget(second, progress=stop))
    other = tiny_batch((1,))
    interrupted("revise", mine, lambda stop: mine.revise(second, other, progress=stop))


def check_forgetting_is_exact(learner: Learner) -> None:
    """A learner is as if trained so: without a batch, with another, in another order or parts."""
    if not learner.can("forgets"):
        return
    base, one, two = tiny_batch((0, 3)), tiny_batch((1, 2)), tiny_batch((4, 3))
    small = tiny_batch((1, 2), slice(0, 7))
    whole, less = taught(learner, base, one, two), taught(learner, base, two)
    mine = learner.clone().load(copied(whole.state()))
    same(mine.forget(one), less, "forgetting a batch")
    assert mine.classes_ == (0, 3, 4), "a class without rows is known no more"
    same(less.observe(one), whole, "another order")
    for again in (one, *_halves(one)):
        mine.observe(again)
    same(mine.forget(one), whole, "forgetting one of two, the other in two parts")
    revision = mine.revise(one, small, again=True)  # it is in as two parts
    same(mine, taught(learner, base, small, two), "revising a batch")
    path = Task(tiny_path(), torch.ones(60, dtype=torch.bool))
    left = without(path, torch.tensor([30]))
    assert left is not None
    erased = taught(learner, base, path).forget(path, [30])
    same(erased, taught(learner, base, left), "forgetting a node, and what other rows saw of it,")
    assert revision.added <= revision.rows, "more rows added than the batch has"
    assert revision.subtracted > 0, "a revision must count the rows it subtracts"


def check_counted_once(learner: Learner) -> None:
    """A batch is counted once and subtracted once, also by a learner that was restored."""
    first, second = tiny_batch((0, 3)), tiny_batch((1, 2))
    mine = taught(learner, first, second)
    restored = learner.clone().load(copied(mine.state()))
    for each in (mine, restored)[: 1 if has_noise(learner) else 2]:
        before = each.scores(tiny_graph())
        refused("a batch that is in already", partial(each.observe, second))
        unchanged(each, before, "a batch that is in already")
    if learner.can("forgets"):
        mine.forget(second, [0])
        refused("a node that is out", lambda: mine.forget(second, [0]))
        mine.forget(second)
        refused("a batch that is out", lambda: mine.forget(second))
    if learner.can("merges"):
        here = taught(learner, first, second)
        other = here.sibling().observe(second)
        refused("a batch that both hold", lambda: here.merge(other))


def check_exactness_is_kept(learner: Learner) -> None:
    """Scores are no further from those of training from scratch than `exactness` says."""
    if not learner.can("forgets"):
        return
    base, one, two = tiny_batch((0, 3)), tiny_batch((1, 2)), tiny_batch((4, 3))
    mine = taught(learner, base, one, two).forget(one)
    exactness = mine.exactness()
    if exactness is not None:
        assert exactness <= EXACT, f"a tiny graph is exact to {exactness:.1e} only, it says"
        same(mine, taught(learner, base, two), "what it says", exactness)
        known: Any = mine.learned_
        parts = known.scored_rows(tiny_graph(), None).pieces()
        rows = torch.cat([part.to_dense() for part in parts])
        linear = Classifier(known.answer.weights, getattr(known.answer, "offset", None))
        close = torch.allclose(linear.scores(rows).cpu(), mine.scores(tiny_graph()).to(rows.dtype))
        assert close, "a solution with weights W must score rows z as z W, plus its offset"


def check_merging_is_exact(learner: Learner) -> None:
    """Two learners that merge are one that has observed both sides' batches."""
    if not learner.can("merges"):
        return
    base, one, two = tiny_batch((0, 3)), tiny_batch((1, 2)), tiny_batch((4, 3, 1))
    here = taught(learner, base)
    there = here.sibling()
    assert not there.classes_, "a sibling has observed nothing"
    there.observe(two)
    same(here.observe(one).merge(there), taught(learner, base, one, two), "merging")
    assert there.classes_ == (4, 3, 1), "merging must leave the other side as it was"


def _halves(batch: Task) -> tuple[Task, Task]:
    """The same batch as two on one graph, each with a part of its rows of every class."""
    first = torch.zeros_like(batch.train)
    for c in batch.classes:
        mine = (batch.train & (batch.labels == c)).nonzero().flatten()
        first[mine[: mine.numel() // 2]] = True
    return Task(batch.graph, first, batch.val), Task(batch.graph, batch.train & ~first)


def named_checks(names: Mapping[str, Any]) -> dict[str, Callable[[Learner], None]]:
    """The functions among these whose names begin with `check_`, without that."""
    return {n.removeprefix("check_"): f for n, f in names.items() if n.startswith("check_")}


LIVING_CHECKS = named_checks(globals())
