"""Stand-ins: generated graphs of the size and shape of datasets that are not at hand.

What can be real is real (see `StandIn`); the rest is drawn from a seed. Reading the list and the
sizes needs neither torch, numpy nor a data file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from undrift.datasets.catalogue import DATASETS
from undrift.errors import InputError, unknown_name

if TYPE_CHECKING:
    from pathlib import Path

    from undrift.graphs import Graph

__all__ = ["STAND_INS", "StandIn", "check_scale", "load_stand_in", "scaled_classes", "scaled_links"]


@dataclass(frozen=True)
class StandIn:
    """An imitation of the dataset of the same name in the catalogue.

    `file` is the data file with its real part, None where nothing is real; `parts` says how
    much of it is real. `maker` is the module whose `make(path, scale, directed, seed)` returns
    the graph and the number of edges to compare with the dataset's.
    """

    dataset: str
    file: str | None
    parts: str
    maker: str
    scalable: bool = False
    directed: bool = False

    def on_disk(self) -> bool:
        """Whether it can be generated now: its real part is there, or it has none."""
        from undrift.datasets.folder import data_folder

        return self.file is None or (data_folder() / self.file).is_file()


STAND_INS: dict[str, StandIn] = {
    stand_in.dataset: stand_in
    for stand_in in (
        StandIn("cora-full", "cora_full_topology.npz", "real links and labels", "cora_full"),
        StandIn("ogbn-arxiv", "arxiv_labels_split.npz", "real labels", "arxiv", directed=True),
        StandIn("reddit", None, "all generated", "reddit", scalable=True),
    )
}


def load_stand_in(
    name: str, *, scale: float = 1.0, directed: bool = False, seed: int = 0
) -> tuple[Graph, dict[str, str]]:
    """The stand-in for a dataset, and its provenance: the call, and the file of its real part.

    The same arguments give the same graph. It is checked against the dataset's statistics, or
    what is left of them at a smaller `scale`. What takes long to draw is cached on disk.

    >>> graph, _ = load_stand_in("reddit", scale=0.01)
    >>> graph
    Graph(2378 nodes, 23780 edges, 602 features dense, 41 classes)
    """
    if name not in STAND_INS:
        raise unknown_name("stand-in", name, STAND_INS)
    stand_in = STAND_INS[name]
    _check_options(stand_in, scale, directed, seed)
    options = {"scale": scale} if stand_in.scalable else {}
    options |= {"directed": directed} if stand_in.directed else {}
    call = ", ".join(f"{key}={value}" for key, value in (options | {"seed": seed}).items())
    provenance = {"generator": f"undrift.datasets.stand_ins.{stand_in.maker}.make({call})"}
    graph, edges = _maker(stand_in)(_real_part(stand_in, provenance), scale, directed, seed)
    _check_statistics(graph, edges, stand_in, scale)
    return graph, provenance


def _real_part(stand_in: StandIn, provenance: dict[str, str]) -> Path | None:
    if stand_in.file is None:
        return None
    from undrift.datasets.checksums import check_recorded
    from undrift.datasets.folder import find_file

    path = find_file(stand_in.file)
    provenance[stand_in.file] = check_recorded(path)
    return path


def _maker(stand_in: StandIn) -> Callable[..., tuple[Graph, int]]:
    make: Callable[..., tuple[Graph, int]] = import_module(
        f"undrift.datasets.stand_ins.{stand_in.maker}"
    ).make
    return make


# sizes -----------------------------------------------------------------------------------

_SIZE_RATIO = 80.0
_SMALLEST = 10
_LEAST_DEGREE = 10


def scaled_classes(name: str, scale: float) -> tuple[int, ...]:
    """How many nodes each class has in a stand-in that is generated whole.

    Sizes fall geometrically, the largest 80 times the smallest, in an order that mixes large and
    small ones. At a smaller scale no class falls below 10 nodes, so that it can be split.

    >>> sizes = scaled_classes("reddit", 1.0)
    >>> len(sizes), sum(sizes), max(sizes), min(sizes)
    (41, 232965, 24470, 305)
    """
    dataset = DATASETS[name]
    count = dataset.classes
    # 41 is a prime, so stepping by 30 meets every rank once; these steps put 48 % of the nodes
    # into the first 20 classes and give neighbouring classes ratios from 3 to 27
    ranks = [(30 * c + 22) % count for c in range(count)]
    shares = [_SIZE_RATIO ** (-rank / (count - 1)) for rank in ranks]
    sizes = [int(dataset.nodes * share / sum(shares)) for share in shares]
    sizes[ranks.index(0)] += dataset.nodes - sum(sizes)
    return tuple(max(_SMALLEST, round(size * scale)) for size in sizes)


def scaled_links(name: str, scale: float) -> int:
    """How many undirected edges a stand-in that is generated whole has: about `scale`^2 of all.

    So many has the subgraph of a share `scale` of the nodes: a pair of nodes stays linked as
    often as before, and the mean degree falls with the scale, but not below 10.

    >>> [2 * scaled_links("reddit", scale) for scale in (1.0, 0.1, 0.01)]
    [114615892, 1146158, 23780]
    """
    nodes = sum(scaled_classes(name, scale))
    return max(round(DATASETS[name].edges / 2 * scale**2), nodes * _LEAST_DEGREE // 2)


def check_scale(scale: float, name: str) -> None:
    """Reject a scale that is not above 0 and at most 1."""
    if not (math.isfinite(scale) and 0 < scale <= 1):
        raise InputError(
            f"the scale of {name} must be a number above 0 and at most 1, not {scale:g}; for "
            "example 0.01"
        )


def _check_options(stand_in: StandIn, scale: float, directed: bool, seed: int) -> None:
    name = f"the stand-in for {stand_in.dataset}"
    check_scale(scale, name)
    if scale != 1 and not stand_in.scalable:
        raise InputError(f"{name} has one size, because its labels are real; leave the scale out")
    if directed and not stand_in.directed:
        raise InputError(f"{name} has no directed form; leave directed out")
    if seed < 0:
        raise InputError(f"the seed of {name} must be 0 or more, not {seed}")


def _check_statistics(graph: Graph, edges: int, stand_in: StandIn, scale: float) -> None:
    dataset = DATASETS[stand_in.dataset]
    labels = graph.labels
    classes = 0 if labels is None else int(labels[labels >= 0].unique().numel())
    whole = scale == 1
    nodes = dataset.nodes if whole else sum(scaled_classes(dataset.name, scale))
    links = dataset.edges if whole else 2 * scaled_links(dataset.name, scale)
    for what, found, wanted in (
        ("nodes", graph.num_nodes, nodes),
        ("edges", edges, links),
        ("features", graph.num_features, dataset.features),
        ("classes", classes, dataset.classes),
    ):
        if found != wanted:
            raise InputError(
                f"the stand-in for {dataset.name} has {found:,} {what} instead of {wanted:,}; "
                f"check {stand_in.file or 'the generator'}"
            )
