"""`GraphFolder`: a graph on disk, in pieces that are read one at a time.

    graph.json                     what there is, with the SHA-256 of every other file; written last
    ids.parquet                    the id of every node, in the order of the table of nodes
    labels.npy                     int32 [nodes]: the place of its class in graph.json, or -1
    degrees.npy                    int32 [2, nodes]: edges into and out of every node
    features-00000.npy             float32 [blocks, rows, width]: some rows, in blocks of columns
    edges-00000-indptr.npy         a shard: the edges into some nodes, in compressed sparse rows
    edges-00000-indices.npy        int32: the senders
    edges-00000-weights.npy        float32: the symmetric-normalised weights (`graphs.normalise`)
    work/                          blocks of a step that is not finished; may be deleted

A block of columns of one chunk of rows lies in one piece, so that a task reads only its columns.
A folder may come from elsewhere: no link in it is followed, and nothing but files is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, field_validator
from torch import Tensor

from undrift.datasets.tables import Repairs
from undrift.errors import InputError
from undrift.graphs.scaling import sample
from undrift.sparse import Csr
from undrift.storage.files import checksum, whole_file
from undrift.storage.lock import check_own, check_own_folder, name_own, read_own
from undrift.typing import Progress, silent

Array = np.ndarray[Any, np.dtype[Any]]
FORMAT, MANIFEST, WORK = 2, "graph.json", "work"
GB = 1e9
AGAIN = "free some space and give the same command again, which goes on from here"
_RESTORE = "restore it from a copy, or import the tables again into another folder"


class Shard(NamedTuple):
    """The edges into the nodes `start` to `stop`, without `stop`."""

    start: int
    stop: int
    entries: int


class GraphManifest(BaseModel):
    """What `graph.json` says."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = FORMAT
    nodes: int
    edges: int  # directed: an undirected edge counts twice
    features: int
    columns: tuple[str, ...]
    classes: dict[str, int]  # labelled nodes by class, in the order of `labels.npy`
    directed: bool
    sources: tuple[str, ...]
    left_out: tuple[int, ...]  # repeated edges, self-loops, edges to unknown nodes; of how many
    isolated: int
    largest_degree: int
    memory: float  # GB that a task may use: it decided the sizes below
    width: int  # columns of a block
    rows: int  # rows of a chunk of features
    shards: tuple[Shard, ...]
    files: dict[str, str]  # the SHA-256 of every file
    content: str  # a SHA-256 of the graph, whatever the sizes of its pieces
    seal: str = ""  # a SHA-256 of everything else here

    @field_validator("files")
    @classmethod
    def _within(cls, files: dict[str, str]) -> dict[str, str]:
        if any(Path(name).name != name or name in ("", "..") for name in files):
            raise ValueError("a file that is not in the folder")
        return files

    def sealed(self) -> GraphManifest:
        """Itself with the seal that fits."""
        text = self.model_dump_json(exclude={"seal"})
        return self.model_copy(update={"seal": sha256(text.encode()).hexdigest()})

    @property
    def repairs(self) -> Repairs:
        """What was left out of the edges."""
        return Repairs(*self.left_out)

    @property
    def blocks(self) -> int:
        """How many blocks of columns."""
        return -(-self.features // self.width)

    @property
    def labelled(self) -> int:
        """How many nodes have a class."""
        return sum(self.classes.values())


class GraphFolder:
    """A graph that `import_graph` has written, opened for reading."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        file = self.path / MANIFEST
        data = read_own(file)
        if data is None:
            way = f"undrift graph import NODES EDGES --out {self.path} (which also finishes one)"
            raise InputError(f"there is no graph in {self.path}; make one with: {way}")
        try:
            self.manifest = GraphManifest.model_validate_json(data)
            if self.manifest != self.manifest.sealed():
                raise ValueError("other words than were written")
        except ValueError as error:
            problem = "damaged or of another version of undrift; import the tables again"
            raise InputError(f"{file} is {problem}") from error
        self.num_nodes, self.num_edges = self.manifest.nodes, self.manifest.edges
        self.num_features = self.manifest.features

    def verify(self, progress: Progress = silent) -> None:
        """Compare every byte with the checksums of the import."""
        files = self.manifest.files
        for done, (name, damaged) in enumerate(files.items()):
            progress("check", done, len(files))
            path = self.path / name
            try:
                if checksum(path) != damaged:
                    raise InputError(f"{path} is damaged or of another import; {_RESTORE}")
            except OSError as error:
                raise InputError(f"{path} is missing; {_RESTORE}") from error
        progress("check", len(files), len(files))

    @property
    def work(self) -> Path:
        """Where unfinished steps keep their files."""
        return check_own_folder(self.path / WORK)

    def nbytes(self) -> int:
        """Bytes of all its files, without those of unfinished steps."""
        return _bytes(self.path / name for name in self.manifest.files)

    def left_over(self) -> int:
        """Bytes of unfinished steps."""
        return _bytes(self.work.rglob("*"))

    def ids(self) -> Array:
        """The id of every node: the only thing here that is read as a whole."""
        import duckdb

        with name_own(self.ids_file) as name, duckdb.connect() as connection:
            found = connection.execute("SELECT id FROM read_parquet(?)", [name]).fetchnumpy()
        return np.asarray(found["id"])

    @property
    def ids_file(self) -> Path:
        """Where the ids are."""
        check_own(self.path / "ids.parquet")
        return self.path / "ids.parquet"

    @cached_property
    def labels(self) -> Array:
        """The place of every node's class among `manifest.classes`, -1 where it is unknown."""
        return self._load("labels.npy")

    @cached_property
    def degrees(self) -> Array:
        """Edges into and out of every node, `[2, nodes]`."""
        return self._load("degrees.npy")

    def rows(self, chunk: int) -> Array:
        """All features of some rows, `[rows, features]` in float64."""
        flat = np.concatenate(self._load(feature_file(chunk)), axis=1)
        return flat[:, : self.manifest.features].astype(np.float64)

    def sampled(self) -> Tensor:
        """The features of the rows that `Scaling.of` looks at."""
        wanted, size = sample(self.num_nodes), self.manifest.rows
        chunks = wanted // size
        places = {c: wanted[chunks == c] - c * size for c in chunks.unique().tolist()}
        return torch.cat([torch.from_numpy(self.rows(c))[at] for c, at in places.items()])

    def columns(self, chunk: int, block: int) -> Array:
        """One block of columns of some rows, `[rows, width]` in float32."""
        return np.asarray(self._load(feature_file(chunk))[block])

    def shards(self) -> Iterator[tuple[Shard, Array, Array, Array]]:
        """Every shard with its row pointers, senders and weights."""
        for i, shard in enumerate(self.manifest.shards):
            indptr, indices, weights = (self._load(name) for name in shard_files(i))
            yield shard, indptr, indices, weights

    def operator(self, kind: str) -> Iterator[tuple[Shard, Csr]]:
        """The rows of a normalised adjacency, a shard at a time, without self-loops, in float64."""
        for shard, indptr, indices, weights in self.shards():
            values = torch.from_numpy(weights).double()
            # the weights of symmetric count self-loops, those of row and sum do not
            values = values if kind == "symmetric" else torch.ones_like(values)
            rows, senders = torch.from_numpy(indptr), torch.from_numpy(indices)
            matrix = Csr.trusted(rows, senders, values, (len(rows) - 1, self.num_nodes))
            if kind == "row":
                degree = rows.diff().double().clamp(min=1)
                matrix = matrix * (1 / degree).float().double().unsqueeze(1)
            yield shard, matrix

    @cached_property
    def self_loops(self) -> Tensor:
        """The weight of every node's self-loop in the symmetric operator."""
        return torch.from_numpy(np.prod(inverse_roots(self.degrees), axis=0).astype(np.float32))

    def _load(self, name: str) -> Array:
        # copy on write: torch warns of arrays that it must not write to, and nobody does
        try:
            with name_own(self.path / name) as opened:
                found: Array = np.load(opened, mmap_mode="c")
        except InputError:
            raise
        except (OSError, ValueError) as error:
            raise InputError(f"{self.path / name} is missing or damaged; {_RESTORE}") from error
        return found


def _bytes(paths: Iterable[Path]) -> int:
    return sum(path.lstat().st_size for path in paths if path.is_file())


def inverse_roots(degrees: Array) -> Array:
    """`1 / sqrt(degree + 1)`, the two factors of a symmetric weight."""
    return np.asarray((degrees + 1.0) ** -0.5)


def shard_files(i: int) -> list[str]:
    """The names of the files of a shard: row pointers, senders, weights."""
    return [f"edges-{i:05}-{what}.npy" for what in ("indptr", "indices", "weights")]


def feature_file(i: int) -> str:
    """The name of the file of a chunk of rows."""
    return f"features-{i:05}.npy"


def put(path: Path, pieces: Iterable[bytes | Array], *, hashed: bool = False) -> None:
    """Write a file whole or not at all, and not through a memory map, which a full disk ends."""
    with whole_file(path, hashed=hashed, way_out=AGAIN) as file:
        for piece in pieces:
            file.write(piece if isinstance(piece, bytes) else np.ascontiguousarray(piece).data)


def put_array(path: Path, array: Array) -> None:
    """Write an array as `.npy`, whole or not at all."""
    put(path, [npy_header(array.shape, array.dtype), array])


def npy_header(shape: tuple[int, ...], dtype: Any = np.float64) -> bytes:
    """The first bytes of a `.npy` file of rows in order, so that it can be written in pieces."""
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False}
    file = BytesIO()
    np.lib.format.write_array_header_1_0(file, {**header, "shape": shape})
    return file.getvalue()
