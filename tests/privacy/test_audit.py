from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from undrift import Adr, Graph, Joint, Learner, PrivatePropagation, Propagation, Task, make_learner
from undrift.learners import DsAl
from undrift.learners.base import at_nodes
from undrift.learners.kept import Inventory
from undrift.learners.parts.backbone import Backbone
from undrift.privacy import attacks
from undrift.privacy.attacks import Finding, auc_interval
from undrift.privacy.audit import ROWS_PER_COLUMN, Audit, Behind, audit, lines
from undrift.testing import tiny_graph, tiny_stream


def narrow(**params: Any) -> Propagation:
    """A learner that keeps its whole Gram matrix, over few columns."""
    return Propagation(**{"hops": 2, "fourier": 0, "rank": 0, **params})


def words(rows: int = 40, columns: int = 4) -> Graph:
    """Nodes with words, two classes; the last word is one node's alone."""
    x = np.random.default_rng(0).random((rows, columns))
    x[:, -1] = 0
    x[3, -1] = 1
    return Graph.from_arrays(x, np.zeros((2, 0), dtype=int), np.arange(rows) % 2)


def test_tensors_are_listed_and_rows_behind_them_counted() -> None:
    learner = narrow().observe(tiny_graph())
    found = audit(learner, names={0: "mule"})
    listed = {each.name: each.shape for each in found.kept}
    assert listed == {name: tuple(t.shape) for name, t in learner.state().tensors.items()}
    assert found.nbytes == learner.nbytes()
    (mix,) = [each for each in found.behind if each.name == "mix"]
    assert (mix.rows, mix.columns, mix.rows_per_column) == (60, 12, 5)
    assert mix.smallest == ("mule", 10)
    assert mix.thinnest is None  # numbers of both signs cancel, and tell nothing
    told = "\n".join(lines(found))
    assert "smallest class 'mule' with 10" in told
    assert "class 'mule' is the smallest" in told
    assert "class 0" not in told


def test_a_column_with_one_node_behind_it_is_thin_and_is_that_node() -> None:
    learner = narrow(homophily=0.0).observe(words())
    found = audit(learner)
    (mix, *_) = found.behind
    assert mix.thinnest == pytest.approx(1.0)
    assert mix.typical is not None
    assert 20 < mix.typical <= 40
    assert any("a column with 1.0 rows, under 5" in phrase for phrase in found.broken)
    gram = learner.learned_.sums.variants["mix"].gram
    row = torch.nn.functional.normalize(words().features[3].double(), dim=0)
    column = torch.nn.functional.normalize(gram[:, -1], dim=0)
    assert float(row @ column) == pytest.approx(1.0)


def test_the_verdict_follows_from_the_figures() -> None:
    passed = audit(narrow(sketch=8, gamma=0.1).observe(tiny_graph(nodes=240)))
    assert passed.passed
    assert passed.verdict.startswith("no threshold is broken (attacks: foretold)")
    learner = narrow().observe(tiny_graph())  # ten nodes of each class
    few, enough = (audit(learner, least_rows=least) for least in (11, 10))
    assert not few.passed
    assert f"60 rows in 12 columns, under {ROWS_PER_COLUMN:g} each" in few.verdict
    assert any("class '0' has 10 rows, under 11" in broken for broken in few.broken)
    assert not any("class" in broken for broken in enough.broken)


def test_with_data_attacks_are_tried() -> None:
    """Fewer rows than columns: the span tells members from nodes that were context."""
    task = Task(tiny_graph(features=40), torch.arange(60) % 7 > 2, classes=range(6))
    found = audit(narrow(homophily=0.0, sketch=64).observe(task), [task])
    (span,) = [e for e in found.findings if e.attack == "span" and e.where == "mix"]
    assert span.measured
    assert any(each.attack == "small class" for each in found.findings)
    # of the attacks on one sum the worst is named
    phrases = [phrase for phrase in found.broken if phrase.startswith("mix:") and "auc" in phrase]
    mine = [e for e in found.findings if e.where == "mix" and e.attack != "all candidates"]
    best = max(each.figure for each in mine)
    assert len(phrases) == 1
    assert f"auc {best:.2f} (" in phrases[0]  # its interval stands behind it
    assert phrases[0].endswith("not under 0.6")


