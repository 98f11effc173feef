"""The public datasets: what they are, where they come from, and how they are read.

Reading the list needs neither torch nor a data file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from undrift.errors import InputError, unknown_name

if TYPE_CHECKING:
    from undrift.graphs import Graph

__all__ = ["DATASETS", "Dataset", "RemoteFile", "dataset_of", "load_dataset"]


@dataclass(frozen=True)
class RemoteFile:
    """A file at a public address.

    `name` is what it is called on disk. Sizes and checksums are given only where they are
    published: `git` is the id of the file in the repository that publishes it, which is the SHA-1
    of its size and bytes. A zip with `members` is unpacked: those files stay, the zip does not.
    """

    name: str
    url: str
    size: int | None = None
    sha256: str | None = None
    md5: str | None = None
    git: str | None = None
    members: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """What lies in the data folder once it is fetched."""
        return self.members or (self.name,)


@dataclass(frozen=True)
class Dataset:
    """A dataset with its published statistics, which a loaded graph must match.

    `edges` is counted as it is published: an undirected edge twice, a citation of ogbn-arxiv
    once. `reader` names a function, "module:function", that takes the files' paths and returns
    the graph and the number of edges to compare.
    """

    name: str
    title: str
    files: tuple[RemoteFile, ...]
    nodes: int
    edges: int
    features: int
    classes: int
    licence: str
    source: str
    reader: str = "undrift.datasets.npz:load"

    @property
    def names(self) -> tuple[str, ...]:
        """The files that must be in the data folder to load it."""
        return tuple(name for file in self.files for name in file.names)

    def on_disk(self) -> bool:
        """Whether all its files are there."""
        from undrift.datasets.folder import data_folder

        folder = data_folder()
        return all((folder / name).is_file() for name in self.names)


# pinned commits: the bytes at these addresses cannot change, and their git ids are known
_GNN_BENCHMARK = (
    "https://github.com/shchur/gnn-benchmark/raw/1e72912a0810cdf27ae54fd589a3b43358a2b161/data/npz/"
)
_GRAPH2GAUSS = (
    "https://github.com/abojchevski/graph2gauss/raw/240248289d38c22ba28ea8e56b7d6873e291499b/data/"
)

DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            name="coauthor-cs",
            title="Coauthor-CS",
            files=(
                RemoteFile(
                    "ms_academic_cs.npz",
                    _GNN_BENCHMARK + "ms_academic_cs.npz",
                    size=12_835_626,
                    git="9bdd7da943d86b74297e8d32e99eb64245b52835",
                ),
            ),
            nodes=18_333,
            edges=163_788,
            features=6_805,
            classes=15,
            licence="MIT",
            source="github.com/shchur/gnn-benchmark",
        ),
        Dataset(
            name="cora-full",
            title="CoraFull",
            files=(
                RemoteFile(
                    "cora_full.npz",
                    _GNN_BENCHMARK + "cora_full.npz",
                    git="2478a176d63fe71090f4c21fe588bf5d381cad80",
                ),
            ),
            nodes=19_793,
            edges=126_842,
            features=8_710,
            classes=70,
            licence="MIT",
            source="github.com/shchur/gnn-benchmark",
        ),
        Dataset(
            name="ogbn-arxiv",
            title="ogbn-arxiv",
            files=(
                RemoteFile("arxiv.zip", "http://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"),
            ),
            nodes=169_343,
            edges=1_166_243,  # citations, each in one direction
            features=128,
            classes=40,
            licence="ODC-BY",
            source="ogb.stanford.edu",
            reader="undrift.datasets.ogb:load",
        ),
        Dataset(
            name="reddit",
            title="Reddit",
            files=(
                RemoteFile(
                    "reddit.zip",
                    "https://data.dgl.ai/dataset/reddit.zip",
                    members=("reddit_data.npz", "reddit_graph.npz"),
                ),
            ),
            nodes=232_965,
            edges=114_615_892,
            features=602,
            classes=41,
            licence="not stated",
            source="GraphSAGE, from data.dgl.ai",
            reader="undrift.datasets.reddit:load",
        ),
        Dataset(
            name="coauthor-physics",
            title="Coauthor-Physics",
            files=(
                RemoteFile(
                    "coauthor_physics.npz",
                    _GNN_BENCHMARK + "ms_academic_phy.npz",
                    git="8d8bc12e29aa67f6753a712080eae81079bd7d01",
                ),
            ),
            nodes=34_493,
            edges=495_924,
            features=8_415,
            classes=5,
            licence="MIT",
            source="github.com/shchur/gnn-benchmark",
        ),
        Dataset(
            name="amazon-computers",
            title="Amazon Computers",
            files=(
                RemoteFile(
                    "amazon_computers.npz",
                    _GNN_BENCHMARK + "amazon_electronics_computers.npz",
                    git="8120e4148a330b3fafe37c4476823302d9d834b9",
                ),
            ),
            nodes=13_752,
            edges=491_722,
            features=767,
            classes=10,
            licence="MIT",
            source="github.com/shchur/gnn-benchmark",
        ),
        Dataset(
            name="amazon-photo",
            title="Amazon Photo",
            files=(
                RemoteFile(
                    "amazon_photo.npz",
                    _GNN_BENCHMARK + "amazon_electronics_photo.npz",
                    git="97323743cb56aca9dd611f5b4b46862c1c9c6bd9",
                ),
            ),
            nodes=7_650,
            edges=238_162,
            features=745,
            classes=8,
            licence="MIT",
            source="github.com/shchur/gnn-benchmark",
        ),
        Dataset(
            name="cora-ml",
            title="Cora-ML",
            files=(
                RemoteFile(
                    "cora_ml.npz",
                    _GRAPH2GAUSS + "cora_ml.npz",
                    git="2df67d57d5c34554a689f8addde7fc3bdf37a415",
                ),
            ),
            nodes=2_995,
            edges=16_316,
            features=2_879,
            classes=7,
            licence="MIT",
            source="github.com/abojchevski/graph2gauss",
        ),
        Dataset(
            name="citeseer-full",
            title="CiteSeer, full",
            files=(
                RemoteFile(
                    "citeseer_full.npz",
                    _GRAPH2GAUSS + "citeseer.npz",
                    git="b611f48626e7f40fcc81a36b4f022979ea998b38",
                ),
            ),
            nodes=4_230,
            edges=10_674,
            features=602,
            classes=6,
            licence="MIT",
            source="github.com/abojchevski/graph2gauss",
        ),
        Dataset(
            name="dblp",
            title="DBLP",
            files=(
                RemoteFile(
                    "dblp.npz",
                    _GRAPH2GAUSS + "dblp.npz",
                    git="3e179a9ebf2968d9ad67544c8978bf4759e489d8",
                ),
            ),
            nodes=17_716,
            edges=105_734,
            features=1_639,
            classes=4,
            licence="MIT",
            source="github.com/abojchevski/graph2gauss",
        ),
    )
}


def dataset_of(file: str) -> str | None:
    """The dataset that a file of this name belongs to, or None.

    >>> dataset_of("reddit_graph.npz")
    'reddit'
    """
    return next((name for name, dataset in DATASETS.items() if file in dataset.names), None)


def load_dataset(name: str, **options: Any) -> tuple[Graph, dict[str, str]]:
    """A dataset's graph, and its provenance: `file` and `sha256` (where there are several files,
    of each one, separated by commas).

    The graph is checked against the published statistics, and the files against the checksums
    recorded when they were fetched, so neither a wrong nor a changed file passes for the
    dataset. `options` go to its reader, such as `directed=True` for ogbn-arxiv.
    """
    if name not in DATASETS:
        raise unknown_name("dataset", name, DATASETS)
    from undrift.datasets.checksums import check_recorded
    from undrift.datasets.folder import find_file

    dataset = DATASETS[name]
    paths = [find_file(file) for file in dataset.names]
    digests = [check_recorded(path) for path in paths]
    graph, edges = _reader(dataset)(paths, **options)
    _check_statistics(graph, edges, dataset)
    return graph, {"file": ", ".join(dataset.names), "sha256": ", ".join(digests)}


def _reader(dataset: Dataset) -> Callable[..., tuple[Graph, int]]:
    module, _, function = dataset.reader.partition(":")
    read: Callable[..., tuple[Graph, int]] = getattr(import_module(module), function)
    return read


def _check_statistics(graph: Graph, edges: int, dataset: Dataset) -> None:
    labels = graph.labels
    found = {
        "nodes": graph.num_nodes,
        "edges": edges,
        "features": graph.num_features,
        "classes": 0 if labels is None else int(labels[labels >= 0].unique().numel()),
    }
    for what, count in found.items():
        wanted = getattr(dataset, what)
        if count != wanted:
            raise InputError(
                f"{' and '.join(dataset.names)} hold {count:,} {what}, but {dataset.name} has "
                f"{wanted:,}; get the published one with: undrift data fetch --force {dataset.name}"
            )
