"""The stand-ins for CoraFull, ogbn-arxiv and Reddit: see `undrift.datasets.catalogue`.

What takes long to draw is cached on disk. Reading the list and the sizes needs neither torch,
numpy nor a data file.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from undrift.datasets.catalogue import DATASETS, MARK, RemoteFile, check_options
from undrift.errors import InputError, unknown_name

if TYPE_CHECKING:
    from undrift.graphs import Graph

CORA_FULL = replace(
    DATASETS["cora-full"],
    files=(RemoteFile("cora_full_topology.npz", ""),),
    reader="paper.stand_ins.cora_full:make",
    parts="real links and labels",
)
ARXIV = replace(
    DATASETS["ogbn-arxiv"],
    files=(RemoteFile("arxiv_labels_split.npz", ""),),
    reader="paper.stand_ins.arxiv:make",
    parts="real labels",
)
REDDIT = replace(
    DATASETS["reddit"],
    files=(),
    reader="paper.stand_ins.reddit:make",
    parts="all generated",
    scaled="paper.stand_ins:reddit_counts",
)

STAND_INS = {stand_in.name: stand_in for stand_in in (CORA_FULL, ARXIV, REDDIT)}
"""By the names of the datasets that they imitate."""


def load_stand_in(
    name: str, *, scale: float = 1.0, directed: bool = False, seed: int = 0
) -> tuple[Graph, dict[str, str]]:
    """The stand-in for a dataset, and its provenance (see `Dataset.read`).

    >>> graph, provenance = load_stand_in("reddit", scale=0.01)
    >>> graph, provenance["stand_in"]
    (Graph(2378 nodes, 23780 edges, 602 features dense, 41 classes), 'all generated')
    """
    if name not in STAND_INS:
        raise unknown_name(MARK, name, STAND_INS)
    found = STAND_INS[name]
    check_options(f"the {MARK} for {name}", found, scale, directed)
    if seed < 0:
        raise InputError(f"the seed of the {MARK} for {name} must be 0 or more, not {seed}")
    options = {"scale": scale} if found.scaled else {}
    options |= {"directed": directed} if found.directed else {}
    return found.read(**options, seed=seed)


def reddit_counts(scale: float) -> dict[str, int]:
    """What the stand-in for Reddit has at a scale.

    >>> reddit_counts(0.01)
    {'nodes': 2378, 'edges': 23780}
    """
    nodes = sum(scaled_classes("reddit", scale))
    return {"nodes": nodes, "edges": 2 * scaled_links("reddit", scale)}


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
