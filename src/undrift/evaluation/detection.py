"""How well strangeness tells unknown nodes from known ones: AUROC, AUPR, FPR95, OSCR, in percent.

Larger is stranger. Each costs one sort. Then the grades of a learner after a step.
"""

from dataclasses import replace

import torch
from torch import Tensor

from undrift.errors import InputError
from undrift.evaluation.protocols import Exam, exam_of, of_classes
from undrift.learners.base import Learner
from undrift.streams.stream import TaskStream


def auroc(known: Tensor, unknown: Tensor) -> float:
    """The share of pairs of a known and an unknown node in which the unknown one is stranger.

    An equal pair counts half.

    >>> auroc(torch.tensor([0.1, 0.2]), torch.tensor([0.2, 0.9]))
    87.5
    """
    return oscr(known, unknown, torch.ones_like(known, dtype=torch.bool))


def oscr(known: Tensor, unknown: Tensor, right: Tensor) -> float:
    """The area under correct classification over false acceptance (Dhamija et al., 2018).

    The share of pairs in which the known node's class is `right` and the unknown node is stranger.
    """
    known, unknown = _checked(known, unknown)
    ordered = unknown.sort().values
    at_most = torch.searchsorted(ordered, known[right.cpu()], right=True)
    below = torch.searchsorted(ordered, known[right.cpu()])
    stranger = unknown.numel() - (at_most + below).double() / 2
    return 100.0 * float(stranger.sum()) / (known.numel() * unknown.numel())


def aupr(known: Tensor, unknown: Tensor) -> float:
    """The average precision of calling the strangest nodes unknown; equal nodes come together.

    >>> round(aupr(torch.tensor([0.1, 0.5]), torch.tensor([0.2, 0.9])), 1)
    83.3
    """
    found, alarms = _curve(known, unknown)
    gained = found.diff(prepend=found.new_zeros(1))
    return 100.0 * float((gained * found / (found + alarms)).sum() / found[-1])


def fpr95(known: Tensor, unknown: Tensor) -> float:
    """The share of known nodes called unknown where 95 % or more of the unknown ones are found."""
    found, alarms = _curve(known, unknown)
    enough = 100 * found >= 95 * found[-1]  # whole numbers: no share is rounded
    return 100.0 * float(alarms[enough][0] / alarms[-1])


def _curve(known: Tensor, unknown: Tensor) -> tuple[Tensor, Tensor]:
    """How many unknown and known nodes are at least as strange as each value, strangest first."""
    known, unknown = _checked(known, unknown)
    values = torch.cat([known, unknown]).unique().flip(0)
    return tuple(  # type: ignore[return-value]
        (part.numel() - torch.searchsorted(part.sort().values, values)).double()
        for part in (unknown, known)
    )


def _checked(known: Tensor, unknown: Tensor) -> tuple[Tensor, Tensor]:
    if not known.numel() or not unknown.numel():
        raise InputError(
            f"detection needs known and unknown nodes, not {known.numel()} and {unknown.numel()}"
        )
    if bool(known.isnan().any() | unknown.isnan().any()):
        raise InputError("the strangeness of a node is not a number; mend the learner that made it")
    return known.double().cpu(), unknown.double().cpu()


def open_exam(stream: TaskStream, t: int) -> Exam:
    """The exam on the classes seen at step t and those of the next task that brings new ones.

    `unknown` are all nodes of the new ones, `known` the test nodes of the others, `test` of both.
    """
    seen = set(stream.seen(t))
    new = next((set(c) - seen for c in stream.classes[t + 1 :] if set(c) - seen), set())
    exam = exam_of(stream, of_classes(stream, seen | new), ("test",))
    test, unknown = exam.masks["test"], ~torch.isin(exam.truth, torch.tensor(sorted(seen)))
    return replace(exam, masks={"known": test & ~unknown, "unknown": unknown, "test": test})


def open_world(learner: Learner, stream: TaskStream, t: int) -> dict[str, float]:
    """How well strangeness tells unknown nodes from known ones; nothing once all are known."""
    exam = open_exam(stream, t)
    old, new = exam.masks["known"], exam.masks["unknown"]
    if not bool(new.any()):
        return {}
    strange = torch.empty(exam.truth.shape, dtype=torch.float64)
    strange[old | new] = learner.strangeness(exam.graph, old | new).double().cpu()
    both = strange[old], strange[new]
    right = learner.predict(exam.graph, old).cpu() == exam.truth[old]
    found = {"auroc": auroc(*both), "aupr": aupr(*both), "fpr95": fpr95(*both)}
    return found | {"oscr": oscr(*both, right)}


def anomalies(learner: Learner, stream: TaskStream, t: int) -> dict[str, float]:
    """How well anomalous test nodes are separated from normal ones (docs/anomalies.md).

    By the odds of not being normal; while no anomalous class is known, by strangeness.
    """
    if stream.normal not in stream.seen(t):
        return {}
    exam = open_exam(stream, t)
    test = exam.masks["test"]
    odd = (exam.truth != stream.normal)[test]
    if not bool(odd.any()):
        return {}
    if stream.seen(t) == (stream.normal,):
        score = learner.strangeness(exam.graph, test)
    else:
        scores = learner.scores(exam.graph, test).double()
        odds = (scores / (learner._temperature(learner.learned_) or 1.0)).log_softmax(dim=1)
        normal = torch.tensor([c == stream.normal for c in learner.classes_])
        score = odds[:, ~normal].logsumexp(dim=1) - odds[:, normal].squeeze(1)
    usual, strange = score.cpu()[~odd], score.cpu()[odd]
    return {"anomaly_auroc": auroc(usual, strange), "anomaly_ap": aupr(usual, strange)}
