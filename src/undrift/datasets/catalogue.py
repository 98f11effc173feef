"""The public datasets, each with its stream. Reading the list needs no torch and no data file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from undrift.datasets.dataset import Dataset, RemoteFile
from undrift.datasets.stand_in import StandIn
from undrift.errors import InputError, unknown_name
from undrift.plugins import Registry

if TYPE_CHECKING:
    from undrift.graphs import Graph

# pinned commits: the bytes at these addresses cannot change, and their git ids are known
_GNN = "github.com/shchur/gnn-benchmark"
_GRAPH2GAUSS = "github.com/abojchevski/graph2gauss"
_HETEROPHILOUS = "github.com/yandex-research/heterophilous-graphs"
_FOLDERS = {
    _GNN: "raw/1e72912a0810cdf27ae54fd589a3b43358a2b161/data/npz",
    _GRAPH2GAUSS: "raw/240248289d38c22ba28ea8e56b7d6873e291499b/data",
    _HETEROPHILOUS: "raw/a431395582e929d88271309716bea4fe24ce6318/data",
}
_COLUMNS = ["name", "title", "stream", "base", "increment", "nodes", "edges", "features", "classes"]


def _dataset(*row: Any, **rest: Any) -> Dataset:
    """A dataset from a row of the table whose head is `_COLUMNS`."""
    return Dataset(**dict(zip(_COLUMNS, row, strict=True)), **rest)


def _in_git(
    row: tuple[Any, ...],
    place: tuple[str, str, str],
    *,
    here: str | None = None,
    size: int | None = None,
) -> Dataset:
    """A dataset of one `.npz` under the MIT licence; `place` is its repository, name and git id.

    `here` is its name on disk.
    """
    repository, file, git = place
    url = f"https://{repository}/{_FOLDERS[repository]}/{file}"
    remote = RemoteFile(here or file, url, size=size, git=git)
    return _dataset(*row, files=(remote,), licence="MIT", source=repository)


OWN: dict[str, Dataset] = {
    dataset.stream_name: dataset
    for dataset in (
        _dataset(
            *("synthetic", "Synthetic", "", 4, 2, 3_000, 24_000, 1_000, 10),
            files=(),
            licence="MIT",
            source="nothing to download",
            reader="undrift.datasets.synthetic:generate",
        ),
        _in_git(
            ("coauthor-cs", "Coauthor-CS", "CS-CL", 5, 2, 18_333, 163_788, 6_805, 15),
            (_GNN, "ms_academic_cs.npz", "9bdd7da943d86b74297e8d32e99eb64245b52835"),
            size=12_835_626,
        ),
        _in_git(
            ("cora-full", "CoraFull", "CoraFull-CL", 30, 2, 19_793, 126_842, 8_710, 70),
            (_GNN, "cora_full.npz", "2478a176d63fe71090f4c21fe588bf5d381cad80"),
        ),
        _dataset(  # citations, each in one direction
            *("ogbn-arxiv", "ogbn-arxiv", "Arxiv-CL", 20, 2, 169_343, 1_166_243, 128, 40),
            files=(
                RemoteFile(
                    "arxiv.zip", "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
                ),
            ),
            licence="ODC-BY",
            source="ogb.stanford.edu",
            reader="undrift.datasets.ogb:load",
            directed=True,
        ),
        _dataset(
            *("reddit", "Reddit", "Reddit-CL", 20, 2, 232_965, 114_615_892, 602, 41),
            files=(
                RemoteFile(
                    "reddit.zip",
                    "https://data.dgl.ai/dataset/reddit.zip",
                    members=("reddit_data.npz", "reddit_graph.npz"),
                ),
            ),
            licence="not stated",
            source="GraphSAGE, from data.dgl.ai",
            reader="undrift.datasets.npz:read_reddit",
            left_out=(40,),  # as in the paper: after 20 + 10 x 2 the last one has no partner
        ),
        _in_git(
            ("coauthor-physics", "Coauthor-Physics", "Physics-CL", 2, 1, 34_493, 495_924, 8_415, 5),
            (_GNN, "ms_academic_phy.npz", "8d8bc12e29aa67f6753a712080eae81079bd7d01"),
            here="coauthor_physics.npz",
        ),
        _in_git(
            (
                "amazon-computers",
                "Amazon Computers",
                "Computers-CL",
                4,
                2,
                13_752,
                491_722,
                767,
                10,
            ),
            (_GNN, "amazon_electronics_computers.npz", "8120e4148a330b3fafe37c4476823302d9d834b9"),
            here="amazon_computers.npz",
        ),
        _in_git(
            ("amazon-photo", "Amazon Photo", "Photo-CL", 4, 2, 7_650, 238_162, 745, 8),
            (_GNN, "amazon_electronics_photo.npz", "97323743cb56aca9dd611f5b4b46862c1c9c6bd9"),
            here="amazon_photo.npz",
        ),
        _in_git(
            ("cora-ml", "Cora-ML", "CoraML-CL", 3, 2, 2_995, 16_316, 2_879, 7),
            (_GRAPH2GAUSS, "cora_ml.npz", "2df67d57d5c34554a689f8addde7fc3bdf37a415"),
        ),
        _in_git(
            ("citeseer-full", "CiteSeer, full", "CiteSeer-CL", 2, 2, 4_230, 10_674, 602, 6),
            (_GRAPH2GAUSS, "citeseer.npz", "b611f48626e7f40fcc81a36b4f022979ea998b38"),
            here="citeseer_full.npz",
        ),
        _in_git(
            ("dblp", "DBLP", "DBLP-CL", 2, 1, 17_716, 105_734, 1_639, 4),
            (_GRAPH2GAUSS, "dblp.npz", "3e179a9ebf2968d9ad67544c8978bf4759e489d8"),
        ),
        # neighbours disagree: 21 and 22 % of the edges join equal classes
        _in_git(
            ("squirrel", "Squirrel, filtered", "Squirrel-CL", 3, 2, 2_223, 93_996, 2_089, 5),
            (_HETEROPHILOUS, "squirrel_filtered.npz", "a59f6d2e0dc1f11b8e503c426e86f53124c21eb1"),
            size=208_215,
        ),
        _in_git(
            ("actor", "Actor", "Actor-CL", 3, 2, 7_600, 53_318, 932, 5),
            (_HETEROPHILOUS, "actor.npz", "84327f6738c09166380b31319f9f5063ab1104e0"),
            size=252_956,
        ),
    )
}
"""Our own, by the names of their streams."""

BENCHMARKS = Registry("stream", "undrift.streams", OWN)


class _Datasets(Mapping[str, Dataset]):
    """Every dataset that is read from files, by its name: ours, then those of other packages."""

    def __iter__(self) -> Iterator[str]:
        return (dataset.name for dataset in self._all())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, name: str) -> Dataset:
        for dataset in self._all():
            if dataset.name == name:
                return dataset
        raise KeyError(name)

    def _all(self) -> Iterator[Dataset]:
        every = (entry for _, entry in BENCHMARKS.usable(checked_entry))
        return (entry for entry in every if isinstance(entry, Dataset) and entry.files)


DATASETS: Mapping[str, Dataset] = _Datasets()


def stream_entry(name: str) -> Dataset | StandIn:
    """What a stream is made of: ours, what another package brings, or `module:attribute`."""
    return checked_entry(name, BENCHMARKS.load(name))


def checked_entry(name: str, found: Any) -> Dataset | StandIn:
    """What a stream's name stands for, if it is a dataset or a stand-in of that name."""
    if not isinstance(found, Dataset | StandIn):
        raise InputError(
            f"stream {name!r} is a {type(found).__name__}; give an undrift Dataset, with its "
            "statistics, base and increment"
        )
    if ":" not in name and found.stream_name != name:
        raise InputError(
            f"{BENCHMARKS.origin(name)} brings the stream {name!r}, which calls itself "
            f"{found.stream_name!r}; give the entry point and the dataset's stream the same name"
        )
    return found


def dataset_of(file: str) -> str | None:
    """The dataset that a file of this name belongs to, or None.

    >>> dataset_of("reddit_graph.npz")
    'reddit'
    """
    return next((name for name, dataset in DATASETS.items() if file in dataset.names), None)


def load_dataset(name: str, **options: Any) -> tuple[Graph, dict[str, str]]:
    """A dataset's graph and its provenance, by its name (see `Dataset.read`)."""
    if name not in DATASETS:
        raise unknown_name("dataset", name, DATASETS)
    return DATASETS[name].read(**options)