def test_examples_and_weights_are_named() -> None:
    first = tiny_stream().task(0)
    small = {"epochs": 1, "hidden": (4, 4)}
    kept = audit(Joint(**small).observe(first))
    assert kept.examples
    assert kept.verdict.startswith("not passed: examples are kept")
    sums = audit(Adr(**small, alpha=1).observe(first))
    assert [each.name for each in sums.behind][-1] == "classifier"
    assert sums.behind[-1].smallest == ("0", 6)
    nothing = audit(narrow())
    assert nothing.passed
    assert nothing.verdict == "no sum over rows is kept; what weights give away was not looked at"


def test_sums_with_noise_are_judged_by_their_epsilon() -> None:
    first, *_ = tiny_stream()
    settings: dict[str, Any] = {"epsilon": 2.0, "class_list": (0, 1)}
    found = audit(PrivatePropagation(**settings).observe(first))
    assert found.passed
    assert "epsilon 2, delta 1e-06 for any one node" in found.verdict
    # whoever has the seed has the noise
    seeded = audit(PrivatePropagation(**settings, testing=True).observe(first))
    assert not seeded.passed
    assert "epsilon" not in seeded.verdict


def test_directions_are_the_columns_of_what_is_seen_through_them() -> None:
    graph = tiny_graph(nodes=240, features=40)
    found = audit(Propagation(hops=2, fourier=0, gamma=0.1, rank=8).observe(graph))
    (mix,) = found.behind
    assert (mix.rows, mix.columns) == (240, 8)
    assert mix.thinnest is None
    assert "mix: 240 rows in 8 directions, under 150 each" in found.verdict
    assert audit(Propagation(hops=2, fourier=0, gamma=0.1, rank=1).observe(graph)).passed
    whole = audit(Propagation(hops=2, fourier=0, gamma=0.1, rank=0).observe(graph))
    assert (whole.behind[0].columns, whole.passed) == (40, False)


