"""Every method there is, one entry each; nothing is imported until a learner is made."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from undrift.errors import unknown_name

if TYPE_CHECKING:
    from undrift.learners.base import Learner

__all__ = ["DEFAULT", "METHODS", "Method", "default_learner", "make_learner", "method_class"]


@dataclass(frozen=True)
class Method:
    """What the tables say about a method, and where its class is."""

    name: str
    display: str
    family: str
    paper: str
    keeps_examples: bool
    keeps: str
    where: str


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("bare", "Bare", "bound", "-", False, "one encoder and head", "bare:Bare"),
        Method("joint", "Joint", "bound", "-", True, "every task graph", "joint:Joint"),
        Method(
            "lwf",
            "LwF",
            "regularisation",
            "Li and Hoiem, ECCV 2016",
            False,
            "one encoder and head",
            "lwf:Lwf",
        ),
        Method(
            "ewc",
            "EWC",
            "regularisation",
            "Kirkpatrick et al., PNAS 2017",
            False,
            "one encoder and head, an importance and an anchor per parameter",
            "ewc:Ewc",
        ),
        Method(
            "mas",
            "MAS",
            "regularisation",
            "Aljundi et al., ECCV 2018",
            False,
            "one encoder and head, an importance per parameter",
            "mas:Mas",
        ),
        Method(
            "twp",
            "TWP",
            "regularisation",
            "Liu, Yang and Wang, AAAI 2021",
            False,
            "one encoder and head, an importance and an anchor per parameter",
            "twp:Twp",
        ),
        Method(
            "er-gnn",
            "ER-GNN",
            "rehearsal",
            "Zhou and Cao, AAAI 2021",
            True,
            "nodes of every class, one encoder and head",
            "er_gnn:ErGnn",
        ),
        Method(
            "cat",
            "CaT",
            "rehearsal",
            "Liu, Qiu and Huang, ICDM 2023",
            True,
            "a condensed graph per task, one encoder and head",
            "cat:Cat",
        ),
        Method(
            "polo",
            "POLO",
            "prototypes",
            "Wang et al., ACM MM 2023",
            False,
            "one encoder and head, a mean and a radius per class",
            "polo:Polo",
        ),
        Method(
            "efc",
            "EFC",
            "prototypes",
            "Magistri et al., ICLR 2024",
            False,
            "one encoder and head, a mean and a covariance per class, E",
            "efc:Efc",
        ),
        Method(
            "acil",
            "ACIL",
            "analytic",
            "Zhuang et al., NeurIPS 2022",
            False,
            "R and Q of the classifier, one encoder",
            "acil:Acil",
        ),
        Method(
            "ds-al",
            "DS-AL",
            "analytic",
            "Zhuang et al., AAAI 2024",
            False,
            "R and Q of two streams, one encoder",
            "ds_al:DsAl",
        ),
        Method(
            "dpcr",
            "DPCR",
            "analytic",
            "He et al., ICML 2025",
            False,
            "mean and second moment per class, one model",
            "dpcr:Dpcr",
        ),
        Method(
            "adr",
            "ADR",
            "analytic",
            "Song, Guan and Kong, Analytic Drift Resister",
            False,
            "R and Q per layer and of the classifier, two encoders",
            "adr:Adr",
        ),
        Method(
            "adr-plus",
            "ADR+",
            "analytic",
            "-",
            False,
            "R and Q per layer and of the classifier, two encoders",
            "adr_plus:AdrPlus",
        ),
        Method(
            "propagation",
            "Propagation",
            "analytic",
            "-",
            False,
            "R and Q of the training and of the validation nodes",
            "propagation:Propagation",
        ),
        Method(
            "hybrid",
            "Hybrid",
            "analytic",
            "-",
            False,
            "R and Q of the training and of the validation nodes, one encoder",
            "hybrid:Hybrid",
        ),
    )
}


def method_class(name: str) -> type[Learner]:
    """The class behind a method's name; an unknown name prints the list."""
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    module, _, attribute = METHODS[name].where.partition(":")
    found: type[Learner] = getattr(import_module(f"undrift.learners.{module}"), attribute)
    return found


DEFAULT = "propagation"
"""The method for those who have not chosen one: see docs/choosing-a-method.md."""


def default_learner(seed: int = 0, device: str = "cpu") -> Learner:
    """The learner to begin with: the most accurate one here that keeps no example.

    It needs no setting; see docs/choosing-a-method.md for when to take another.

    >>> default_learner().name
    'propagation'
    """
    return make_learner(DEFAULT, seed=seed, device=device)


def make_learner(name: str, **params: Any) -> Learner:
    """A learner by its name, with some hyperparameters set.

    >>> make_learner("adr", gamma=0.1).params()["gamma"]
    0.1
    """
    return method_class(name).from_params(**params)
