"""`Plan`: every decision of propagation, made once; docs/methods/propagation.md says why."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import MISSING, asdict, dataclass, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from undrift.checks import bytes_of, check_fields, check_regular
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.additive import RowPlan, ScoredRows
from undrift.learners.nodes import every_node
from undrift.learners.parameters import check_not_negative, check_positive
from undrift.propagation.features import TABLE, FeatureMap
from undrift.propagation.mixes import Hops, Mix, Propagated
from undrift.sparse import Csr
from undrift.streams.task import Task
from undrift.typing import Rows

if TYPE_CHECKING:
    from undrift.propagation.solve import Solved

# which feature variants there are
PRIOR_EDGES = 20.0  # weight of the prior in both measures of edges: a few edges prove nothing
INFORMATIVE_FROM = 0.3  # label association from which there is informative heterophily
_WHOLE_FROM = 0.25  # adjusted homophily from which the homophily weight is 1
_HETEROPHILY_UNDER = 0.5  # homophily weight under which informative heterophily is looked for
_BLIND_UNDER = 0.05  # label association under which edges are taken not to look at classes
_ROWS_PER_CELL = 4  # of the first batch, for every cell of a table of counts and degrees
_NARROW = 1024  # dense features of at most so many columns get a channel per hop, and Fourier's
_CHANNEL_HOPS = 2  # of `separate` and `hops`: one more widens every row by the features again
MARGIN = 0.02  # by which another variant's mean expected accuracy must be higher to be selected
_FEW_ROWS = 8  # training rows under which not even the least rank has a row per direction

# how large sums are; docs/decisions/0023 says what each number was chosen on
MOST_COLUMNS = 3072  # of a row: wider features are sketched, which costs CS's 6,805 words nothing
_MOST_RANK = 512  # beyond it accuracy no longer rises on any stream
_LEAST_RANK = 8  # however few rows there are, or bytes
_ROWS_PER_DIRECTION = 2.8  # rows of the first batch that must stand behind each direction
_FREE_DIRECTIONS = 256  # that need no asking for, where there are rows for them
_ROWS_PER_FREE_DIRECTION = 8  # nor does one for every so many rows
_GROWTH = 3  # a stream is taken to hold so many times its first batch
_ALWAYS_ALLOWED = 4e6  # bytes that need no asking for
_COLUMNS_TO_BYTES = 2.5  # columns squared per byte: about twenty columns to a direction
_BESIDE = 33  # columns of means and of the solution for 16 classes, and the diagonal
_FOURIER_PER_COLUMN = 16  # of up to 1,024 columns, so that few get few
_MOST_FOURIER = 2048  # at most: each takes as much of the sums as a column
_POWER = 0.75  # of sparse rows that are not sketched: words that repeat count less

UNITS = ("columns", "scale")
"""What `plan.json` of a folder tells beside the plan: the names of columns, and their units."""

_SEEDS = 2**63  # what every generator takes


@dataclass(frozen=True)
class Size:
    """What the rows and sums of a feature variant are cut to."""

    sketch: int
    """Rows of more columns are sketched to so many; 0: none is."""

    fourier: int
    """How many random Fourier features stand beside the columns."""

    rank: int
    """Random directions through which the Gram is seen (`ThinSums`); 0: all of it is kept."""

    power: float = 1.0
    """Entries of rows are taken to this power, over 0 and at most 1, before they are summed."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_not_negative(sketch=self.sketch, fourier=self.fourier, rank=self.rank)
        if not 0 < self.power <= 1:
            raise InputError(f"power must be greater than 0 and at most 1, not {self.power}")


