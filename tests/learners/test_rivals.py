"""Later closed-form methods: each equals a plain computation from all rows at once."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.harness.references import blockwise_recursion, joint_ridge
from undrift import InputError, make_learner
from undrift.analytic.statistics import one_hot
from undrift.learners.acil import Acil
from undrift.learners.al_gnn import AlGnn
from undrift.learners.gacl import Gacl
from undrift.learners.sgc_ridge import SgcRidge
from undrift.learners.ugcn import Ugcn
from undrift.testing.check_living import tiny_batch
from undrift.testing.graphs import tiny_stream

QUICK: dict[str, Any] = {"epochs": 3, "hidden": (6, 6), "alpha": 3}


def learned_rows(learner: Any) -> tuple[Tensor, Tensor, Tensor]:
    """All training rows of a stream that it learned, their targets, and its weights."""
    rows, labels = [], []
    for task in tiny_stream():
        learner.observe(task)
        rows.append(torch.as_tensor(learner.known.plan.rows_of(task.graph).to_dense())[task.train])
        labels.append(task.labels[task.train])
    targets = one_hot(torch.cat(labels), learner.classes_)
    return torch.cat(rows), targets, learner.settle().learned_.solution.weights


def test_al_gnn_is_the_published_recursion_and_trains_nothing() -> None:
    learner = AlGnn(hidden=(6, 6), alpha=3, gamma=0.01)
    rows, targets, weights = learned_rows(learner)
    slow = blockwise_recursion(list(zip(rows.split(7), targets.split(7), strict=True)), 0.01)
    assert float((weights - slow).norm() / slow.norm()) < 1e-8
    assert rows.shape[1] == 18
    assert not torch.equal(rows, learned_rows(AlGnn(hidden=(6, 6), alpha=3, seed=1))[0])


def test_ugcn_is_the_discriminant_of_class_means() -> None:
    learner = Ugcn(hidden=(7, 5), shrinkage=0.1)
    rows, targets, _ = learned_rows(learner)
    place = targets.argmax(dim=1)
    means = torch.stack([rows[place == c].mean(dim=0) for c in range(targets.shape[1])])
    around = rows - means[place]
    spread = 0.9 * around.T @ around / len(rows) + 0.1 * torch.eye(12, dtype=torch.float64)
    graph = tiny_stream().task(0).graph
    z = learner.known.plan.rows_of(graph)
    # up to what is the same for every class, scores are minus half of squared distances
    apart = z.unsqueeze(1) - means
    distance = torch.einsum("ncd,de,nce->nc", apart, spread.inverse(), apart) / 2
    own = torch.einsum("nd,de,ne->n", z, spread.inverse(), z) / 2
    assert torch.allclose(learner.scores(graph).double(), own.unsqueeze(1) - distance)


@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("sketch", [0, 9])
def test_sgc_ridge_is_one_ridge_regression(channels: bool, sketch: int) -> None:
    learner = SgcRidge(hops=2, gamma=0.5, channels=channels, sketch=sketch)
    rows, targets, weights = learned_rows(learner)
    mean = float(rows.square().sum(dim=0).mean())
    assert torch.allclose(weights, joint_ridge(rows, targets, 0.5 * mean))
    wide = tiny_stream().graph.num_features * (3 if channels else 1)
    assert rows.shape[1] == (9 if sketch else wide)


def test_gacl_equals_acil_where_classes_come_back() -> None:
    batches = [tiny_batch((0, 1, 2)), tiny_batch((1, 3)), tiny_batch((0, 4))]
    gacl, acil = Gacl.from_params(**QUICK), Acil.from_params(**QUICK)
    for batch in batches:
        gacl.observe(batch)
        acil.observe(batch)
    assert gacl.classes_ == acil.classes_ == (0, 1, 2, 3, 4)
    slow = acil.settle().known.answer.weights
    assert float((gacl.learned_.classifier - slow).norm() / slow.norm()) < 1e-8
    assert gacl.class_rows() == acil.class_rows()


@pytest.mark.parametrize(
    ("method", "params", "says"),
    [
        ("al-gnn", {"gamma": 0.0}, "gamma"),
        ("al-gnn", {"alpha": 0}, "alpha"),
        ("ugcn", {"shrinkage": 1.0}, "between 0 and 1, not 1"),
        ("ugcn", {"hidden": ()}, "one width or more"),
        ("sgc-ridge", {"hops": -1}, "hops"),
        ("sgc-ridge", {"sketch": -1}, "sketch"),
        ("gacl", {"gamma": -1.0}, "gamma"),
    ],
)
def test_wrong_settings_are_named(method: str, params: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        make_learner(method, **params)
