"""The stages of an import: tables into DuckDB, and from there, sorted, into files."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from undrift.datasets.columns import Trouble, unusable
from undrift.datasets.tables import LEAVE_OUT
from undrift.errors import InputError
from undrift.graphs.inputs import as_class_ids
from undrift.scale import graph_folder as files
from undrift.scale.tables import TableError, TableFiles, copied, whole
from undrift.storage.files import whole_file
from undrift.typing import Progress

_MOST_NODES = 2**30  # two node numbers and a bit are sorted as one 64-bit number
_WIDEST = 32  # columns of a block
_SENDER = 2**32 - 1


@dataclass(frozen=True)
class Asked:
    """Two tables, the names of their columns, and how to read them."""

    nodes: TableFiles
    edges: TableFiles
    id: str
    label: str | None
    source: str
    target: str
    features: tuple[str, ...]
    undirected: bool
    unknown_edges: str
    memory: float

    def fingerprint(self) -> str:
        """What tells that an import is the same as one before."""
        named = {k: v for k, v in vars(self).items() if k not in ("nodes", "edges")}
        facts = [files.FORMAT, self.nodes.fingerprint(), self.edges.fingerprint(), named]
        return json.dumps(facts, indent=1)


@dataclass
class Staging:
    """A database in which tables are staged; each is there whole or not at all."""

    asked: Asked
    out: Path
    connection: Any
    progress: Progress

    def nodes(self) -> tuple[int, int]:
        """Stage the nodes in their order and write their ids; how many nodes and features."""
        asked, table = self.asked, self.asked.nodes
        self.progress("nodes", 0, 1)
        cells = [f"{table.text(asked.id)} AS id"]
        if asked.label:
            cells.append(f"{table.text(asked.label)} AS label")
        numbers = table.numbers(self.connection, asked.features)
        cells += [f"{cell} AS f{i}" for i, (_, cell) in enumerate(numbers)]
        self._make("nodes", f"SELECT {', '.join(cells)} FROM {table.sql}")
        n = self.count("nodes")
        if not 0 < n < _MOST_NODES:
            raise TableError(f"{table.path} has {n:,} rows; a graph needs 1 to {_MOST_NODES:,}")
        where = f"column {asked.id!r} of {table.path}"
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
        asked = self.asked
        query = "SELECT label, count(*) FROM nodes WHERE label IS NOT NULL GROUP BY label"
        named = dict(self.connection.execute(query).fetchall()) if asked.label else {}
        if not named:
            return {}, np.full(self.count("nodes"), -1, dtype=np.int32)
        try:
            ids, names = as_class_ids([*named], f"column {asked.label!r} of {asked.nodes.path}")
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

    def features(self, n: int, features: int, width: int, rows: int) -> str:
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
        table, first = self.asked.nodes, dict[str, int]()
        for name, row in zip(names, found, strict=True):
            if row is not None:
                first[name] = min(row, first.get(name, row))
        cells = [f"SELECT {table.cell(n)} FROM {table.sql} OFFSET {r}" for n, r in first.items()]
        if first:
            there = zip(first.items(), map(self._one, cells), strict=True)
            raise TableError(unusable(table.path, [Trouble(n, r + 1, x) for (n, r), x in there]))

    def edges(self) -> tuple[int, int]:
        """Stage every edge as one number, sorted; how many are self-loops, and to unknown nodes."""
        asked, table = self.asked, self.asked.edges
        self.progress("edges", 0, 3)
        ends = asked.source, asked.target
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
        if unknown and asked.unknown_edges == "error":
            named = (f"SELECT {table.text(end)} AS n FROM {table.sql}" for end in ends)
            every = f"({' UNION ALL '.join(named)}) ANTI JOIN nodes ON n = nodes.id"
            first = self._one(f"SELECT coalesce(n, '') FROM {every} LIMIT 1")
            problem = (
                f"{unknown:,} of the {self.count('pairs'):,} edges in {table.path} name a node that"
            )
            problem += f" is not in {asked.nodes.path}, such as {first!r}"
            raise TableError(f"{problem}; add the nodes, or {LEAVE_OUT}")
        loops = self._one("SELECT count(*) FROM pairs WHERE s = t")
        # target, sender, and a bit that tells a given edge from one that was turned around
        keys = "SELECT (t << 33) | (s << 1) | 1 AS key FROM pairs WHERE s <> t"
        if asked.undirected:
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
            if not self.asked.undirected:
                degrees[1] += np.bincount(senders, minlength=n).astype(np.int32)
            indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
            for name, array in zip(files.shard_files(len(shards)), (indptr, senders), strict=False):
                files.put_array(self.out / name, array)
            digest.update(senders.data)
            shards.append(files.Shard(start, stop, len(senders)))
            start = stop
        if self.asked.undirected:
            degrees[1] = degrees[0]
        return shards, degrees, repeated, digest.hexdigest()

    def _rows_of_keys(self) -> Iterator[tuple[files.Array, bool]]:
        """Sorted keys, a shard's at a time: the edges into a node are never divided."""
        total = self.count("keys")
        size = max(int(self.asked.memory * files.GB / 64 / 16), 100)
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
