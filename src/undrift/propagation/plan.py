"""`Plan`: every decision of propagation, made once; docs/methods/propagation.md says why."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from undrift.analytic.novelty import Strangeness
from undrift.analytic.thin_sums import AnySums
from undrift.checks import bytes_of, check_fields, check_regular
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.additive import RowPlan
from undrift.learners.kept import Inventory
from undrift.propagation.features import TABLE, FeatureMap
from undrift.propagation.mixes import Mix, Propagated
from undrift.sparse import Csr
from undrift.streams.task import Task

if TYPE_CHECKING:
    from undrift.propagation.solve import Solved

# which feature variants there are
PRIOR_EDGES = 20.0  # weight of the prior in both measures of edges: a few edges prove nothing
INFORMATIVE_FROM = 0.3  # label association from which there is informative heterophily
_FULL_FROM = 0.25  # adjusted homophily from which the homophily weight is 1
_HETEROPHILY_UNDER = 0.5  # homophily weight under which informative heterophily is looked for
_BLIND_UNDER = 0.05  # label association under which edges are taken not to look at classes
_ROWS_PER_CELL = 4  # of the first batch, for every cell of a table of counts and degrees
_NARROW = 1024  # dense features of at most so many columns get a channel per hop, and Fourier's
_FEW_ROWS = 8  # training rows under which not even the least rank has a row per direction

# how large sums are
_MOST_COLUMNS = 3072
_MOST_RANK = 512  # beyond it accuracy no longer rises on any stream
_LEAST_RANK = 8
_ROWS_PER_DIRECTION = 2.8  # rows of the first batch that must stand behind each direction
_FREE_DIRECTIONS = 256  # that need no asking for, where there are rows for them
_ROWS_PER_FREE_DIRECTION = 8  # nor does one for every so many rows
_GROWTH = 3  # a stream is taken to hold so many times its first batch
_ALWAYS_ALLOWED = 4e6  # bytes that need no asking for
_COLUMNS_TO_BYTES = 2.5  # columns squared per byte: about twenty columns to a direction
_BESIDE = 33  # columns of means and of the solution for 16 classes, and the diagonal
_POWER = 0.75  # of sparse rows that are not sketched: words that repeat count less


@dataclass(frozen=True)
class Size:
    """What the rows and sums of a feature variant are cut to, as in `FeatureMap`."""

    sketch: int
    fourier: int
    rank: int
    power: float = 1.0


@dataclass(frozen=True)
class Plan(RowPlan):
    """What rows depend on beside their batch: sites that agree on it can merge.

    `mix`, `hops`, `evidence_threshold`: how the hops are mixed (`Propagated`). `homophily`: the
    damping of each hop, 0 to 1. `variants`: the feature variants that are summed: `mix` always;
    `separate`, ego and neighbour channels, under informative heterophily; `hops`, a channel per
    hop, for narrow dense features. `sizes`: of each variant. `counts`: whether columns that tell
    how many features a node has stand beside the mix: where neighbours disagree and features are
    sparse. `degrees`: whether they tell of edges too: where edges do not look at classes either,
    and there are rows enough. `seed`: of the random maps.
    """

    num_features: int
    mix: Mix
    hops: int
    evidence_threshold: float
    homophily: float
    variants: tuple[str, ...]
    sizes: tuple[Size, ...]
    counts: bool = False
    degrees: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        known = {"mix"} <= {*self.variants} <= {"mix", "separate", "hops"}
        if not known or len(self.variants) != len(self.sizes):
            raise InputError(
                f"a plan has the feature variant mix, perhaps separate and hops, and a size for "
                f"each, not variants {list(self.variants)} and {len(self.sizes)} sizes"
            )

    def propagated(self, variant: str) -> Propagated:
        """How the hops of a feature variant are mixed."""
        if variant == "separate":
            return Propagated("separate", hops=2)
        if variant == "hops":
            return Propagated("concat", hops=2, homophily=self.homophily)
        return Propagated(self.mix, self.hops, self.evidence_threshold, self.homophily)

    def feature_map(self, variant: str) -> FeatureMap:
        """From a graph to the rows of a feature variant."""
        size, mix = self.sizes[self.variants.index(variant)], variant == "mix"
        cut = size.sketch, size.fourier, self.seed, size.power, size.rank
        counted = self.counts and mix, self.degrees and mix
        return FeatureMap(self.propagated(variant), *cut, *counted)

    def maps(self) -> dict[str, FeatureMap]:
        """Those of all feature variants."""
        return {variant: self.feature_map(variant) for variant in self.variants}

    def rows_of(self, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        """The rows of the first feature variant, dense."""
        return self.feature_map("mix").rows_of(graph, _asked(graph, nodes))

    @property
    def furthest(self) -> int:
        """Of the first feature variant."""
        return self.hops

    def within_reach(self, graph: Graph, changed: Tensor) -> Tensor:
        """All nodes, where every row depends on all edges of its batch."""
        return torch.ones_like(changed) if self.degrees else super().within_reach(graph, changed)

    def looks(self, graph: Graph, nodes: Tensor, hops: int) -> Tensor:
        """Whether the rows of these nodes look so many hops away."""
        each = [features.propagated.looks(graph, nodes, hops) for features in self.maps().values()]
        return torch.stack(each).any(dim=0)

    def score_hops(self, solution: Solved, graph: Graph, nodes: Tensor) -> int | Tensor | None:
        """Those of the feature variant that scores come from."""
        return self.feature_map(solution.variant).reach(graph, nodes)

    def scores(
        self, solution: Solved, graph: Graph, nodes: Tensor | None, *, ranked: bool = False
    ) -> Tensor:
        """Of the feature variant that was selected; a ranking forms no row if it need not."""
        features, asked = self.feature_map(solution.variant), _asked(graph, nodes)
        if ranked:
            return features.ranking(graph, solution.weights, asked)
        return features.scored(features.plain(graph, asked), solution.weights)

    def noise_rows(self, graph: Graph, nodes: Tensor, noise: Tensor) -> Tensor:
        """As the first feature variant mixes the hops of each node, without scaling to length."""
        return self.propagated(self.variants[0]).of_columns(graph, nodes, noise)

    def scored_sums(self, sums: Any, solution: Solved) -> AnySums | None:
        """Those of the feature variant that was selected."""
        found: AnySums = sums.variants[solution.variant]
        return found

    @property
    def neighbours_agree(self) -> bool:  # type: ignore[override]
        """As the first batch has it."""
        return self.homophily >= _HETEROPHILY_UNDER

    @property
    def rare_columns(self) -> bool:  # type: ignore[override]
        """Not of dense rows, whose columns are measured and not counted."""
        first = self.sizes[0]
        return first.power != 1 or 0 < first.sketch < self.num_features

    def seen(
        self,
        solution: Solved,
        graph: Graph,
        nodes: Tensor | None,
        strangeness: Strangeness,
        scored: bool,
    ) -> tuple[Tensor, Tensor]:
        """Of the feature variant that was selected, with one propagation."""
        features = self.feature_map(solution.variant)
        dtype = torch.float64 if scored else torch.float32
        rows = features.plain(graph, _asked(graph, nodes), dtype)
        scores = features.scored(rows, solution.weights) if scored else strangeness.weights[:0]
        return scores, strangeness.seen(part for _, part in features.pieces(rows, 8))

    def inventory(self, sums: Any, classes: tuple[int, ...]) -> Inventory:
        """The sums say what they are."""
        return Inventory(tuple(sums.kept(self, classes)), rest=("solution",))

    def to_json(self) -> str:
        """The plan as a text, the same for the same plan."""
        values = asdict(self)
        return json.dumps({f.name: values[f.name] for f in fields(Plan)}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str, where: str = "the plan") -> Plan:
        """The plan of such a text."""
        try:
            values = dict(json.loads(text))
            if values.pop("structure", False):
                raise ValueError("columns of degrees went; docs/decisions/0022 names who has them")
            values["sizes"] = tuple(Size(**size) for size in values["sizes"])
            values["variants"] = tuple(values.pop("banks", None) or values["variants"])
            return cls(**values)
        except (TypeError, ValueError, KeyError) as error:
            how = f"of {', '.join(f.name for f in fields(cls))}, as Plan.to_json() writes it"
            raise InputError(f"{where} is no plan ({error}); it is a JSON object {how}") from error


def _asked(graph: Graph, nodes: Tensor | None) -> Tensor:
    return torch.arange(graph.num_nodes, device=graph.device) if nodes is None else nodes


def read_plan(given: Plan | str | None) -> Plan | None:
    """A plan, its JSON text, or the path of a file with it."""
    if given is None or isinstance(given, Plan):
        return given
    if given.lstrip().startswith("{"):
        return Plan.from_json(given)
    path = Path(given)
    check_regular(path)
    try:
        return Plan.from_json(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        why, way = error.strerror or error, "Plan.to_json() or undrift learner new wrote"
        raise InputError(f"cannot read the plan {path} ({why}); give a file that {way}") from error


# what a first batch decides ----------------------------------------------------------------


@dataclass(frozen=True)
class First:
    """What is known of a stream when a plan is decided: its first batch."""

    rows: int
    nbytes: int
    dense: bool  # more than half of the features are not zero, however they are stored

    @classmethod
    def of(cls, task: Task) -> First:
        """The training rows, and the bytes of features and edges: 4 a number, 4 a place."""
        features, edges = task.graph.features, task.graph.adjacency.nnz
        entries = features.nnz if isinstance(features, Csr) else int(features.count_nonzero())
        cells = features.shape[0] * features.shape[1]
        dense = 2 * entries > cells
        return cls(int(task.train.sum()), 4 * (cells if dense else 2 * entries) + 8 * edges, dense)


def decided(
    blank: Plan, wanted: Wanted, edges: Tensor, first: First, *, measure: bool, select: bool
) -> Plan:
    """The plan that a first batch decides: of its labelled edges by class, and its size.

    `blank`: what the user said of the rows. The user gave no homophily if it is to `measure`, and
    no gamma if it is to `select` a feature variant.
    """
    plan = replace(blank, homophily=homophily_of(edges)) if measure else blank
    names, counts, degrees = ["mix"], False, False
    if plan.mix == "adaptive" and plan.hops:
        if measure and plan.homophily < _HETEROPHILY_UNDER:
            association = association_of(edges)
            names += ["separate"] if association >= INFORMATIVE_FROM else []
            counts, enough = not first.dense, first.rows >= _ROWS_PER_CELL * TABLE
            degrees = counts and enough and plan.homophily > 0 and association < _BLIND_UNDER
        if first.dense and plan.num_features <= _NARROW and select:
            names += ["hops"]
    sizes = []
    for name in names:
        width = plan.num_features * plan.propagated(name).blocks
        cut = replace(wanted, fourier=0) if name == "hops" else wanted
        sizes.append(cut.size(first, width, len(names)))
    return replace(plan, variants=tuple(names), sizes=tuple(sizes), counts=counts, degrees=degrees)


def decides_badly(classes: int, edges: int, rows: int) -> str | None:
    """Why a first batch tells too little to decide a plan by; None if it tells enough."""
    if classes < 2:
        return "it has one class"
    if not edges:
        return "it has no edges"
    return f"it has {rows} training nodes only" if rows < _FEW_ROWS else None


def homophily_of(edges: Tensor) -> float:
    """How far neighbours resemble a node, 0 to 1: the adjusted homophily, over 0.25.

    Of the m edges between training nodes (`edges_between`), h is the share within a class and h0
    that share by chance at the same degrees. `a = (h - h0) / (1 - h0)` (Platonov et al., NeurIPS
    2023) is shrunk towards 1 with the weight of 20 edges. A single class gives 1.
    """
    every = float(edges.sum())
    m = every / 2  # an edge stands there in both directions
    chance = float((edges.sum(dim=1) / every).square().sum()) if every else 1.0
    if chance > 1 - 1e-9:  # of one class alone, too
        return 1.0
    adjusted = (float(edges.diagonal().sum()) / every - chance) / (1 - chance)
    shrunk = (m * adjusted + PRIOR_EDGES) / (m + PRIOR_EDGES)
    return min(max(shrunk / _FULL_FROM, 0.0), 1.0)


def association_of(edges: Tensor) -> float:
    """How much a neighbour's class tells of a node's, 0 to 1, whether or not the two agree.

    Cramer's V squared over the m edges between training nodes (`edges_between`): with P_ab the
    share of edges that join classes a and b, and p its marginal, `(sum_ab P_ab^2 / (p_a p_b) - 1)
    / (C - 1)`, less its expectation under independence, `C / 2m`, and shrunk towards 0 with the
    weight of 20 edges. Two classes cannot tell agreement from the opposite: 0 under three.
    """
    m = float(edges.sum()) / 2
    table = edges / max(2 * m, 1)
    share = table.sum(dim=1)
    table, share = table[share > 0][:, share > 0], share[share > 0]
    count = share.numel()
    if count < 3:
        return 0.0
    above = float((table.square() / torch.outer(share, share)).sum()) - 1
    measured = (above - count * (count - 1) / (2 * m)) / (count - 1)
    return min(max(measured, 0.0) * m / (m + PRIOR_EDGES), 1.0)


@dataclass(frozen=True)
class Wanted:
    """What the user said, None where nothing: see `Propagation`."""

    sketch: int | None = None
    fourier: int | None = None
    rank: int | None = None
    budget: float | str | None = None

    def __post_init__(self) -> None:
        for name in ("sketch", "fourier", "rank"):
            value = getattr(self, name)
            if value is not None and (value < 0 or value != int(value)):
                raise InputError(f"{name} must be a whole number of at least 0, not {value}")
        bytes_of(self.budget)

    def size(self, first: First, width: int, variants: int = 1) -> Size:
        """The size of one of so many feature variants, with `width` columns before any map.

        Bytes: those given, else three times the first batch, at least 4 MB. Columns: the square
        root of 2.5 times the bytes, at most 3,072. Directions: what the bytes hold of such
        columns, at most 512 and one per 2.8 rows; without a budget a power of two, and at least
        256 or one per eight rows. Fourier features stand beside up to 1,024 columns: of dense
        rows, and of sparse ones where rows are too few for more directions. A number that the user
        gave stands; with `sketch` bytes decide nothing.
        """
        if self.sketch is not None:
            plain = min(width, self.sketch) if self.sketch else width
            return Size(self.sketch, self._fourier(plain), self.rank or 0)
        given = bytes_of(self.budget)
        allowed = max(_GROWTH * first.nbytes, _ALWAYS_ALLOWED) if given is None else given
        allowed /= variants
        fitting = allowed / (8 * (_LEAST_RANK + _BESIDE))
        most = max(int(min(math.sqrt(_COLUMNS_TO_BYTES * allowed), fitting)), 1)
        sketch = min(_MOST_COLUMNS, most)
        plain = min(width, sketch)
        fourier = self._fourier(plain)
        if self.fourier is None:
            if not first.dense:  # what bytes hold beside the rows that directions cannot
                whole_rank = self._rank_of(first.rows)
                columns = int(allowed / (8 * (whole_rank + _BESIDE)))
                few = 2 * whole_rank <= plain <= first.rows
                fourier = max(min(fourier, columns - plain), 0) if few else 0
            fourier = min(fourier, max(most - plain, 0))
        columns = plain + fourier
        rank, fitting = self.rank, int(allowed / (8 * columns)) - _BESIDE
        if rank is None:
            if given is None:
                fitting = max(fitting, _FREE_DIRECTIONS, first.rows // _ROWS_PER_FREE_DIRECTION)
            rank = self._rank_of(first.rows, fitting)
            rank = 0 if 2 * rank > columns + _BESIDE else rank  # half a Gram is smaller then
        return Size(sketch, fourier, rank, 1.0 if first.dense or width > sketch else _POWER)

    def _fourier(self, plain: int) -> int:
        if self.fourier is not None:
            return self.fourier
        return min(2 * _NARROW, 16 * plain) if plain <= _NARROW else 0

    def _rank_of(self, rows: int, most: int = _MOST_RANK) -> int:
        """Without a budget a power of two: batches of about a size decide alike."""
        rank = max(min(_MOST_RANK, int(rows / _ROWS_PER_DIRECTION), most), _LEAST_RANK)
        return 2 ** int(math.log2(rank)) if self.budget is None else rank