def unlabelled_third(nodes: int = 60, features: int = 12) -> Task:
    """A batch of six classes, of which every third node has no label."""
    graph = tiny_graph(nodes=nodes, features=features)
    return Task(graph, torch.arange(nodes) // 6 % 3 != 2, classes=range(6))


@dataclass(frozen=True, eq=False)
class Whatever:
    classes: tuple[int, ...]
    num_features: int
    weights: Tensor
    bread: Tensor
    vector: Tensor


@dataclass(kw_only=True)
class Plain(Learner):
    """Ridge regression on features, as a package from outside may have it."""

    name: ClassVar[str] = "plain"
    learned_type: ClassVar[type] = Whatever

    def _learn(self, task: Task, progress: Any) -> Whatever:
        progress("sum", 0, 1)
        x = task.graph.features.to_dense()[task.train].double()
        y = torch.nn.functional.one_hot(task.labels[task.train]).double()
        gram = x.T @ x
        weights = torch.linalg.solve(gram + torch.eye(x.shape[1]), x.T @ y)
        return Whatever(task.classes, x.shape[1], weights, self.kept(gram), x.mean(dim=0))

    def kept(self, gram: Tensor) -> Tensor:
        return gram

    def _scores(self, learned: Whatever, graph: Graph, nodes: Tensor | None) -> Tensor:
        return at_nodes(graph.features.to_dense().double(), nodes) @ learned.weights


class Flat(Plain):
    """Keeps the numbers in one line, and names its weights alone."""

    def kept(self, gram: Tensor) -> Tensor:
        return gram[tuple(torch.tril_indices(*gram.shape))]

    def _inventory(self, learned: Whatever) -> Inventory:
        return Inventory(rest=("weights",))


@pytest.mark.parametrize(
    ("kind", "named"),
    [(Plain, "weights (12 x 6), bread (12 x 12) may"), (Flat, "not judged: bread (78) may")],
)
@pytest.mark.parametrize("tried", [False, True])
def test_what_a_method_does_not_say_is_not_judged(kind, named, tried) -> None:
    task = unlabelled_third()
    found = audit(kind().observe(task), [task] if tried else [])
    assert not found.passed
    assert found.verdict.startswith("not judged: ")
    assert named in found.verdict
    assert "vector" not in found.verdict
    assert "_inventory" in found.verdict


def test_a_class_mean_of_nobody_knows_how_many_rows_is_not_judged() -> None:
    streams = DsAl(alpha=1, backbone=Backbone(epochs=2, hidden=(2, 2)))
    found = audit(streams.observe(unlabelled_third(nodes=360)))
    assert "main stream: how many rows each class has is not kept" in found.unjudged
    assert not found.passed
    counted = audit(replace(streams, cleansing=False).observe(unlabelled_third(nodes=360)))
    assert counted.unjudged == ()


def test_a_batch_without_other_nodes_cannot_be_attacked() -> None:
    many = Task(tiny_graph(nodes=240), torch.ones(240, dtype=torch.bool))
    found = audit(narrow(sketch=8, gamma=0.1).observe(many), [many])
    (untried,) = [each for each in found.findings if each.figure is None]
    assert untried.where == "mix"
    assert "240 rows that were summed and 0 that were not" in untried.tried
    assert "attacks: not tried on mix" in found.verdict
    assert "attacks: tried" not in found.verdict
    assert any("not tried" in line for line in lines(found))


@pytest.mark.parametrize(("others", "given"), [(4, False), (5, True)])
def test_few_other_nodes_give_no_area(others: int, given: bool) -> None:
    task = Task(tiny_graph(nodes=240), torch.arange(240) >= others, classes=range(6))
    found = audit(narrow(sketch=8, gamma=0.1).observe(task), [task])
    areas = [each for each in found.findings if each.measure == "auc" and each.interval]
    assert bool(areas) is given
    assert all(each.interval[0] <= each.figure <= each.interval[1] for each in areas)


def test_a_high_area_of_few_nodes_may_be_chance() -> None:
    def of(area: float, others: int) -> Finding:
        between = auc_interval(area, 100, others)
        return Finding("span", "mix", "tried", "auc", area, interval=between)

    chance, sure, low = of(0.66, 8), of(0.66, 100), of(0.55, 100)
    assert (chance.leaks, chance.open) == (False, True)
    assert (sure.leaks, sure.open) == (True, False)
    assert (low.leaks, low.open) == (False, False)
    open_one = Audit("m", (), (), (chance,), (), unjudged=("mix: may be chance",))
    assert not open_one.passed
    behind = (Behind("mix", 100, 1),)
    assert "is not ruled out" in Audit("m", (), behind, (of(0.55, 20),), ()).verdict
    assert "(attacks: tried)" in Audit("m", (), behind, (of(0.5, 500),), ()).verdict


def test_a_high_area_that_may_be_chance_is_not_judged(monkeypatch) -> None:
    task = Task(tiny_graph(nodes=240), torch.arange(240) >= 8, classes=range(6))
    learner = narrow(sketch=8, gamma=0.1).observe(task)
    chance = torch.arange(240.0)
    chance[:8] = 84  # of the eight others: lower than two thirds of the members
    monkeypatch.setattr(attacks, "membership_statistics", lambda *_, **__: {"luck": chance})
    found = audit(learner, [task])
    (phrase,) = found.unjudged
    assert phrase.startswith("mix: luck, auc 0.6")
    assert "8 that were not" in phrase
    assert f"not judged: {phrase}" in found.verdict
    assert not any("luck" in other for other in found.broken)


def test_no_tensor_of_the_default_is_a_sum_over_validation_nodes() -> None:
    """Validation nodes leave no trace: they are as nodes without a label."""
    for task in tiny_stream():
        assert bool(task.val.any())
        hidden = Task(task.graph, task.train, None, task.val | task.test, task.classes)
        with_them, without = (narrow().observe(each).state().tensors for each in (task, hidden))
        assert with_them.keys() == without.keys()
        for name, tensor in with_them.items():
            assert torch.equal(tensor, without[name]), name
        learned = narrow().observe(task).learned_
        assert int(learned.sums.counts.sum()) == int(task.train.sum())


KEEPS_A_GRAM: dict[str, dict[str, Any]] = {
    "al-gnn": {"hidden": (8, 8), "alpha": 2},
    "ugcn": {"hidden": (8, 8)},
    "sgc-ridge": {},
}


@pytest.mark.parametrize("name", KEEPS_A_GRAM)
def test_a_whole_gram_is_seen_whoever_keeps_it(name: str) -> None:
    learner = make_learner(name, **KEEPS_A_GRAM[name])
    task = unlabelled_third()
    learner.observe(task)
    found = audit(learner)
    (sums,) = found.behind
    assert (sums.rows, sums.products) == (42, True)
    assert sums.smallest is not None
    assert f"42 rows in {sums.columns} columns, under 30 each" in found.verdict
    tried = audit(learner, [task])
    assert any(each.attack == "leverage" and each.measured for each in tried.findings)
