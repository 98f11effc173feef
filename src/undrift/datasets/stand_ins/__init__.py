"""Stand-ins: generated graphs of the size and shape of datasets that are not at hand.

What can be real is real (see `StandIn`); the rest is drawn from a seed. Whatever is made of one
carries `provenance["stand_in"]`, which says how much of it is real; `marked` words it in titles.
Reading the list and the sizes needs neither torch, numpy nor a data file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from undrift.datasets.catalogue import DATASETS
from undrift.datasets.dataset import Dataset, check_statistics
from undrift.errors import InputError, unknown_name

if TYPE_CHECKING:
    from undrift.graphs import Graph

MARK = "stand-in"


def marked(title: str, stand_in: object = True) -> str:
    """A title that says once that its data is a stand-in, where it is one.

    >>> marked("Reddit-CL"), marked("Reddit-CL stand-in"), marked("CS-CL", False)
    ('Reddit-CL (stand-in)', 'Reddit-CL stand-in', 'CS-CL')
    """
    return f"{title} ({MARK})" if stand_in and MARK not in title.lower() else title


@dataclass(frozen=True)
class StandIn:
    """An imitation of the dataset of the same name in the catalogue.

    `file` is the data file with its real part, None where nothing is real; `parts` says how
    much of it is real. `maker` is the module whose `make(path, scale, directed, seed)` returns
    the graph and the number of edges to compare with the dataset's. A plan that takes it in
    place of the dataset takes it at `plan_scale`; one that is `scalable` has other sizes too.
    """

    dataset: str
    file: str | None
    parts: str
    maker: str
    scalable: bool = False
    plan_scale: float = 1.0

    def on_disk(self) -> bool:
        """Whether it can be generated now: its real part is there, or it has none."""
        from undrift.datasets.folder import data_folder

        return self.file is None or (data_folder() / self.file).is_file()

    def counts(self, scale: float = 1.0) -> dict[str, int]:
        """The statistics of the dataset, or what is left of them at a smaller scale."""
        counts = DATASETS[self.dataset].counts
        if scale == 1:
            return counts
        nodes = sum(scaled_classes(self.dataset, scale))
        return {**counts, "nodes": nodes, "edges": 2 * scaled_links(self.dataset, scale)}


STAND_INS: dict[str, StandIn] = {
    stand_in.dataset: stand_in
    for stand_in in (
        StandIn("cora-full", "cora_full_topology.npz", "real links and labels", "cora_full"),
        StandIn("ogbn-arxiv", "arxiv_labels_split.npz", "real labels", "arxiv"),
        StandIn("reddit", None, "all generated", "reddit", scalable=True, plan_scale=0.05),
    )
}


def load_stand_in(
    name: str, *, scale: float = 1.0, directed: bool = False, seed: int = 0
) -> tuple[Graph, dict[str, str]]:
    """The stand-in for a dataset, and its provenance: how much is real, the call, the real file.

    The same arguments give the same graph. It is checked against the dataset's statistics, or
    what is left of them at a smaller `scale`. What takes long to draw is cached on disk.

    >>> graph, provenance = load_stand_in("reddit", scale=0.01)
    >>> graph, provenance["stand_in"]
    (Graph(2378 nodes, 23780 edges, 602 features dense, 41 classes), 'all generated')
    """
    from undrift.datasets.checksums import check_recorded
    from undrift.datasets.folder import find_file

    if name not in STAND_INS:
        raise unknown_name(MARK, name, STAND_INS)
    stand_in = STAND_INS[name]
    check_options(f"the {MARK} for {name}", DATASETS[name], stand_in, scale, directed)
    if seed < 0:
        raise InputError(f"the seed of the {MARK} for {name} must be 0 or more, not {seed}")
    options = {"scale": scale} if stand_in.scalable else {}
    options |= {"directed": directed} if DATASETS[name].directed else {}
    call = ", ".join(f"{key}={value}" for key, value in (options | {"seed": seed}).items())
    maker = import_module(f"{__name__}.{stand_in.maker}")
    provenance = {"stand_in": stand_in.parts, "generator": f"{maker.__name__}.make({call})"}
    path = None if stand_in.file is None else find_file(stand_in.file)
    if path is not None:
        provenance[path.name] = check_recorded(path)
    graph, edges = maker.make(path, scale, directed, seed)
    way = f"check {stand_in.file or 'the generator'}"
    counts = stand_in.counts(scale)
    check_statistics(graph, edges, counts, name=name, holder=f"the {MARK} for it", way=way)
    return graph, provenance


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


def check_options(
    what: str, dataset: Dataset, stand_in: StandIn | None, scale: float, directed: bool
) -> None:
    """Reject a scale or a direction that a dataset or its stand-in, called `what`, has not."""
    if not (math.isfinite(scale) and 0 < scale <= 1):
        raise InputError(
            f"the scale of {what} must be a number above 0 and at most 1, not {scale:g}; for "
            "example 0.01"
        )
    if scale != 1 and not (stand_in and stand_in.scalable):
        raise InputError(f"{what} has one size; leave the scale out or take reddit-cl-{MARK}")
    if directed and not dataset.directed:
        raise InputError(f"{what} has no directed form, its edges go both ways; leave directed out")
