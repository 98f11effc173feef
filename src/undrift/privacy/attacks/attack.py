"""All attacks on one learner: what they achieve with the data, what is foretold without."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from undrift.learners.base import Learner
from undrift.privacy.attacks.finding import Finding
from undrift.privacy.attacks.kept import Candidates, KeptSum, kept_sums
from undrift.privacy.attacks.membership import Spectrum
from undrift.privacy.attacks.roc import auc
from undrift.privacy.attacks.small_classes import expected_cosine, nearest, read_from_means
from undrift.streams.task import Task


def attack_state(
    learner: Learner, tasks: Iterable[Task], before: Learner | None = None
) -> list[Finding]:
    """What each attack achieves on this learner, with batches that it observed.

    `tasks`: batches as they were observed; their nodes that were not learned from are the others
    that members are told from. `before`: the learner as it was before the last of them.
    """
    batches = list(tasks)
    return [
        finding for kept in kept_sums(learner) for finding in _attacks_on(kept, batches) if finding
    ]


def _attacks_on(kept: KeptSum, tasks: Sequence[Task]) -> list[Finding | None]:
    known = tasks if kept.current else tasks[-1:]
    candidates = Candidates.of(kept, known)
    return [_small_classes(kept, candidates), *_membership(kept, candidates)]


def _small_classes(kept: KeptSum, candidates: Candidates) -> Finding | None:
    if kept.means is None or kept.counts is None:
        return None
    found = nearest(read_from_means(kept.means), candidates.rows[candidates.members])
    found = torch.where(kept.counts > 0.5, found.to(kept.counts), 0.0)
    c = int(found.argmax())
    rows = int(kept.counts[c])
    tried = f"the mean of class {kept.classes[c]} as a row of it"
    return Finding("small class", kept.name, tried, "cosine", float(found[c]), rows)


def _membership(kept: KeptSum, candidates: Candidates) -> list[Finding | None]:
    told = candidates.members
    if kept.gram is None or bool(told.all()) or not bool(told.any()):
        return []
    spectrum = Spectrum.of(kept.gram)
    tried = f"{int(told.sum())} rows that were summed against {int((~told).sum())} that were not"
    return [
        Finding(name, kept.name, tried, "auc", auc(-value, told), kept.count)
        for name, value in (
            ("span", spectrum.residual(candidates.rows)),
            ("leverage", spectrum.leverage(candidates.rows)),
        )
    ]


def predicted(learner: Learner) -> list[Finding]:
    """What the attacks would achieve on this learner, from its counts alone.

    For the mean of the smallest class the cosine that rows at right angles would have; for
    membership by span, 1 where there are fewer rows than columns and 0.5 otherwise.

    >>> from undrift.learners.propagation import Propagation
    >>> from undrift.testing.graphs import tiny_stream
    >>> first, *_ = tiny_stream()
    >>> predicted(Propagation().observe(first))[0].rows
    6
    """
    return [finding for kept in kept_sums(learner) for finding in _predicted_of(kept)]


def _predicted_of(kept: KeptSum) -> list[Finding]:
    found = []
    if kept.counts is not None and bool((kept.counts > 0.5).any()):
        sizes = torch.where(kept.counts > 0.5, kept.counts, torch.inf)
        c = int(sizes.argmin())
        rows = int(kept.counts[c])
        tried = f"class {kept.classes[c]} is the smallest: {rows} rows"
        cosine = expected_cosine(rows)
        found.append(Finding("small class", kept.name, tried, "cosine", cosine, rows, False))
    if kept.gram is not None:
        tried = f"{kept.count} rows in {kept.width} columns: {kept.count / kept.width:.2f} each"
        figure = 1.0 if kept.count < kept.width else 0.5
        found.append(Finding("span", kept.name, tried, "auc", figure, kept.count, False))
    return found
