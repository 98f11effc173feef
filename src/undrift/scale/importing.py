"""From tables of any size to a `GraphFolder`: DuckDB joins and sorts, files are written in pieces.

What is staged lies in a database beside them: an import that was killed goes on from there.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any, Literal

import numpy as np

from undrift.datasets.columns import Trouble, unusable
from undrift.datasets.tables import LEAVE_OUT, check_columns, feature_columns
from undrift.errors import InputError
from undrift.graphs.inputs import as_class_ids
from undrift.scale import graph_folder as files
from undrift.scale.graph_folder import GraphFolder, GraphManifest
from undrift.scale.tables import TableError, TableFiles, copied, database, sentence, whole
from undrift.storage.files import checksum, make_folder, whole_file
from undrift.storage.lock import check_own, check_own_folder, exclusive, read_own
from undrift.typing import Progress, silent

_STAGE, _SPILL, _ASKED, _LOCK = "stage.duckdb", "spill", "import.json", ".lock"
_OURS = (_STAGE, f"{_STAGE}.wal", _SPILL, _ASKED)
_MOST_NODES = 2**30  # two node numbers and a bit are sorted as one 64-bit number
_WIDEST = 32  # columns of a block
_SENDER = 2**32 - 1


def import_graph(
    nodes: str | Path,
    edges: str | Path,
    out: str | Path,
    *,
    id: str = "id",
    label: str | None = None,
    source: str = "source",
    target: str = "target",
    undirected: bool = True,
    ignore: Sequence[str] = (),
    unknown_edges: Literal["drop", "error"] = "drop",
    memory: float = 4.0,
    progress: Progress = silent,
) -> GraphFolder:
    """Write the graph of two tables, each a file or a folder of files, as a `GraphFolder`.

    Tables are read as by `read_tables`; without `label` a column of that name counts. `memory`: GB
    that this, and later each task, may use. Disk, while it runs: about three times the graph.
    """
    if not 0 < memory < float("inf"):
        raise InputError(f"memory must be greater than 0 GB, not {memory}")
    out = Path(out)
    if (out / files.MANIFEST).is_file() and not (out / _ASKED).is_file():
        raise InputError(f"{out} holds a graph already; choose another folder or delete it")
    table, ends = TableFiles.of(nodes), TableFiles.of(edges)
    if label is None and "label" in table.columns:
        label = "label"
    given = [name for name in table.columns if name not in (id, label, *ignore)]
    features = feature_columns(table.path, table.columns, given, {id: "id", label: "label"})
    check_columns(ends.path, ends.columns, [source, target])
    named = (id, label, source, target, tuple(features))
    this = _Import(table, ends, *named, undirected, unknown_edges, memory, out, progress)
    make_folder(out)
    with exclusive(out / _LOCK, f"importing into {out}"):
        _begin(out, this.fingerprint())
        if not (out / files.MANIFEST).is_file():
            with _database(out, memory) as this.connection:
                manifest = this.all_stages()
            files.put(out / files.MANIFEST, [manifest.sealed().model_dump_json(indent=1).encode()])
        _scrap(out, _OURS)  # what tells that an import is not finished goes last
    return GraphFolder(out)


def _begin(out: Path, asked: str) -> None:
    """Go on with what is there if it is the same import; anything else stays as it is."""
    _scrap(out, [path.name for path in out.glob(".*.part")])
    there = [path.name for path in out.iterdir() if path.name != _LOCK]
    if not there:
        files.put(out / _ASKED, [asked.encode()])
        return
    if _ASKED not in there:
        raise InputError(f"{out} holds other files; choose a folder that is empty or not there")
    for name in {*there} - {_SPILL}:
        check_own(out / name, alone=True)
    check_own_folder(out / _SPILL)
    if read_own(out / _ASKED) != asked.encode():
        problem = "an unfinished import of other tables, or of these before they changed"
        raise InputError(f"{out} holds {problem}; delete it or choose another folder")


def _scrap(out: Path, names: Sequence[str]) -> None:
    for name in names:
        rmtree(out / name, ignore_errors=True)
        with suppress(OSError):
            (out / name).unlink()


@contextmanager
def _database(out: Path, memory: float) -> Iterator[Any]:
    """The staging database; an error is one sentence, and of wrong tables nothing stays."""
    import duckdb

    settings = {
        "memory_limit": f"{int(min(max(memory * files.GB / 2, 1e8), 1e18))}B",
        "temp_directory": str(out / _SPILL),
    }
    try:
        try:
            with database(out / _STAGE, **settings):
                pass
        except duckdb.Error:  # a full disk has left it unreadable
            _scrap(out, (_STAGE, f"{_STAGE}.wal", _SPILL))
        with database(out / _STAGE, **settings) as connection:
            yield connection
    except TableError:
        _discard(out)
        raise
    except duckdb.Error as error:
        problem = sentence(error)
        if isinstance(error, duckdb.DataError | duckdb.ProgrammingError):
            _discard(out)
            way = "correct them and give the same command again"
            raise InputError(
                f"the tables cannot be imported into {out} ({problem}); {way}"
            ) from error
        raise InputError(f"the import into {out} stopped ({problem}); {files.AGAIN}") from error


def _discard(out: Path) -> None:
    """Delete all that an import has left; what says which import it was goes last."""
    _scrap(out, [path.name for path in out.iterdir() if path.name not in (_LOCK, _ASKED)])
    _scrap(out, [_ASKED])


@dataclass
class _Import:
    """Two tables, the names of their columns, how to read them; and a database to stage them in.

    A table is staged whole or not at all, and a stage leaves alone what an earlier process did.
    """

    table: TableFiles
    ends: TableFiles
    id: str
    label: str | None
    source: str
    target: str
    features: tuple[str, ...]
    undirected: bool
    unknown_edges: str
    memory: float
    out: Path
    progress: Progress
    connection: Any = None

    def fingerprint(self) -> str:
        """What tells that an import is the same as one before."""
        names = ("id", "label", "source", "target", "features", "undirected", "unknown_edges")
        named = {name: getattr(self, name) for name in (*names, "memory")}
        facts = [files.FORMAT, self.table.fingerprint(), self.ends.fingerprint(), named]
        return json.dumps(facts, indent=1)

    def all_stages(self) -> GraphManifest:
        """What `graph.json` says, once all other files are there."""
        n, features = self.nodes()
        width, rows = sizes(n, features, self.memory)
        classes, labels = self.classes()
        numbers = self.chunks(n, features, width, rows)
        loops, unknown = self.edges()
        shards, degrees, repeated, senders = self.shards(n)
        self.weights(shards, degrees)
        files.put_array(self.out / "labels.npy", labels)
        files.put_array(self.out / "degrees.npy", degrees)
        there = sorted(p for p in self.out.iterdir() if p.name not in (*_OURS, _LOCK))
        sums = {p.name: checksum(p) for p in there}
        content = [features, classes, numbers, sums["labels.npy"], sums["degrees.npy"], senders]
        return GraphManifest(
            nodes=n,
            edges=sum(shard.entries for shard in shards),
            features=features,
            columns=self.features,
            classes=classes,
            directed=not self.undirected,
            sources=(str(self.table.path), str(self.ends.path)),
            left_out=(repeated, loops, unknown, self.count("pairs")),
            isolated=int((degrees.sum(axis=0) == 0).sum()),
            largest_degree=int(degrees[0].max()),
            memory=self.memory,
            width=width,
            rows=rows,
            shards=tuple(shards),
            files=sums,
            content=sha256(json.dumps(content).encode()).hexdigest(),
        )

    def nodes(self) -> tuple[int, int]:
        """Stage the nodes in their order and write their ids; how many nodes and features."""
        table = self.table
        self.progress("nodes", 0, 1)
        cells = [f"{table.text(self.id)} AS id"]
        if self.label:
            cells.append(f"{table.text(self.label)} AS label")
        numbers = table.numbers(self.connection, self.features)
        cells += [f"{cell} AS f{i}" for i, (_, cell) in enumerate(numbers)]
        self._make("nodes", f"SELECT {', '.join(cells)} FROM {table.sql}")
        n = self.count("nodes")
        if not 0 < n < _MOST_NODES:
            raise TableError(f"{table.path} has {n:,} rows; a graph needs 1 to {_MOST_NODES:,}")
        where = f"column {self.id!r} of {table.path}"
        empty = self._one("SELECT min(rowid) FROM nodes WHERE id IS NULL")
        if empty is not None:
            raise TableError(f"{where} is empty in row {empty + 1}; give every node an id")
        twice = self._one("SELECT id FROM nodes GROUP BY id HAVING count(*) > 1 LIMIT 1")
        if twice is not None:
            raise TableError(f"the id {twice!r} stands twice in {where}; give every node one row")
        self._check_numbers([name for name, _ in numbers])
        named = self._one(f"SELECT count(*) FROM nodes WHERE ({whole('id')}) IS NULL")
        kind = "VARCHAR" if named else "BIGINT"
        self._make("ids", f"SELECT CAST(id AS {kind}) AS id, rowid AS n FROM nodes ORDER BY n")
        with whole_file(self.out / "ids.parquet", way_out=files.AGAIN) as file:
            self.connection.execute(copied("SELECT id FROM ids ORDER BY n", file.name))
        self.progress("nodes", 1, 1)
        return n, len(numbers)

    def classes(self) -> tuple[dict[str, int], files.Array]:
        """Labelled nodes by class, and the place of every node's class, -1 where it is unknown."""
        query = "SELECT label, count(*) FROM nodes WHERE label IS NOT NULL GROUP BY label"
        named = dict(self.connection.execute(query).fetchall()) if self.label else {}
        if not named:
            return {}, np.full(self.count("nodes"), -1, dtype=np.int32)
        try:
            ids, names = as_class_ids([*named], f"column {self.label!r} of {self.table.path}")
        except InputError as error:
            raise TableError(error) from error
        counts = dict.fromkeys(sorted(names.values()), 0)
        for c, count in zip(ids.tolist(), named.values(), strict=True):
            if c in names:
                counts[names[c]] += count
        order = {name: place for place, name in enumerate(counts)}
        places = np.array([order.get(names.get(c, ""), -1) for c in ids.tolist()])
        self.connection.register("named", {"name": np.array([*named], object), "place": places})
        query = "SELECT coalesce(place, -1) AS place FROM nodes LEFT JOIN named ON label = name"
        found = self.connection.execute(f"{query} ORDER BY nodes.rowid").fetchnumpy()["place"]
        return counts, np.asarray(found, dtype=np.int32)

    def chunks(self, n: int, features: int, width: int, rows: int) -> str:
        """Write all features, a chunk of rows at a time; a SHA-256 of ids and numbers."""
        digest = sha256()
        names = ", ".join(f"f{i}" for i in range(features))
        blocks = -(-features // width)
        for i, start in enumerate(range(0, n, rows)):
            self.progress("features", start, n)
            bounds = [start, min(start + rows, n)]
            query = f"SELECT id, {names} FROM nodes WHERE rowid >= ? AND rowid < ? ORDER BY rowid"
            found = self.connection.execute(query, bounds).fetchnumpy()
            matrix = np.zeros((bounds[1] - start, blocks * width), dtype=np.float32)
            for j in range(features):
                matrix[:, j] = found[f"f{j}"]
            digest.update("\n".join(found["id"].tolist()).encode())
            digest.update(matrix[:, :features].tobytes())
            path = self.out / files.feature_file(i)
            if not path.is_file():  # else of a process before, and the same
                files.put_array(path, matrix.reshape(len(matrix), blocks, width).transpose(1, 0, 2))
        self.progress("features", n, n)
        return digest.hexdigest()

    def _check_numbers(self, names: list[str]) -> None:
        """Refuse columns (of these names) with other things than numbers, all of them at once."""
        too_large = "coalesce(NOT abs(f{i}) < 3.4028235677973366e38, true)"  # NaN is larger still
        wrong = [too_large.format(i=i) for i in range(len(names))]
        cells = [f"min(CASE WHEN {each} THEN rowid END)" for each in wrong]
        found = self.connection.execute(f"SELECT {', '.join(cells)} FROM nodes").fetchone()
        table, first = self.table, dict[str, int]()
        for name, row in zip(names, found, strict=True):
            if row is not None:
                first[name] = min(row, first.get(name, row))
        cells = [f"SELECT {table.cell(n)} FROM {table.sql} OFFSET {r}" for n, r in first.items()]
        if first:
            there = zip(first.items(), map(self._one, cells), strict=True)
            raise TableError(unusable(table.path, [Trouble(n, r + 1, x) for (n, r), x in there]))

    def edges(self) -> tuple[int, int]:
        """Stage every edge as one number, sorted; how many are self-loops, and to unknown nodes."""
        table = self.ends
        self.progress("edges", 0, 3)
        ends = self.source, self.target
        numeric = self._one("SELECT typeof(id) FROM ids LIMIT 1") == "BIGINT"
        source, target = map(table.whole if numeric else table.text, ends)
        self._make(
            "pairs",
            f"SELECT a.n AS s, b.n AS t FROM (SELECT {source} AS s, {target} AS t "
            f"FROM {table.sql}) AS e LEFT JOIN ids AS a ON e.s = a.id LEFT JOIN ids AS b ON "
            "e.t = b.id",
        )
        self.progress("edges", 1, 3)
        unknown = self._one("SELECT count(*) FROM pairs WHERE s IS NULL OR t IS NULL")
        if unknown and self.unknown_edges == "error":
            named = (f"SELECT {table.text(end)} AS n FROM {table.sql}" for end in ends)
            every = f"({' UNION ALL '.join(named)}) ANTI JOIN nodes ON n = nodes.id"
            first = self._one(f"SELECT coalesce(n, '') FROM {every} LIMIT 1")
            problem = (
                f"{unknown:,} of the {self.count('pairs'):,} edges in {table.path} name a node that"
            )
            problem += f" is not in {self.table.path}, such as {first!r}"
            raise TableError(f"{problem}; add the nodes, or {LEAVE_OUT}")
        loops = self._one("SELECT count(*) FROM pairs WHERE s = t")
        # target, sender, and a bit that tells a given edge from one that was turned around
        keys = "SELECT (t << 33) | (s << 1) | 1 AS key FROM pairs WHERE s <> t"
        if self.undirected:
            keys += " UNION ALL SELECT (s << 33) | (t << 1) FROM pairs WHERE s <> t"
        self._make("keys", f"SELECT key FROM ({keys}) ORDER BY key")
        self.progress("edges", 3, 3)
        return int(loops), int(unknown)

    def shards(self, n: int) -> tuple[list[files.Shard], files.Array, int, str]:
        """Write the shards; their bounds, all degrees, repeated edges, a SHA-256 of the senders."""
        degrees = np.zeros((2, n), dtype=np.int32)
        shards: list[files.Shard] = []
        repeated, start, digest = 0, 0, sha256()
        for keys, last in self._rows_of_keys():
            pairs, given = keys >> 1, keys & 1
            ends = np.diff(pairs, append=-1) != 0  # the last of each pair
            repeated += int(given.sum() - given[ends].sum())
            targets, senders = pairs[ends] >> 32, (pairs[ends] & _SENDER).astype(np.int32)
            stop = n if last else int(targets[-1]) + 1
            counts = np.bincount(targets - start, minlength=stop - start)
            degrees[0, start:stop] = counts
            if not self.undirected:
                degrees[1] += np.bincount(senders, minlength=n).astype(np.int32)
            indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
            for name, array in zip(files.shard_files(len(shards)), (indptr, senders), strict=False):
                files.put_array(self.out / name, array)
            digest.update(senders.data)
            shards.append(files.Shard(start, stop, len(senders)))
            start = stop
        if self.undirected:
            degrees[1] = degrees[0]
        return shards, degrees, repeated, digest.hexdigest()

    def _rows_of_keys(self) -> Iterator[tuple[files.Array, bool]]:
        """Sorted keys, a shard's at a time: the edges into a node are never divided."""
        total = self.count("keys")
        size = max(int(self.memory * files.GB / 64 / 16), 100)
        keys = np.zeros(0, dtype=np.int64)
        for begin in range(0, total, size):
            self.progress("shards", begin, total)
            query = "SELECT key FROM keys WHERE rowid >= ? AND rowid < ? ORDER BY rowid"
            found = self.connection.execute(query, [begin, begin + size]).fetchnumpy()["key"]
            keys = np.concatenate([keys, found])
            whole_rows = int(np.searchsorted(keys >> 33, keys[-1] >> 33))
            if whole_rows and begin + size < total:
                yield keys[:whole_rows], False
                keys = keys[whole_rows:]
        yield keys, True
        self.progress("shards", total, total)

    def weights(self, shards: list[files.Shard], degrees: files.Array) -> None:
        """Write the weights of all edges: those of `graphs.normalise`, to the last bit."""
        into, out = files.inverse_roots(degrees)
        for i, shard in enumerate(shards):
            _, senders, weights = (self.out / name for name in files.shard_files(i))
            here = slice(shard.start, shard.stop)
            products = np.repeat(into[here], degrees[0, here]) * out[np.load(senders)]
            files.put_array(weights, products.astype(np.float32))

    def count(self, table: str) -> int:
        """How many rows a table has."""
        return int(self._one(f"SELECT count(*) FROM {table}"))

    def _make(self, name: str, query: str) -> None:
        """A table of this name, in one transaction; one that is there already is whole."""
        self.connection.execute(f"CREATE TABLE IF NOT EXISTS {name} AS {query}")

    def _one(self, query: str) -> Any:
        found = self.connection.execute(query).fetchone()
        return None if found is None else found[0]


def sizes(n: int, features: int, memory: float) -> tuple[int, int]:
    """Columns of a block, held three times in float64, and rows of a chunk, for so many GB."""
    width = 1
    while width < _WIDEST and 24 * n * 2 * width <= memory * files.GB / 2:
        width *= 2
    rows = max(int(memory * files.GB / 32 / (8 * features)), 32)
    return min(width, features), min(rows, n)
