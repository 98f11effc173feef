"""`FeatureMap`: what ridge regression sees of a node, a fixed function of the graph."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.analytic.random_maps import Fourier, Sketch
from undrift.analytic.statistics import chunks, one_hot
from undrift.graphs import Graph, ReceptiveField
from undrift.propagation.mixes import (
    Propagated,
    effective_feature_count,
    row_normalised,
    rows_of_mixes,
)
from undrift.sparse import Csr, beside
from undrift.streams.task import Task
from undrift.typing import Rows

_SCORED_MB = {"cpu": 8, "cuda": 128}  # on a CPU their Fourier features stay in the cache
COUNTS = 26  # columns of the count alone: two to each doubling, up to some eight thousand
_COARSE = 13  # places of the count and of the degree: one to each doubling
_DEGREE_SCALE = 64.0  # of a degree over the root of all edges: most lie between 0.01 and 10
_WEIGHT = 3.0  # of the columns: so much less than words they are shrunk
TABLE = _COARSE**2  # columns that tell the feature count and the degree together
_NEAR = 1e-6  # of the length of W's columns: what float32 may not tell apart


@dataclass(frozen=True)
class FeatureMap:
    """What ridge regression sees of a node: propagated features, then two fixed random maps.

    `sketch`: rows of more columns are sketched to this many, shared among the channels of a mix; 0
    never. `fourier`: how many random Fourier features stand beside. Both maps come from the seed
    and are not stored. `power`: every entry z of a row becomes `sign(z) |z|^power`, and the row is
    scaled to length one again. `rank`: directions through which the Gram is seen (`ThinSums`); 0
    keeps all of it (`ClassSums`). `counts`: columns that tell how many features a node has, with
    `degrees` how many edges as well (`count_columns`).
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
        return plain_rows([self], graph, nodes, dtype)[0]

    def powered(self, rows: Rows) -> Rows:
        """Rows of length one, with their entries taken to the power."""
        if self.power == 1:
            return rows
        entries = rows.values if isinstance(rows, Csr) else rows
        powered = entries.sign() * entries.abs().pow(self.power)
        return row_normalised(rows.with_values(powered) if isinstance(rows, Csr) else powered)

    def reach(self, graph: Graph, nodes: Tensor) -> int | Tensor | None:
        """How many hops away the rows of these nodes look; None: at much of the graph."""
        return None if self.degrees else self.propagated.reach(graph, nodes)

    def width(self, num_features: int) -> int:
        """Columns of a row, Fourier features among them."""
        sketch = self.sketch_of(num_features)
        columns = num_features if sketch is None else sketch.size
        return columns * self.propagated.blocks + self._counted + self.fourier

    def rows_of(self, graph: Graph, nodes: Tensor) -> Tensor:
        """The rows of these nodes as they are summed, dense."""
        rows = self.plain(graph, nodes)
        fourier = self.fourier_of(rows.shape[1])
        dense = rows.to_dense()
        return dense if fourier is None else torch.cat([dense, fourier(rows)], dim=1)

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

    def ranking(self, graph: Graph, weights: Tensor, nodes: Tensor) -> Tensor:
        """Scores up to a positive factor per node: for less, which no argmax sees.

        They are made in float32, and in float64 where the best two of a node are too near. Rounding
        was seen to move a score by 6e-8 of the length of W's column, by 3e-7 after eight hops.
        """
        single = weights.float()
        if self.power == 1 and not (self.fourier or self.counts):  # linear, up to its length
            on, sketch = nodes.to(graph.device), self.sketch_of(graph.num_features)
            rough = self.propagated.unscaled_scores(graph, single, on, sketch).double()
        else:
            rough = self.scored(self.plain(graph, nodes, single.dtype), single).double()
        if rough.shape[1] < 2:
            return rough
        first, second = rough.topk(2, dim=1).values.T
        reach = self.propagated.hops + 1  # a row that is not scaled to length one is no longer
        near = (first - second) < _NEAR * reach * float(weights.norm(dim=0).max())
        if bool(near.any()):
            rough[near] = self.scored(self.plain(graph, nodes[near.to(nodes.device)]), weights)
        return rough

    def scored(self, rows: Rows, weights: Tensor) -> Tensor:
        """`Z W` of plain rows."""
        fourier = self.fourier_of(rows.shape[1])
        if fourier is None:
            return rows.to(dtype=weights.dtype) @ weights
        parts = [weights.new_zeros(0, weights.shape[1])]  # rows of no node at all
        own, beside_it = weights[: rows.shape[1]], weights[rows.shape[1] :]
        made = fourier.drawn(rows.device, weights.dtype)
        for _, part in chunks(rows, _SCORED_MB[rows.device.type]):
            typed = part.to(dtype=weights.dtype)
            parts.append((typed @ own).addmm_(made(typed), beside_it))
        return torch.cat(parts)

    def sketch_of(self, num_features: int) -> Sketch | None:
        """The sketch of features of so many columns; None where they are few enough."""
        blocks = self.propagated.blocks
        wide = 0 < self.sketch < num_features * blocks
        return Sketch(num_features, max(1, self.sketch // blocks), self.seed) if wide else None

    def fourier_of(self, width: int) -> Fourier | None:
        """The Fourier features of plain rows of so many columns."""
        return Fourier(width, self.fourier, self.seed, self._counted) if self.fourier else None

    @property
    def _counted(self) -> int:
        """Columns that count."""
        return (COUNTS if self.counts else 0) + (TABLE if self.degrees else 0)


def training_rows(
    maps: Sequence[FeatureMap], task: Task, classes: tuple[int, ...], within: Tensor | None = None
) -> tuple[list[Rows], Tensor]:
    """The plain rows of training nodes (of those in `within`) by each map, and their targets."""
    nodes = task.training(within)
    return plain_rows(maps, task.graph, nodes), one_hot(task.labels[nodes], classes)


def plain_rows(
    maps: Sequence[FeatureMap], graph: Graph, nodes: Tensor, dtype: torch.dtype = torch.float64
) -> list[Rows]:
    """`FeatureMap.plain` of each map; those of the same hops and sketch are made in one pass."""
    reach = [each.reach(graph, nodes) for each in maps]
    if None not in reach:
        hops = [torch.as_tensor(far, device=graph.device).expand(nodes.shape) for far in reach]
        field = ReceptiveField.of(graph, nodes, torch.stack(hops).amax(dim=0))
        graph, nodes = (graph, nodes) if field is None else (field.graph, field.at)
    mixes = [(each.propagated, each.sketch_of(graph.num_features)) for each in maps]
    if len({(mix.mix == "separate", sketch) for mix, sketch in mixes}) == 1:
        made = rows_of_mixes([mix for mix, _ in mixes], graph, nodes, mixes[0][1], dtype)
    else:
        made = [rows_of_mixes([mix], graph, nodes, sketch, dtype)[0] for mix, sketch in mixes]
    for k, each in enumerate(maps):
        made[k] = each.powered(made[k])
        if each.counts:
            counted = count_columns(graph, nodes, degrees=each.degrees)
            made[k] = beside([made[k], counted.to(dtype=dtype)])
    return made


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
    count, pointers = held.cpu().numpy(), graph.adjacency.indptr
    cells = _between(2 * np.log2(1 + count), COUNTS)
    if degrees:
        degree = (pointers[nodes + 1] - pointers[nodes]).cpu().numpy()
        relative = _DEGREE_SCALE * degree / max(graph.num_edges, 1) ** 0.5
        cells += [
            (COUNTS + _COARSE * row + column, above * before)
            for row, above in _between(np.log2(1 + count), _COARSE)
            for column, before in _between(np.log2(1 + relative), _COARSE)
        ]
    columns, shares = (np.stack(part, axis=1) for part in zip(*cells, strict=True))
    each = np.arange(len(count) + 1) * len(cells)
    width = COUNTS + (TABLE if degrees else 0)
    parts = (_WEIGHT * shares.ravel(), columns.ravel(), each)
    matrix = sp.csr_matrix(parts, shape=(len(count), width))
    matrix.eliminate_zeros()
    return Csr.from_scipy(matrix, dtype=held.dtype).to(held.device)


def _between(place: Any, columns: int) -> list[tuple[Any, Any]]:
    """The two columns that each place lies between, with its share of each; the last holds more."""
    first = np.minimum(place, columns - 2).astype(np.int64)
    left = np.maximum(1 - (place - first), 0)
    return [(first, left), (first + 1, 1 - left)]