@dataclass(frozen=True)
class Plan(RowPlan["Solved"]):
    """What rows depend on beside their batch: sites that agree on it can merge.

    A field that is out of its bounds is an error when the plan is made, not when it is used.
    """

    num_features: int
    """How many features a node has; batches of another width are refused."""

    mix: Mix
    """How the hops of the feature variant `mix` become one row (`Propagated`)."""

    hops: int
    """How many hops a row of it takes at most."""

    evidence_threshold: float
    """The effective feature count from which a node takes no further hop."""

    homophily: float
    """The damping of each hop, from 0 (a node's own features) to 1 (none)."""

    variants: tuple[str, ...]
    """The feature variants that are summed.

    `mix` is always the first. `separate`, ego and neighbour channels, is there under informative
    heterophily, and `hops`, a channel per hop, for narrow dense features.
    """

    sizes: tuple[Size, ...]
    """The size of each of them, in their order."""

    counts: bool = False
    """Whether columns that tell how many features a node has stand beside the mix.

    They do where neighbours disagree and features are sparse.
    """

    degrees: bool = False
    """Whether those columns tell of edges too.

    They do where edges do not look at classes either, and there are rows enough. Then a row
    depends on all edges of its batch.
    """

    seed: int = 0
    """The seed of the random maps, which are drawn anew and never stored."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_positive(num_features=self.num_features)
        self.propagated("mix")  # refuses a mix, hops, a threshold or a homophily that is none
        others = self.variants[1:]
        known = set(others) <= {"separate", "hops"} and len(set(others)) == len(others)
        if self.variants[:1] != ("mix",) or not known:
            must = "mix, then perhaps separate and hops, none of them twice"
            raise InputError(f"variants must be {must}, not {list(self.variants)}")
        if len(self.sizes) != len(self.variants):
            must = f"one for each of the {len(self.variants)} variants"
            raise InputError(f"sizes must be {must}, not {len(self.sizes)} sizes")
        if self.degrees and not self.counts:
            raise InputError("degrees must be false where counts is false, not true")
        if not 0 <= self.seed < _SEEDS:
            raise InputError(f"seed must be from 0 to 2**63 - 1, not {self.seed}")

    def propagated(self, variant: str) -> Propagated:
        """How the hops of a feature variant are mixed."""
        if variant == "separate":
            return Propagated("separate", _CHANNEL_HOPS)
        if variant == "hops":
            return Propagated("concat", _CHANNEL_HOPS, homophily=self.homophily)
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
        return self.feature_map("mix").rows_of(graph, every_node(graph) if nodes is None else nodes)

    @property
    def furthest(self) -> int | None:
        """Of the first feature variant; the whole graph, where every row depends on all edges."""
        return None if self.degrees else self.hops

    def looks(self, graph: Graph, nodes: Tensor, hops: int) -> Tensor:
        """Whether the rows of these nodes look so many hops away."""
        each = [features.propagated.looks(graph, nodes, hops) for features in self.maps().values()]
        return torch.stack(each).any(dim=0)

    def scored_rows(
        self,
        solution: Solved,
        graph: Graph,
        nodes: Tensor | None,
        dtype: torch.dtype = torch.float64,
    ) -> VariantRows:
        """Of the feature variant that was selected."""
        return VariantRows(self, solution, graph, nodes, dtype)

    def noise_rows(self, graph: Graph, nodes: Tensor, noise: Tensor) -> Tensor:
        """As the first feature variant mixes the hops of each node, without scaling to length."""
        hops = Hops.at_nodes([self.propagated("mix")], graph, nodes)
        return hops.mixed(hops.first(noise), dtype=noise.dtype)[0].to_dense()

    def log_noise(self, graph: Graph, nodes: Tensor) -> Tensor:
        """Of the first feature variant."""
        mix = self.propagated("mix")
        degrees = graph.operator.degrees.into[nodes].double()
        return mix.log_noise(mix.weights_at(graph, nodes), degrees)

    @property
    def rare_columns(self) -> bool:  # type: ignore[override]
        """Not of dense rows, whose columns are measured and not counted."""
        first = self.sizes[0]
        return first.power != 1 or 0 < first.sketch < self.num_features

    def to_json(self) -> str:
        """The plan as a text, the same for the same plan."""
        values = asdict(self)
        return json.dumps({f.name: values[f.name] for f in fields(Plan)}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str, where: str = "the plan") -> Plan:
        """The plan of such a text; what a folder tells of columns beside it is left out."""
        try:
            values = {name: v for name, v in dict(json.loads(text)).items() if name not in UNITS}
            if values.pop("structure", False):
                raise ValueError("columns of degrees went; docs/decisions/0022 names who has them")
            if "banks" in values:
                values["variants"] = values.pop("banks")
            known = {f.name: f.default is MISSING for f in fields(Plan)}
            if lacking := [name for name in known if known[name] and name not in values]:
                raise ValueError(f"it lacks {', '.join(lacking)}")
            if strange := [name for name in values if name not in known]:
                raise ValueError(f"it has {strange[0]}")
            values["sizes"] = tuple(Size(**size) for size in values["sizes"])
            return cls(**values)
        except InputError as error:
            raise InputError(f"{where} cannot be used: {error}") from error
        except (TypeError, ValueError, KeyError, RecursionError) as error:
            how = f"of {', '.join(f.name for f in fields(cls))}, as Plan.to_json() writes it"
            raise InputError(f"{where} is no plan ({error}); it is a JSON object {how}") from error


@dataclass(frozen=True, eq=False)
class VariantRows(ScoredRows["Solved"]):
    """Plain rows of a feature variant; Fourier features are formed for some at a time."""

    @property
    def features(self) -> FeatureMap:
        """From a graph to these rows."""
        return cast(Plan, self.plan).feature_map(self.solution.variant)

    @cached_property
    def rows(self) -> Rows:
        """All of them, before Fourier features."""
        return self.features.plain(self.graph, self.asked, self.dtype)

    def hops(self) -> int | Tensor | None:
        """Each node's own; None also where many nodes are asked for."""
        return self.features.reach(self.graph, self.asked)

    def scores(self, *, ranked: bool = False) -> Tensor:
        """By the weights; a ranking forms no row if it need not."""
        weights = self.solution.weights
        if ranked:
            return self.features.ranking(self.graph, weights, self.asked)
        return self.features.scored(self.rows, weights)

    def pieces(self) -> Iterator[Rows]:
        """With Fourier features, some rows at a time."""
        return (part for _, part in self.features.pieces(self.rows, 8))


