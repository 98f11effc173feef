"""From tables of any size to a `GraphFolder`: DuckDB joins and sorts, files are written in pieces.

What is staged lies in a database beside them: an import that was killed goes on from there.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any, Literal

from undrift.datasets.tables import check_columns, feature_columns
from undrift.errors import InputError
from undrift.scale import graph_folder as files
from undrift.scale.graph_folder import GraphFolder, GraphManifest
from undrift.scale.staging import Asked, Staging, sizes
from undrift.scale.tables import TableError, TableFiles, database, sentence
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
    asked = Asked(table, ends, *named, undirected, unknown_edges, memory)
    make_folder(out)
    with exclusive(out / _LOCK, f"importing into {out}"):
        _begin(out, asked)
        if not (out / files.MANIFEST).is_file():
            with _database(out, memory) as connection:
                manifest = _imported(asked, out, connection, progress)
            files.put(out / files.MANIFEST, [manifest.sealed().model_dump_json(indent=1).encode()])
        _scrap(out, _OURS)  # what tells that an import is not finished goes last
    return GraphFolder(out)


def _begin(out: Path, asked: Asked) -> None:
    """Go on with what is there if it is the same import; anything else stays as it is."""
    problem = asked.fingerprint()
    _scrap(out, [path.name for path in out.glob(".*.part")])
    there = [path.name for path in out.iterdir() if path.name != _LOCK]
    if not there:
        files.put(out / _ASKED, [problem.encode()])
        return
    if _ASKED not in there:
        raise InputError(f"{out} holds other files; choose a folder that is empty or not there")
    for name in {*there} - {_SPILL}:
        check_own(out / name, alone=True)
    check_own_folder(out / _SPILL)
    if read_own(out / _ASKED) != problem.encode():
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


def _imported(asked: Asked, out: Path, connection: Any, progress: Progress) -> GraphManifest:
    """All stages; each leaves alone what an earlier process has finished."""
    stage = Staging(asked, out, connection, progress)
    n, features = stage.nodes()
    width, rows = sizes(n, features, asked.memory)
    classes, labels = stage.classes()
    numbers = stage.features(n, features, width, rows)
    loops, unknown = stage.edges()
    shards, degrees, repeated, senders = stage.shards(n)
    stage.weights(shards, degrees)
    files.put_array(out / "labels.npy", labels)
    files.put_array(out / "degrees.npy", degrees)
    there = sorted(p for p in out.iterdir() if p.name not in (*_OURS, _LOCK))
    sums = {p.name: checksum(p) for p in there}
    content = [features, classes, numbers, sums["labels.npy"], sums["degrees.npy"], senders]
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
        files=sums,
        content=sha256(json.dumps(content).encode()).hexdigest(),
    )
