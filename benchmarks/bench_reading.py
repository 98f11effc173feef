"""Reading the largest files: a Reddit-sized pair and an OGB-sized zip, both generated.

The files lie in a temporary folder (2.5 GB for the pair) and are deleted at the end. Each reading
is measured in a process of its own, against a process that only reads and unpacks the bytes.
`python -m benchmarks.bench_reading 0.05` is the quick size.
"""

import gzip
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.measure import Ratio

LIMIT_GB, TASKS_LIMIT_GB = 6.0, 8.0
NODES, LINKS, FEATURES = 232_965, 114_615_892 // 2, 602
PAPERS, CITATIONS, WORDS = 169_343, 1_166_243, 128

_MEASURE = """
import json, resource, sys, time
{setup}
start = time.perf_counter()
{code}
seconds = time.perf_counter() - start
unit = 1 if sys.platform == "darwin" else 1024
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
print(json.dumps([seconds, peak / 1e9]))
"""
_TASKS = """
graph = read_reddit(*sys.argv[1:])
used = Graph(graph.features, graph.adjacency, graph.labels.masked_fill(graph.labels == 40, -1))
stream = TaskStream.from_graph(used, base=20, increment=2)
assert sum(1 for task in stream) == 11
"""
_UNPACK = """
for path in sys.argv[1:]:
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            with archive.open(name) as raw:
                file = gzip.open(raw) if name.endswith("gz") else raw
                while file.read(1 << 22):
                    pass
"""


