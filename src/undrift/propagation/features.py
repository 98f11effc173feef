"""`FeatureMap`: what ridge regression sees of a node, a fixed function of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.analytic.gram import chunks
from undrift.analytic.random_maps import Fourier, Sketch
from undrift.analytic.statistics import one_hot
from undrift.graphs import Graph, ReceptiveField
from undrift.propagation.mixes import (
    Propagated,
    effective_feature_count,
    row_normalised,
    rows_of_mixes,
)
from undrift.sparse import Csr, beside, row_index
from undrift.streams.task import Task
from undrift.typing import Rows

_SCORED_MB = {"cpu": 8, "cuda": 128}  # on a CPU their Fourier features stay in the cache
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_FINE = 26  # columns of the count alone: two to each doubling, up to some eight thousand
_COARSE = 13  # places of the count and of the degree: one to each doubling
_DEGREE_SCALE = 64.0  # of a degree over the root of all edges: most lie between 0.01 and 10
_WEIGHT = 3.0  # of the columns: so much less than words they are shrunk
COUNTS = _FINE  # columns that tell the feature count
TABLE = _COARSE**2  # columns that tell the feature count and the degree together
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

    `sketch`: rows of more columns are sketched to this many, shared among the channels of a mix; 0
    never. `fourier`: how many random Fourier features stand beside. Both maps come from the seed
    and are not stored. `power`: every entry z of a row becomes `sign(z) |z|^power`, and the row is
    scaled to length one again. `rank`: how the rows are summed (`no_rows`). `counts`: columns that
    tell how many features a node has, with `degrees` how many edges as well (`count_columns`).
    """

    propagated: Propagated
    sketch: int = 0
    fourier: int = 0
    seed: int = 0
    power: float = 1.0
    rank: int = 0
    counts: bool = False
    degrees: bool = False

    def plain(self, graph: Graph, nodes: Tensor, dtype: torch.dtype = torch.float64) -> Rows:
        """The rows of these nodes before Fourier features; of few nodes, on their field alone."""
        field = self.field(graph, nodes)
        if field is not None:
            graph, nodes = field.graph, field.at
        sketch = self.sketch_of(graph.num_features)
        rows = self.propagated.rows(graph, nodes, sketch, dtype)
        return self._completed(rows, graph, nodes)

    def _completed(self, rows: Rows, graph: Graph, nodes: Tensor) -> Rows:
        """Propagated rows with their power, and with columns beside them."""
        parts = [self.powered(rows)]
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

    def hops_of(self, graph: Graph, nodes: Tensor, least: int = 0) -> int | Tensor | None:
        """How many hops the rows of these nodes look away; None: far (`Propagated.hops_of`)."""
        if self.degrees:  # all edges
            return None
        return self.propagated.hops_of(graph, nodes, least)

    def field(self, graph: Graph, nodes: Tensor) -> ReceptiveField | None:
        """What the rows of these nodes depend on; None: much of the graph."""
        hops = self.hops_of(graph, nodes)
        return None if hops is None else ReceptiveField.of(graph, nodes, hops)

    def width(self, num_features: int) -> int:
        """Columns of a row, Fourier features among them."""
        columns = self._columns(num_features)
        fourier = self.fourier_of(columns)
        return columns + (fourier.outputs if fourier else 0)

    def rows_of(self, graph: Graph, nodes: Tensor) -> Tensor:
        """The rows of these nodes as they are summed, dense."""
        rows = self.plain(graph, nodes)
        fourier = self.fourier_of(rows.shape[1])
        if fourier is None:
            return rows.to_dense()
        return torch.cat([rows.to_dense(), fourier(rows)], dim=1)

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
        """Scores of all or these nodes, up to a positive factor per node."""
        if self._linear:
            sketch = self.sketch_of(graph.num_features)
            asked = None if nodes is None else row_index(nodes, graph.num_nodes).to(graph.device)
            return self.propagated.spread(graph, weights, sketch, asked)
        everyone = torch.arange(graph.num_nodes, device=graph.device)
        asked = everyone if nodes is None else row_index(nodes, graph.num_nodes)
        return self.scored(self.plain(graph, asked, weights.dtype), weights)

    def ranking(self, graph: Graph, weights: Tensor, nodes: Tensor) -> Tensor:
        """`spread` in float32; scores in float64 where its best two are too near.

        Rounding was seen to move a score by 6e-8 of the length of W's column, by 3e-7 after eight
        hops.
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
        return self.power == 1 and not (self.fourier or self.counts)

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
        return columns + self._counted


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
    """`sample_of` for each map; maps of the same hops share them where that is cheaper."""
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


# columns that tell how many features and edges a node has -------------------------------------


def count_columns(graph: Graph, nodes: Tensor, *, degrees: bool) -> Csr:
    """`[nodes, 26]` in float64: how many features each of these nodes has; 195 with `degrees`.

    The first 26 tell the effective feature count: column k stands for `2^(k / 2) - 1`. A count
    lies between two columns and weighs on both, so that a linear function of them is any curve
    over the logarithm. The other 169 are a table of 13 places for the count and 13 for the
    relative degree, of which four share a node's weight. The relative degree is `d / sqrt(e)` with
    e all directed edges: if edges do not look at classes, it is the same in a batch's graph and in
    the world.

    >>> path = Graph.from_arrays(torch.ones(3, 3), [[0, 1], [1, 2]], undirected=True)
    >>> count_columns(path, torch.tensor([1]), degrees=False).to_dense().nonzero().tolist()
    [[0, 4]]
    """
    held = effective_feature_count(graph.features[nodes])
    count = held.cpu().numpy()
    fine, left = _between(2 * np.log2(1 + count), _FINE)
    columns, shares = [fine, fine + 1], [left, 1 - left]
    if degrees:
        for column, share in _table(count, _relative_degrees(graph, nodes)):
            columns.append(_FINE + column)
            shares.append(share)
    values = _WEIGHT * np.stack(shares, axis=1)
    each = np.arange(len(count) + 1) * len(columns)
    parts = (values.ravel(), np.stack(columns, axis=1).ravel(), each)
    width = COUNTS + (TABLE if degrees else 0)
    matrix = sp.csr_matrix(parts, shape=(len(count), width))
    matrix.eliminate_zeros()
    return Csr.from_scipy(matrix, dtype=held.dtype).to(held.device)


def _relative_degrees(graph: Graph, nodes: Tensor) -> FloatArray:
    pointers = graph.adjacency.indptr
    degree = (pointers[nodes + 1] - pointers[nodes]).cpu().numpy()
    return np.asarray(_DEGREE_SCALE * degree / max(graph.num_edges, 1) ** 0.5, dtype=np.float64)


def _table(count: FloatArray, degree: FloatArray) -> list[tuple[IntArray, FloatArray]]:
    """The four cells that each node lies between, and its share of each."""
    row, above = _between(np.log2(1 + count), _COARSE)
    column, before = _between(np.log2(1 + degree), _COARSE)
    cell = _COARSE * row + column
    return [
        (cell, above * before),
        (cell + 1, above * (1 - before)),
        (cell + _COARSE, (1 - above) * before),
        (cell + _COARSE + 1, (1 - above) * (1 - before)),
    ]


def _between(place: FloatArray, columns: int) -> tuple[IntArray, FloatArray]:
    """The column to the left of each place, and its share; what lies outside is in the last."""
    held = np.clip(place, 0, columns - 1)
    first = np.minimum(held.astype(np.int64), columns - 2)
    return first, 1 - (held - first)
