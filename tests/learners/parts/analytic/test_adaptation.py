"""Adaptation: where it starts from, and that learners with other merges share it."""

from __future__ import annotations

import torch

from undrift.encoders.encoder import Encoder
from undrift.learners.adr import Adr
from undrift.learners.adr_plus import AdrPlus
from undrift.learners.parts.analytic.adaptation import adapt, next_start
from undrift.learners.parts.training.backbone import generator_for
from undrift.sharing import sharing
from undrift.testing.graphs import tiny_stream
from undrift.typing import silent

QUICK = {"epochs": 3, "hidden": (8, 6)}


def test_learners_with_other_merges_share_one_training() -> None:
    stream = tiny_stream()
    learners = (
        Adr.from_params(**QUICK),
        Adr.from_params(**QUICK, gamma=0.1, balanced=True),
        AdrPlus.from_params(**QUICK, logits="task"),
    )
    for task in stream:
        with sharing():
            for learner in learners:
                learner.observe(task)
        first, *others = (learner.learned_.start for learner in learners)
        assert all(other is first for other in others)


def test_the_same_generator_gives_the_same_model() -> None:
    task = tiny_stream().task(0)
    learner = Adr.from_params(**QUICK)
    one, other = (
        adapt(learner, None, task, generator=generator_for(0, 0), progress=silent)[1]
        for _ in range(2)
    )
    assert torch.equal(one.encoder.weights[0], other.encoder.weights[0])


def test_what_is_kept_for_the_next_task() -> None:
    learner = Adr.from_params(**QUICK, start="base")
    before = learner.observe(tiny_stream().task(0)).learned_
    other = Encoder(before.merged.architecture, before.merged.weights)
    assert next_start("previous", before, other) is other
    assert next_start("base", before, other) is before.start
    assert next_start("base", None, other) is other
    assert next_start("merged", before, other) is None
    assert next_start("scratch", before, other) is None