_parsed = lru_cache(maxsize=32)(Plan.from_json)


def plan_given(given: Plan | str | None) -> Plan | None:
    """A plan, its JSON text, or the path of a file with it."""
    if given is None or isinstance(given, Plan):
        return given
    text = plan_text(given)
    return _parsed(text) if text is given else _parsed(text, given)


def plan_text(given: str) -> str:
    """The JSON text of a plan: itself, or what the file of this path holds."""
    if given.lstrip().startswith("{"):
        return given
    path = Path(given)
    check_regular(path)
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why, way = getattr(error, "strerror", None) or error, "Plan.to_json() or a learner folder"
        raise InputError(
            f"cannot read the plan {path} ({why}); give a file that {way} wrote"
        ) from error


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


def decides_badly(classes: int, edges: int | None, rows: int) -> str | None:
    """Why a first batch tells too little to decide a plan by; None if it tells enough.

    `edges`: None of rows that never have any, as those of whole graphs and of links.
    """
    if classes < 2:
        return "it has one class"
    if edges == 0:
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
    return min(max(shrunk / _WHOLE_FROM, 0.0), 1.0)


def association_of(edges: Tensor) -> float:
    """How much a neighbour's class tells of a node's, 0 to 1, whether or not the two agree.

    Cramer's V squared over the m edges between training nodes (`edges_between`): with P_ab the
    share of edges that join classes a and b, and p its marginal, `(sum_ab P_ab^2 / (p_a p_b) - 1)
    / (C - 1)`, less its expectation under independence, `C / 2m`, and shrunk towards 0 with the
    weight of 20 edges. Two classes cannot tell agreement from the opposite: 0 under three.
    """
    m = float(edges.sum()) / 2
    table = edges / (2 * m)
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
            plain = min(width, self.sketch or width)
            fourier = _most_fourier(plain) if self.fourier is None else self.fourier
            return Size(self.sketch, fourier, self.rank or 0)
        given = bytes_of(self.budget)
        allowed = max(_GROWTH * first.nbytes, _ALWAYS_ALLOWED) if given is None else given
        allowed /= variants
        most = min(int(math.sqrt(_COLUMNS_TO_BYTES * allowed)), _columns_in(allowed, _LEAST_RANK))
        most = max(most, 1)
        sketch = min(MOST_COLUMNS, most)
        plain = min(width, sketch)
        usual = self._fourier_beside(plain, most, allowed, first)
        fourier = usual if self.fourier is None else self.fourier
        held = self._rank_for(plain + fourier, allowed, first)
        rank = held if self.rank is None else self.rank
        return Size(sketch, fourier, rank, 1.0 if first.dense or width > sketch else _POWER)

    def _fourier_beside(self, plain: int, most: int, allowed: float, first: First) -> int:
        """Fourier features beside so many columns, of which there are at most `most` in all."""
        left = most - plain
        if not first.dense:  # what bytes hold beside the rows that directions cannot
            rank = self._supported(first.rows)
            few = 2 * rank <= plain <= first.rows
            left = min(left, _columns_in(allowed, rank) - plain) if few else 0
        return max(min(_most_fourier(plain), left), 0)

    def _rank_for(self, columns: int, allowed: float, first: First) -> int:
        """Directions for so many columns; 0, the whole Gram, where half of it is smaller."""
        held = int(allowed / (8 * columns)) - _BESIDE
        if self.budget is None:
            held = max(held, _FREE_DIRECTIONS, first.rows // _ROWS_PER_FREE_DIRECTION)
        rank = self._supported(first.rows, held)
        return 0 if 2 * rank > columns + _BESIDE else rank

    def _supported(self, rows: int, most: int = _MOST_RANK) -> int:
        """Directions that rows stand behind; without a budget a power of two.

        So batches of about a size decide alike.
        """
        rank = max(min(_MOST_RANK, int(rows / _ROWS_PER_DIRECTION), most), _LEAST_RANK)
        return 2 ** int(math.log2(rank)) if self.budget is None else rank


def _columns_in(allowed: float, rank: int) -> int:
    """Columns that so many bytes hold, with so many directions and what stands beside them."""
    return int(allowed / (8 * (rank + _BESIDE)))


def _most_fourier(plain: int) -> int:
    """Fourier features that so many columns get where nothing limits them."""
    return min(_MOST_FOURIER, _FOURIER_PER_COLUMN * plain) if plain <= _NARROW else 0
