"""`Plan`: every decision of propagation, made once; learners with the same plan can merge."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import torch
from torch import Tensor

from undrift.checks import check_fields, check_regular
from undrift.errors import InputError
from undrift.graphs import Graph
from undrift.learners.parts.propagation.counts import TABLE
from undrift.learners.parts.propagation.feature_map import FeatureMap
from undrift.learners.parts.propagation.labelled_edges import association_of, homophily_of
from undrift.learners.parts.propagation.propagated import Mix, Propagated
from undrift.learners.parts.propagation.size import First, Size, Wanted

# what these numbers rest on: docs/methods/propagation.md
_HETEROPHILY_UNDER = 0.5  # homophily weight under which informative heterophily is looked for
INFORMATIVE_FROM = 0.3  # label association from which it is found
_BLIND_UNDER = 0.05  # label association under which edges are taken not to look at classes
_ROWS_PER_CELL = 4  # of the first batch, for every cell of a table of counts and degrees
_NARROW = 1024  # dense features of at most so many columns get a bank with a channel per hop
_FEW_ROWS = 8  # training rows under which not even the least rank has a row per direction
BANKS = ("mix", "separate", "hops")
"""Every bank that a plan may have."""


@dataclass(frozen=True)
class Plan:
    """What rows depend on beside their batch: sites that agree on it can merge.

    `num_features`: columns of the features. `mix`, `hops`, `evidence_threshold`: how the hops are
    mixed (`Propagated`). `homophily`: the damping of each hop, 0 to 1. `banks`: the kinds of rows
    that are summed: `mix` always; `separate`, ego and neighbour channels, under informative
    heterophily; `hops`, a channel per hop, for narrow dense features. `sizes`: of each bank
    (`Size`: columns, Fourier features, rank, power). `counts`: whether columns that tell how many
    features a node has stand beside the mix: where neighbours disagree and features are sparse.
    `degrees`: whether they tell of edges too: where edges do not look at classes either, and there
    are rows enough. `structure`: whether three columns of degrees stand beside. `seed`: of the
    random maps.
    """

    num_features: int
    mix: Mix
    hops: int
    evidence_threshold: float
    homophily: float
    banks: tuple[str, ...]
    sizes: tuple[Size, ...]
    counts: bool = False
    degrees: bool = False
    structure: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        strange = [bank for bank in self.banks if bank not in BANKS]
        if strange or "mix" not in self.banks or len(self.banks) != len(self.sizes):
            raise InputError(
                f"a plan has the bank mix, perhaps separate and hops, and a size for each, not "
                f"banks {list(self.banks)} and {len(self.sizes)} sizes"
            )

    # what rows are -----------------------------------------------------------------------

    def size(self, bank: str) -> Size:
        """What the rows and sums of this bank are cut to."""
        return self.sizes[self.banks.index(bank)]

    def propagated(self, bank: str) -> Propagated:
        """How the hops of a bank are mixed."""
        if bank == "separate":
            return Propagated("separate", hops=2)
        if bank == "hops":
            return Propagated("concat", hops=2, homophily=self.homophily)
        return Propagated(self.mix, self.hops, self.evidence_threshold, self.homophily)

    def feature_map(self, bank: str) -> FeatureMap:
        """The features of a bank: `mix`, `separate` or `hops`."""
        size, mix = self.size(bank), bank == "mix"
        extra = self.seed, self.structure, size.power, size.rank
        counted = self.counts and mix, self.degrees and mix
        return FeatureMap(self.propagated(bank), size.sketch, size.fourier, *extra, *counted)

    def maps(self) -> Iterator[FeatureMap]:
        """Those of all banks."""
        return (self.feature_map(bank) for bank in self.banks)

    @property
    def sees_all_edges(self) -> bool:
        """Whether every row depends on all edges of its batch."""
        return self.degrees

    @property
    def trained_on(self) -> str | None:
        """Nothing is trained."""
        return None

    def reach(self, graph: Graph) -> Tensor:
        """For every node, how many hops away its rows look."""
        reach = torch.zeros(graph.num_nodes, dtype=torch.int64, device=graph.device)
        for each in self.maps():
            reach = reach.maximum(each.reach(graph))
        return reach

    def looks(self, graph: Graph, nodes: Tensor, hops: int) -> Tensor:
        """Whether the rows of these nodes look so many hops away."""
        return torch.stack([each.looks(graph, nodes, hops) for each in self.maps()]).any(dim=0)

    # a text for a file -------------------------------------------------------------------

    def to_json(self) -> str:
        """The plan as a text, the same for the same plan."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str, where: str = "the plan") -> Plan:
        """The plan of such a text."""
        try:
            told = dict(json.loads(text))
            told["sizes"] = tuple(Size(**size) for size in told["sizes"])
            told["banks"] = tuple(told["banks"])
            return cls(**told)
        except (TypeError, ValueError, KeyError) as error:
            names = ", ".join(f.name for f in fields(cls))
            raise InputError(
                f"{where} is no plan ({error}); it is a JSON object of {names}, as "
                "Plan.to_json() writes it"
            ) from error


def read_plan(told: Plan | str | None) -> Plan | None:
    """A plan, its JSON text, or the path of a file with it."""
    if told is None or isinstance(told, Plan):
        return told
    if told.lstrip().startswith("{"):
        return Plan.from_json(told)
    path = Path(told)
    check_regular(path)
    try:
        return Plan.from_json(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise InputError(
            f"cannot read the plan {path} ({error.strerror or error}); give a file that "
            "Plan.to_json() or undrift learner new wrote"
        ) from error


def decided(
    blank: Plan,
    wanted: Wanted,
    edges: Tensor,
    first: First,
    *,
    homophily: float | None,
    gamma: float | None,
) -> Plan:
    """The plan that a first batch decides: of its labelled edges by class, and its size.

    `blank`: what the user said of the rows. `homophily`: damping that the user gave, or None.
    `gamma`: as given; a bank that is selected by it has none.
    """
    measured = homophily_of(edges) if homophily is None else homophily
    plan = replace(blank, homophily=measured)
    names, counts, degrees = ["mix"], False, False
    if plan.mix == "adaptive" and plan.hops:
        if homophily is None and measured < _HETEROPHILY_UNDER:
            names += ["separate"] if association_of(edges) >= INFORMATIVE_FROM else []
            counts = not first.dense
            degrees = counts and measured > 0 and first.rows >= _ROWS_PER_CELL * TABLE
            degrees = degrees and association_of(edges) < _BLIND_UNDER
        narrow = first.dense and plan.num_features <= _NARROW and gamma is None
        names += ["hops"] if narrow else []
    sizes = []
    for name in names:
        width = plan.propagated(name).width(plan.num_features)
        cut = replace(wanted, fourier=0) if name == "hops" else wanted
        sizes.append(cut.size(first, width, len(names)))
    return replace(plan, banks=tuple(names), sizes=tuple(sizes), counts=counts, degrees=degrees)


def decides_badly(classes: int, edges: int, rows: int) -> str | None:
    """Why a first batch tells too little to decide a plan by; None if it tells enough."""
    if classes < 2:
        return "it has one class"
    if not edges:
        return "it has no edges"
    return f"it has {rows} training nodes only" if rows < _FEW_ROWS else None
