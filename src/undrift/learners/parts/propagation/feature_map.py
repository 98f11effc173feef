"""`FeatureMap`: what ridge regression sees of a node, a fixed function of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.analytic.gram import chunks
from undrift.analytic.random_maps import Fourier, Sketch
from undrift.analytic.statistics import one_hot
from undrift.graphs import Graph, ReceptiveField
from undrift.learners.parts.propagation.counts import COUNTS, TABLE, count_columns
from undrift.learners.parts.propagation.propagated import (
    Propagated,
    row_normalised,
    rows_of_mixes,
)
from undrift.sparse import Csr, beside, row_index
from undrift.streams.task import Task
from undrift.typing import Rows

_SCORED_MB = {"cpu": 8, "cuda": 128}  # on a CPU their Fourier features stay in the cache
_NEAR = 1e-6  # of the length of W's columns: what float32 may not tell apart


@dataclass(frozen=True, eq=False)
class Sample:
    """Training rows of a task, before Fourier features, with their targets."""

    rows: Rows
    targets: Tensor

    def __len__(self) -> int:
        return int(self.targets.shape[0])


@dataclass(frozen=True)
class FeatureMap:
    """What ridge regression sees of a node: propagated features, then two fixed random maps.

    `sketch`: rows of more columns are sketched to this many (`Sketch`); a mix with a channel per
    hop shares them among the channels; 0 never does. `fourier`: how many random Fourier features
    (`Fourier`) stand beside. Both maps come from the seed and are not stored. `power`: every entry
    z of a row becomes `sign(z) |z|^power`, and the row is scaled to length one again. `structure`:
    three columns of degrees (`structural_columns`). `rank`: how the rows are summed (`no_rows`).
    `counts`: columns that tell how many features a node has, with `degrees` how many edges as well
    (`count_columns`).
    """

    propagated: Propagated
    sketch: int = 0
    fourier: int = 0
    seed: int = 0
    structure: bool = False
    power: float = 1.0
    rank: int = 0
    counts: bool = False
    degrees: bool = False

    def plain(self, graph: Graph, nodes: Tensor, dtype: torch.dtype = torch.float64) -> Rows:
        """The rows of these nodes before Fourier features.

        Of few nodes, what is computed is their field.
        """
        field = self.field(graph, nodes)
        if field is not None:
            graph, nodes = field.graph, field.at
        sketch = self.sketch_of(graph.num_features)
        rows = self.propagated.rows(graph, nodes, sketch, dtype)
        return self._completed(rows, graph, nodes)

    def _completed(self, rows: Rows, graph: Graph, nodes: Tensor) -> Rows:
        """Propagated rows with their power, and with columns beside them."""
        parts = [self.powered(rows)]
        if self.structure:
            columns = sp.csr_matrix(structural_columns(graph)[nodes].cpu().numpy())
            parts.append(Csr.from_scipy(columns, dtype=rows.dtype).to(rows.device))
        if self.counts:
            counted = count_columns(graph, nodes, degrees=self.degrees)
            parts.append(counted.to(dtype=rows.dtype))
        return parts[0] if len(parts) == 1 else beside(parts)

    def powered(self, rows: Rows) -> Rows:
        """Rows of length one, with their entries taken to the power."""
        if self.power == 1:
            return rows
        if isinstance(rows, Csr):
            return row_normalised(rows.signed_power(self.power))
        return row_normalised(rows.sign() * rows.abs().pow(self.power))

    def field(self, graph: Graph, nodes: Tensor, least: int = 0) -> ReceptiveField | None:
        """What the rows of these nodes depend on; None: much of the graph (`Propagated.field`)."""
        if self.degrees:  # all edges
            return None
        return self.propagated.field(graph, nodes, max(least, 2) if self.structure else least)

    def looks(self, graph: Graph, nodes: Tensor, hops: int) -> Tensor:
        """Whether the rows of these nodes look so many hops away."""
        if self.structure and hops <= 2:
            return torch.ones_like(nodes, dtype=torch.bool)
        return self.propagated.looks(graph, nodes, hops)

    def reach(self, graph: Graph) -> Tensor:
        """For every node, the hops that its row looks away."""
        reach = self.propagated.reach(graph)
        return reach.clamp(min=2) if self.structure else reach

    def width(self, num_features: int) -> int:
        """Columns of a row, Fourier features among them."""
        columns = self._columns(num_features)
        fourier = self.fourier_of(columns)
        return columns + (fourier.outputs if fourier else 0)

    def expanded(self, rows: Rows) -> Rows:
        """Plain rows with their Fourier features beside them; dense where there are any."""
        fourier = self.fourier_of(rows.shape[1])
        if fourier is None:
            return rows
        return torch.cat([rows.to_dense(), fourier(rows)], dim=1)

    def rows_of(self, graph: Graph, nodes: Tensor) -> Tensor:
        """The rows of these nodes as they are summed, dense."""
        return self.expanded(self.plain(graph, nodes)).to_dense()

    def pieces(self, rows: Rows, budget_mb: float = 128) -> Iterator[tuple[slice, Rows]]:
        """Expanded rows, some at a time where Fourier features must be formed; else all."""
        fourier = self.fourier_of(rows.shape[1])
        if fourier is None:
            yield slice(0, rows.shape[0]), rows
            return
        share = rows.shape[1] / (rows.shape[1] + fourier.outputs)
        made = fourier.drawn(rows.device, rows.dtype)
        for where, part in chunks(rows, share * budget_mb):
            yield where, torch.cat([part.to_dense(), made(part)], dim=1)

    def spread(self, graph: Graph, weights: Tensor, nodes: Tensor | None = None) -> Tensor:
        """Scores of all or these nodes, up to a factor per node (see `Propagated.spread`).

        Where a row is not linear in features it must be formed, and the factor is one. All is in
        the type of the weights.
        """
        if self._linear:
            sketch = self.sketch_of(graph.num_features)
            asked = None if nodes is None else row_index(nodes, graph.num_nodes).to(graph.device)
            return self.propagated.spread(graph, weights, sketch, asked)
        everyone = torch.arange(graph.num_nodes, device=graph.device)
        asked = everyone if nodes is None else row_index(nodes, graph.num_nodes)
        return self.scored(self.plain(graph, asked, weights.dtype), weights)

    def ranking(self, graph: Graph, weights: Tensor, nodes: Tensor) -> Tensor:
        """`spread` in float32; the scores of float64 where its best two are too near to tell apart.

        Rounding was seen to move a score by 6e-8 of the length of W's column where a row has length
        one, and by 3e-7 after eight hops.
        """
        rough = self.spread(graph, weights.float(), nodes).double()
        if rough.shape[1] < 2 or not rough.shape[0]:
            return rough
        first, second = rough.topk(2, dim=1).values.T
        reach = self.propagated.hops + 1  # a row that is not scaled to length one is no longer
        near = (first - second) < _NEAR * reach * float(weights.norm(dim=0).max())
        if bool(near.any()):
            rough[near] = self.scored(self.plain(graph, nodes[near.to(nodes.device)]), weights)
        return rough

    @property
    def _linear(self) -> bool:
        """Whether a row is, up to its length, a linear function of features."""
        return self.power == 1 and not (self.fourier or self.structure or self.counts)

    def scores(self, graph: Graph, weights: Tensor) -> Tensor:
        """`Z W` of every node, with Z formed some nodes at a time."""
        everyone = torch.arange(graph.num_nodes, device=graph.device)
        return self.scored(self.plain(graph, everyone), weights)

    def scored(self, rows: Rows, weights: Tensor) -> Tensor:
        """`Z W` of plain rows."""
        parts = [weights.new_zeros(0, weights.shape[1])]  # rows of no node at all
        fourier = self.fourier_of(rows.shape[1])
        if fourier is None:
            return torch.cat([*parts, rows.to(dtype=weights.dtype) @ weights])
        own, beside_it = weights[: rows.shape[1]], weights[rows.shape[1] :]
        made = fourier.drawn(rows.device, weights.dtype)
        for _, part in chunks(rows, _SCORED_MB[rows.device.type]):
            typed = part.to(dtype=weights.dtype)
            parts.append((typed @ own).addmm_(made(typed), beside_it))
        return torch.cat(parts)

    def sketch_of(self, num_features: int) -> Sketch | None:
        """The sketch of features of so many columns; None where they are few enough."""
        if not 0 < self.sketch < self.propagated.width(num_features):
            return None
        return Sketch(num_features, max(1, self.sketch // self.propagated.blocks), self.seed)

    def fourier_of(self, width: int) -> Fourier | None:
        """The Fourier features of plain rows of so many columns."""
        if not self.fourier:
            return None
        return Fourier(width, self.fourier, seed=self.seed, blind=self._counted)

    @property
    def _counted(self) -> int:
        """Columns that count."""
        return (COUNTS if self.counts else 0) + (TABLE if self.degrees else 0)

    def _columns(self, num_features: int) -> int:
        sketch = self.sketch_of(num_features)
        columns = self.propagated.width(num_features if sketch is None else sketch.size)
        columns += self._counted
        return columns + (STRUCTURE if self.structure else 0)


def sample_of(
    feature_map: FeatureMap, task: Task, classes: tuple[int, ...], within: Tensor | None = None
) -> Sample:
    """The training nodes of a task; with `within`, those of them that are in this mask."""
    return samples_of([feature_map], task, classes, within)[0]


def samples_of(
    maps: Sequence[FeatureMap],
    task: Task,
    classes: tuple[int, ...],
    within: Tensor | None = None,
) -> list[Sample]:
    """`sample_of` for each map; maps of the same hops share them, where much of the graph is
    visited.
    """
    mask = task.train if within is None else task.train & within
    nodes = mask.nonzero().flatten()
    targets = one_hot(task.labels[nodes], classes)
    first, width = maps[0], task.graph.num_features
    shared = len(maps) > 1 and all(
        each.sketch_of(width) is None
        and each.propagated.same_hops(first.propagated)
        and each.field(task.graph, nodes) is None
        for each in maps
    )
    if not shared:
        return [Sample(each.plain(task.graph, nodes), targets) for each in maps]
    mixed = rows_of_mixes([each.propagated for each in maps], task.graph, nodes)
    return [
        Sample(each._completed(rows, task.graph, nodes), targets)
        for each, rows in zip(maps, mixed, strict=True)
    ]


STRUCTURE = 3
"""How many columns there are."""

_SCALE = 0.1  # degrees up to some thousands stay under one


def structural_columns(graph: Graph) -> Tensor:
    """`[nodes, 3]` in float64: logarithms of own, neighbours' mean and neighbours' summed degree.

    Each is `log(1 + value) / 10`; an isolated node has zeros. Degrees count the edges that are
    there: a task's graph lacks those to other tasks, so the columns of one node grow between
    learning and testing. Cost: one product with the adjacency.

    >>> path = Graph.from_arrays(torch.eye(3), [[0, 1], [1, 2]], undirected=True)
    >>> structural_columns(path).mul(10).exp().sub(1).round().tolist()
    [[1.0, 2.0, 2.0], [2.0, 1.0, 2.0], [1.0, 2.0, 2.0]]
    """
    edges = graph.adjacency
    degree = edges.indptr.diff().double()
    around = torch.zeros_like(degree).index_add(
        0, edges.row_of_entry(), degree[edges.indices.long()]
    )
    columns = torch.stack([degree, around / degree.clamp(min=1), around], dim=1)
    return _SCALE * columns.log1p()
