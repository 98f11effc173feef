"""What a step on a graph in a folder will take, before it begins."""

from __future__ import annotations

from dataclasses import dataclass

from undrift.formatting import duration, size
from undrift.propagation.mixes import Propagated
from undrift.scale.graph_folder import GraphManifest
from undrift.scale.plan import BlockPlan, Group

# seconds on one core; where they come from: docs/larger-than-memory.md
_EDGE = 2e-8  # of a block, however few its columns
_EDGE_AND_COLUMN = 2.4e-9
_MULTIPLICATION = 1.3e-10
_FOURIER = 2.4e-8
_FEATURE = 5e-8  # of every node, once
_CLASSES = 20  # of a prediction: too few to matter
_PROGRAM = 4e8  # bytes of a process that has done nothing yet


@dataclass(frozen=True)
class MemoryEstimate:
    """Seconds with all workers, bytes of disk until the step is done, bytes of each worker."""

    seconds: float
    disk: float
    memory: float

    @classmethod
    def of(cls, plan: BlockPlan, workers: int) -> MemoryEstimate:
        """What a plan will take.

        Edges times blocks times hops, the Gram matrix of the rows wanted (observing) or their
        scores (predicting), and the Fourier features of both.
        """
        m = plan.folder.manifest
        disk = wide = 0.0
        seconds = m.nodes * m.features * _FEATURE * max(workers, 1)  # one task, shared by nobody
        for group in plan.groups:
            hops, panels = _hops(plan, group, m)
            passes = max(hops - 1, 0) + (plan.rows / m.nodes if hops else 0)
            seconds += plan.blocks(group) * passes * hop_seconds(m.edges, m.width)
            disk += 8.0 * plan.rows * group.columns * panels
            disk += 8.0 * m.nodes * group.columns if group.sketch is not None else 0
            for bank in group.banks:
                each = plan.maps[bank]
                width = each.width(m.features)
                fourier = width - group.columns * each.propagated.blocks
                answers = (each.rank or width) if plan.columns else _CLASSES
                seconds += plan.rows * (fourier * _FOURIER + width * answers * _MULTIPLICATION)
                wide = max(wide, width)
        memory = _PROGRAM + max(24.0 * m.nodes * m.width, 32.0 * wide**2) + m.memory * 1e9 / 8
        return cls(seconds / max(workers, 1), disk + 72.0 * m.nodes, memory)

    def __str__(self) -> str:
        """A phrase for people."""
        return (
            f"about {duration(self.seconds)}, {size(self.disk)} of disk until it is done, "
            f"{size(self.memory)} of memory per worker"
        )


def hop_seconds(edges: int, width: int) -> float:
    """Seconds of one hop of a block of so many columns: a random row is read for every edge."""
    return edges * (_EDGE + width * _EDGE_AND_COLUMN)


def _hops(plan: BlockPlan, group: Group, manifest: GraphManifest) -> tuple[int, int]:
    """The hops that a group takes, and the panels that its blocks have."""
    mixes = [plan.maps[bank].propagated for bank in group.banks]
    return max(_taken(mix, manifest) for mix in mixes), sum(mix.blocks for mix in mixes)


def _taken(mix: Propagated, manifest: GraphManifest) -> int:
    """How many hops, at a node of mean degree whose features count half."""
    if mix.same_for_all() is not None:
        return mix.hops
    reached, hops = manifest.features / 2, 0
    while hops < mix.hops and reached < mix.evidence_threshold:
        reached *= 1 + manifest.edges / manifest.nodes
        hops += 1
    return hops
