"""From tables of any size to a `GraphFolder`: DuckDB joins and sorts, files are written in pieces.

What DuckDB has staged lies in a database beside the folder's files, and each file takes its name
when it is whole. So an import that was killed goes on with the same command.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any, Literal

from undrift.errors import InputError
from undrift.scale.graph_folder import (
    AGAIN,
    GB,
    MANIFEST,
    GraphFolder,
    GraphManifest,
    put,
    put_array,
)
from undrift.scale.staging import Asked, Staging, sizes
from undrift.scale.tables import Table, TableError, literal
from undrift.storage.files import checksum, make_folder
from undrift.storage.lock import check_own, check_own_folder, exclusive, read_own
from undrift.typing import Progress, silent

_STAGE, _SPILL, _ASKED, _LOCK = "stage.duckdb", "spill", "import.json", ".lock"
_OURS = (_STAGE, f"{_STAGE}.wal", _SPILL, _ASKED)


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

    Tables are read as `read_tables` reads them. Without `label`, a column of that name is the
    classes where there is one. `memory`: GB that this, and later each task, may use; it decides
    the sizes of the pieces. Disk, while it runs: about three times the graph.
    """
    if not memory > 0:
        raise InputError(f"memory must be greater than 0 GB, not {memory}")
    out = Path(out)
    if (out / MANIFEST).is_file() and not (out / _ASKED).is_file():
        raise InputError(f"{out} holds a graph already; choose another folder or delete it")
    table, ends = Table.of(nodes), Table.of(edges)
    if label is None and "label" in table.columns:
        label = "label"
    table.need(id, *([label] if label else []))
    ends.need(source, target)
    features = tuple(name for name in table.columns if name not in (id, label, *ignore))
    if not features:
        raise InputError(
            f"{table.path} has no column of features beside the id and the label; give every node "
            "at least one number"
        )
    named = (id, label, source, target, features)
    asked = Asked(table, ends, *named, undirected, unknown_edges, memory)
    make_folder(out)
    with exclusive(out / _LOCK, f"importing into {out}"):
        _begin(out, asked)
        if not (out / MANIFEST).is_file():
            with _database(out, memory) as connection:
                manifest = _imported(asked, out, connection, progress)
            put(out / MANIFEST, [manifest.sealed().model_dump_json(indent=1).encode()])
        _scrap(out, _OURS)  # what tells that an import is not finished goes last
    return GraphFolder(out)


def _begin(out: Path, asked: Asked) -> None:
    """Go on with what is there if it is the same import; anything else stays as it is."""
    told = asked.fingerprint()
    _scrap(out, [path.name for path in out.glob(".*.part")])
    there = [path.name for path in out.iterdir() if path.name != _LOCK]
    if not there:
        put(out / _ASKED, [told.encode()])
        return
    if _ASKED not in there:
        raise InputError(f"{out} holds other files; choose a folder that is empty or not there")
    for name in {*there} - {_SPILL}:
        check_own(out / name, alone=True)
    check_own_folder(out / _SPILL)
    if read_own(out / _ASKED) != told.encode():
        raise InputError(
            f"{out} holds an unfinished import of other tables, or of these before they changed; "
            "delete it or choose another folder"
        )


def _scrap(out: Path, names: Sequence[str]) -> None:
    for name in names:
        rmtree(out / name, ignore_errors=True)
        with suppress(OSError):
            (out / name).unlink()


@contextmanager
def _database(out: Path, memory: float) -> Iterator[Any]:
    """The staging database; what goes wrong in it is one sentence.

    Where the tables themselves are wrong, nothing that is staged is of use, and it is deleted.
    """
    import duckdb

    try:
        with _opened(out) as connection:
            most = max(int(memory * GB / 2), 100_000_000)
            connection.execute(f"SET memory_limit = '{most}B'")
            connection.execute(f"SET temp_directory = {literal(str(out / _SPILL))}")
            connection.execute("SET enable_progress_bar = false")
            yield connection
    except TableError:
        _discard(out)
        raise
    except duckdb.Error as error:
        sentence = " ".join(str(error).split("\n\n", maxsplit=1)[0].split())[:300]
        if isinstance(error, duckdb.DataError | duckdb.ProgrammingError):
            _discard(out)
            raise InputError(
                f"the tables cannot be imported into {out} ({sentence}); correct them and give "
                "the same command again"
            ) from error
        raise InputError(f"the import into {out} stopped ({sentence}); {AGAIN}") from error


def _discard(out: Path) -> None:
    """Delete all that an import has left; what says which import it was goes last."""
    _scrap(out, [path.name for path in out.iterdir() if path.name not in (_LOCK, _ASKED)])
    _scrap(out, [_ASKED])


def _opened(out: Path) -> Any:
    """A connection to the database; one that a full disk has left unreadable is begun anew."""
    import duckdb

    try:
        return duckdb.connect(str(out / _STAGE))
    except duckdb.Error:
        _scrap(out, (_STAGE, f"{_STAGE}.wal", _SPILL))
        return duckdb.connect(str(out / _STAGE))


def _imported(asked: Asked, out: Path, connection: Any, progress: Progress) -> GraphManifest:
    """All stages; each leaves alone what an earlier process has finished."""
    stage = Staging(asked, out, connection, progress)
    n, features = stage.nodes()
    width, rows = sizes(n, features, asked.memory)
    classes, labels = stage.classes()
    stage.write_ids(out / "ids.parquet")
    numbers = stage.features(n, features, width, rows)
    loops, unknown = stage.edges()
    shards, degrees, repeated, senders = stage.shards(n)
    stage.weights(shards, degrees)
    put_array(out / "labels.npy", labels)
    put_array(out / "degrees.npy", degrees)
    there = sorted(p for p in out.iterdir() if p.name not in (*_OURS, _LOCK))
    files = {p.name: checksum(p) for p in there}
    content = [features, classes, numbers, files["labels.npy"], files["degrees.npy"], senders]
    return GraphManifest(
        nodes=n,
        edges=sum(shard.entries for shard in shards),
        features=features,
        columns=asked.features,
        classes=classes,
        directed=not asked.undirected,
        sources=(str(asked.nodes.path), str(asked.edges.path)),
        left_out=(repeated, loops, unknown, stage.count("pairs")),
        isolated=int((degrees.sum(axis=0) == 0).sum()),
        largest_degree=int(degrees[0].max()),
        memory=asked.memory,
        width=width,
        rows=rows,
        shards=tuple(shards),
        files=files,
        content=sha256(json.dumps(content).encode()).hexdigest(),
    )