def run(scale: float = 1.0) -> list[Ratio]:
    """The lines of this benchmark; `scale` shrinks the graphs."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        return [*_reddit(folder, scale), *_ogb(folder, scale)]


def _reddit(folder: Path, scale: float) -> list[Ratio]:
    data, graph = folder / "reddit_data.npz", folder / "reddit_graph.npz"
    rng = np.random.default_rng(0)
    nodes = round(NODES * scale)
    _write_data(data, nodes, rng)
    links = _write_graph(graph, nodes, round(LINKS * scale), rng)
    plain, _ = _measured("import gzip, zipfile", _UNPACK, data, graph)
    read, peak = _measured(
        "from undrift.datasets.readers import read_reddit",
        f"assert read_reddit(*sys.argv[1:]).num_edges == {2 * links}",
        data,
        graph,
    )
    tasks, tasks_peak = _measured(
        "from undrift.datasets.readers import read_reddit\n"
        "from undrift.graphs import Graph\n"
        "from undrift.streams.stream import TaskStream",
        _TASKS,
        data,
        graph,
    )
    for path in (data, graph):
        path.unlink()
    what = f"{2 * links / 1e6:.1f} M edges, {nodes:,} nodes"
    return [
        Ratio(
            f"peak memory of read_reddit / {LIMIT_GB:g} GB",
            peak / LIMIT_GB,
            f"{peak:.2f} GB; {what}",
            budget=1.0,
        ),
        Ratio(
            "read_reddit / reading and unpacking the bytes",
            read / plain,
            f"{read:.1f} s / {plain:.1f} s; {what}",
            budget=5.0,
        ),
        Ratio(
            f"peak memory of reading and all 11 task graphs / {TASKS_LIMIT_GB:g} GB",
            tasks_peak / TASKS_LIMIT_GB,
            f"{tasks_peak:.2f} GB; {what}",
            budget=1.0,
        ),
        Ratio(
            "reading and all 11 task graphs / reading and unpacking the bytes",
            tasks / plain,
            f"{tasks:.1f} s / {plain:.1f} s; {what}",
            budget=6.0,
        ),
    ]


def _ogb(folder: Path, scale: float) -> list[Ratio]:
    path = folder / "arxiv.zip"
    papers = round(PAPERS * scale)
    _write_ogb(path, papers, round(CITATIONS * scale))
    plain, _ = _measured("import gzip, zipfile", _UNPACK, path)
    setup = "from undrift.datasets.readers import read_ogb"
    code = f"read_ogb(sys.argv[1], cache={str(folder / 'cache')!r})"
    first, _ = _measured(setup, code, path)
    again, _ = _measured(setup, code, path)
    what = f"{papers:,} x {WORDS} numbers"
    return [
        Ratio(
            "read_ogb / unpacking the bytes",
            first / plain,
            f"{first:.1f} s / {plain:.1f} s; {what}",
            budget=12.0,
        ),
        Ratio(
            "read_ogb from its cache / the first time",
            again / first,
            f"{again:.2f} s / {first:.1f} s; {what}",
            budget=0.5,
        ),
    ]


def _measured(setup: str, code: str, *paths: Path) -> tuple[float, float]:
    """Seconds and peak GB of a piece of code in a process of its own."""
    whole = _MEASURE.format(setup=setup, code=code)
    done = subprocess.run(
        [sys.executable, "-c", whole, *map(str, paths)], capture_output=True, text=True, check=True
    )
    seconds, peak = json.loads(done.stdout.splitlines()[-1])
    return seconds, peak


def _write_data(path: Path, nodes: int, rng: np.random.Generator) -> None:
    """Features of eight bytes and not deflated, as in the published file."""
    with zipfile.ZipFile(path, "w") as archive:
        rows = (rng.normal(size=(min(4096, nodes - i), FEATURES)) for i in range(0, nodes, 4096))
        _write_array(archive, "feature", (nodes, FEATURES), "<f8", rows)
        labels = rng.integers(0, 41, nodes)
        for name, column in (
            ("label", labels),
            ("node_ids", np.arange(nodes)),
            ("node_types", np.ones(nodes, np.int64)),
        ):
            _write_array(archive, name, (nodes,), "<i8", [column])


def _write_graph(path: Path, nodes: int, links: int, rng: np.random.Generator) -> int:
    """A deflated COO matrix: node i is linked to i + 1, i + 2, ..., under a random renumbering.

    The order of the entries is then as bad for a reader as a random one, and no sort is needed
    to write different ones.
    """
    place = rng.permutation(nodes).astype(np.int32)
    links = min(links, nodes * ((nodes - 1) // 2))

    def ends(first: bool):  # type: ignore[no-untyped-def]
        for done in range(0, links, nodes):
            count = min(nodes, links - done)
            pair = place[:count], np.roll(place, -(done // nodes + 1))[:count]
            yield from (pair if first else pair[::-1])

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        _write_array(archive, "row", (2 * links,), "<i4", ends(True))
        _write_array(archive, "col", (2 * links,), "<i4", ends(False))
        ones = (np.ones(min(1 << 20, 2 * links - i)) for i in range(0, 2 * links, 1 << 20))
        _write_array(archive, "data", (2 * links,), "<f8", ones)
        _write_array(archive, "shape", (2,), "<i8", [np.array([nodes, nodes])])
        _write_array(archive, "format", (), "|S3", [np.array(b"coo")])
    return links


def _write_array(archive, name, shape, dtype, parts):  # type: ignore[no-untyped-def]
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        header = {"descr": dtype, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_2_0(file, header)
        for part in parts:
            file.write(part.astype(dtype).tobytes())


def _write_ogb(path: Path, papers: int, citations: int) -> None:
    rng = np.random.default_rng(0)
    numbers = rng.normal(scale=0.2, size=(4096, WORDS)).round(6).tolist()
    lines = [",".join(map(repr, row)) for row in numbers]
    tables = {
        "edge": "\n".join(f"{s},{t}" for s, t in rng.integers(0, papers, (citations, 2)).tolist()),
        "node-feat": "\n".join((lines * (papers // len(lines) + 1))[:papers]),
        "node-label": "\n".join(map(str, rng.integers(0, 40, papers).tolist())),
        "num-node-list": str(papers),
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in tables.items():
            archive.writestr(f"arxiv/raw/{name}.csv.gz", gzip.compress(text.encode(), 4))


if __name__ == "__main__":
    for line in run(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0):
        budget = "" if line.budget is None else f" (at most {line.budget:g})"
        print(f"{line.name}: {line.value:.2f}{budget}; {line.detail}")
