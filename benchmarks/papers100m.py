"""What ogbn-papers100M would take, from what a run of 10 million nodes has measured.

    python -m benchmarks.papers100m [REPORT.json]

The report is that of `benchmarks.bench_scale`; the one that is kept was measured on two cores that
others used as well, in seconds of one core. Each phase grows with what it counts: edges, blocks of
columns, bytes, rows. Nothing here was run at that size.
"""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import torch

from undrift.formatting import duration, size
from undrift.propagation.learner import Propagation
from undrift.propagation.plan import First, Plan
from undrift.scale.importing import sizes
from undrift.scale.plan import hop_seconds

KEPT = Path(__file__).parent / "measured" / "ten-million.json"
HOPS = 2
FOURIER = 250  # multiplications that a Fourier feature takes the time of


class Data(NamedTuple):
    """A graph in a folder."""

    nodes: int
    edges: int  # directed: an undirected edge counts twice
    features: int
    classes: int
    labelled: int

    @property
    def folder(self) -> float:
        """Bytes on disk: features, edges, and of every node an id, a class and two degrees."""
        return 4.0 * self.nodes * self.features + 8.0 * self.edges + 24.0 * self.nodes

    def fixed(self) -> Plan:
        """What the default method keeps of it, where neighbours are mostly alike."""
        edges = torch.eye(self.classes, dtype=torch.float64) * 700 + 300 / self.classes
        first = First(self.labelled, int(self.folder), dense=True)
        return Propagation().plan_by(self.features, edges, first)


PAPERS = Data(111_059_956, 2 * 1_615_685_872, 128, 172, 1_546_782)


class Machine(NamedTuple):
    """Workers, one core each, and what each of them may use."""

    name: str
    workers: int
    memory: float


MACHINES = (
    Machine("a laptop of 16 GB, one worker", 1, 12),
    Machine("a server of 256 GB, eight workers", 8, 32),
    Machine("ten machines of 32 GB, a worker each", 10, 24),
)


class Costs(NamedTuple):
    """Seconds of each step, bytes of the folder, of the largest step, and of a worker."""

    importing: float
    observing: float
    predicting: float
    folder: float
    work: float
    memory: float


def costs(data: Data, machine: Machine, report: dict[str, Any]) -> Costs:
    """The phases of the report, each by how much more there is of what it counts."""
    imported = report["import"]
    small = Data(report["nodes"], imported["edges"], 64, 20, report["observe"]["rows"])
    took = {
        (step, phase): values["busy"]
        for step in ("import", "observe", "predict")
        for phase, values in report[step]["phases"].items()
    }
    cells = data.nodes * data.features / (small.nodes * small.features)
    edges = data.edges / small.edges
    width = sizes(data.nodes, data.features, machine.memory)[0]
    columns = {"here": (width, data), "there": (imported["width"], small)}

    def hops(where: str, share: float) -> float:
        wide, graph = columns[where]
        blocks = -(-graph.features // wide)
        return blocks * (HOPS - 1 + share) * hop_seconds(graph.edges, wide)

    learning = hops("here", data.labelled / data.nodes) / hops(
        "there", small.labelled / small.nodes
    )
    everything = hops("here", 1) / hops("there", 1)
    nodes, many = ("nodes", "features"), ("edges", "shards", "rest")
    importing = cells * sum(took["import", p] for p in nodes)
    importing += edges * sum(took["import", p] for p in many)
    reading = took["observe", "check"] * data.folder / small.folder
    measuring = cells * took["observe", "measure"]
    alone = reading + measuring + edges * took["observe", "count edges"]
    observing = learning * took["observe", "propagate"]
    observing += took["observe", "accumulate"] * _sums(data) / _sums(small)
    predicting = everything * took["predict", "propagate"]
    predicting += took["predict", "predict"] * _scores(data) / _scores(small)
    return Costs(
        importing,
        alone + observing / machine.workers,
        reading + measuring + predicting / machine.workers,
        data.folder,
        8.0 * data.nodes * data.features + 32.0 * data.nodes,
        4e8 + 24.0 * data.nodes * width + machine.memory * 1e9 / 8,
    )


def _sums(data: Data) -> float:
    """Multiplications to add up the rows of labelled nodes."""
    return data.labelled * sum(_row(data, rank=True))


def _scores(data: Data) -> float:
    """Multiplications to score all nodes, in the first feature variant."""
    return data.nodes * next(iter(_row(data, rank=False)))


def _row(data: Data, *, rank: bool) -> list[float]:
    fixed = data.fixed()
    found = []
    for variant in fixed.variants:
        each = fixed.feature_map(variant)
        width = each.width(data.features)
        answers = (each.rank or width) if rank else data.classes
        found.append(FOURIER * each.fourier + float(width) * answers)
    return found


def main(path: str | Path = KEPT) -> None:
    """Print a table in Markdown."""
    report = json.loads(Path(path).read_text(encoding="utf-8"))
    print("| on | import | observe | predict all | folder | work | memory of a worker |")
    print("|---|---|---|---|---|---|---|")
    for machine in MACHINES:
        found = costs(PAPERS, machine, report)
        times = " | ".join(duration(s) for s in found[:3])
        bytes_ = " | ".join(size(b) for b in found[3:])
        print(f"| {machine.name}, `--memory {machine.memory:g}` | {times} | {bytes_} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
