"""`Reading`: what a learner answers about nodes: scores, classes, probabilities, strangeness."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, final, get_args

import torch
from torch import Tensor

from undrift.analytic.left_out import NoveltyReport
from undrift.analytic.novelty import LEAST_ALARMS
from undrift.checks import checked
from undrift.errors import InputError, unknown_name
from undrift.graphs import Encoding, Graph, Pooling, ReceptiveField, Scaling
from undrift.learners.any_learner import AnyLearner
from undrift.learners.nodes import Nodes, node_index
from undrift.learners.parameters import Device, Seed
from undrift.sharing import is_shared
from undrift.streams.any_graph import as_graph, with_class_ids
from undrift.typing import Progress, silent

if TYPE_CHECKING:
    from undrift.learners.novelty import Judged

EXACT = 1e-9
"""How far scores may be from those of one training, over the largest, and be called exact."""

UNKNOWN = -1
"""What `predict(unknown=...)` answers for a node that looks like no known class.

>>> import torch
>>> from undrift import UNKNOWN
>>> int((torch.tensor([2, -1, 0]) == UNKNOWN).sum())  # of three predictions
1
"""

Strange = Literal["energy", "softmax"]
SELDOM = 0.05  # the false-alarm rate where none is given


def likeliest(scores: Tensor, classes: Sequence[int]) -> Tensor:
    """The class of the largest score per node; among those within `EXACT` of it, the smallest id.

    So rounding decides nothing: where noise drowned all classes, every machine answers the same.

    >>> likeliest(torch.tensor([[0.5, 0.7, 0.7]]).double(), [4, 9, 2])
    tensor([2])
    """
    least = scores.amax(dim=1) - EXACT * scores.abs().amax(dim=1)
    ids = torch.tensor(classes).expand_as(scores)
    return ids.masked_fill(scores.cpu() < least.cpu().unsqueeze(1), max(classes)).amin(dim=1)


class Learned(Protocol):
    """What a method knows: its own frozen dataclass, with at least these two fields."""

    @property
    def classes(self) -> tuple[int, ...]:
        """In order of arrival."""

    @property
    def num_features(self) -> int:
        """The feature width that was learned."""


@dataclass(kw_only=True)
class Reading(AnyLearner):
    """What a learner answers. It says how by `_scores`, and two more functions if it can.

    `learned_` is what it knows, in its own dataclass. `scaling_`: the units that columns are put
    into, or the encoding that rows of tables came in; None: as given. `columns_`: their names, if
    a pair of tables had some.
    """

    seed: Seed = 0
    device: Device = "cpu"
    learned_: Learned | None = field(default=None, init=False, repr=False, compare=False)
    scaling_: Scaling | Encoding | None = field(default=None, init=False, repr=False, compare=False)
    columns_: tuple[str, ...] | None = field(default=None, init=False, repr=False, compare=False)

    @final
    def _empty(self) -> bool:
        return self.learned_ is None

    @abstractmethod
    def _scores(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        """Scores of these nodes (indices; None: all), columns as in `learned.classes`."""

    def _hops(self, learned: Any, graph: Graph, nodes: Tensor) -> int | Tensor | None:
        """How many hops away the scores of these nodes look, or for each; None: the whole graph."""
        return None

    def _temperature(self, learned: Any) -> float | None:
        """What scores are divided by to be the logits of probabilities; None: there are none."""
        return None

    def _judged(
        self, graph: Graph, nodes: Nodes | None, *, scored: bool = False, ranked: bool = False
    ) -> Judged | None:
        """What sums tell of nodes, with scores if asked for; None: there are none that do.

        `ranked`: neighbours count whether or not they agree, for a ranking and no rate.
        """
        return None

    def _grouped(self, graph: Graph, nodes: Nodes) -> Tensor | None:
        """A group number for each of these nodes, from sums; None: there are none."""
        return None

    def settle(self, *, progress: Progress = silent) -> Self:
        """Finish what `observe` put off until it is needed; predicting and saving do it too."""
        return self

    @property
    @final
    def classes_(self) -> tuple[int, ...]:
        """Every class observed so far, in order of arrival."""
        return () if self.learned_ is None else tuple(self.learned_.classes)

    @property
    @final
    def encoding_(self) -> Encoding | None:
        """What the columns of the tables mean that it learned; for `Graph.from_table`.

        >>> from undrift import Graph, Propagation
        >>> batch = Graph.from_table({"age": [30, 34, 71], "ill": [0, 0, 1]}, target="ill")
        >>> print(Propagation().observe(batch).encoding_)
        age: 34 +- 15.2
        """
        return self.scaling_ if isinstance(self.scaling_, Encoding) else None

    @final
    def scores(self, graph: Any, nodes: Nodes | None = None) -> Tensor:
        """A score per node and class seen, in the order of `classes_`.

        `graph`: anything that `as_graph` takes. `nodes`: only these, by number, id or a mask.
        """
        graph, index = self._narrowed(graph, nodes)
        with torch.no_grad():
            return self._scores(self.learned_, graph, index).cpu()

    @final
    def predict(
        self, graph: Any, nodes: Nodes | None = None, *, unknown: float | None = None
    ) -> Tensor:
        """A class id per node, or per node of `nodes`; never one that was not observed.

        `unknown`: the share of nodes of known classes that may be called `UNKNOWN` (-1) by mistake.
        """
        found = likeliest(self.ranking(graph, nodes), self.classes_)
        if unknown is None:
            return found
        return found.masked_fill(self.novelty(graph, nodes) > 1 - alarm_rate(unknown), UNKNOWN)

    def ranking(self, graph: Any, nodes: Nodes | None = None) -> Tensor:
        """Scores up to a positive factor per node, where that costs less."""
        return self.scores(graph, nodes)

    @final
    def strangeness(
        self, graph: Any, nodes: Nodes | None = None, *, kind: Strange | None = None
    ) -> Tensor:
        """How little a node looks like a known class, as a number that ranks; larger is stranger.

        Of an additive learner a distance, from its sums (docs/novelty.md). Of a trained method
        `energy`, `-T logsumexp(scores / T)`, or `softmax`, minus the largest probability.
        """
        if kind not in (None, *get_args(Strange)):
            raise unknown_name("kind", str(kind), get_args(Strange))
        graph = self._checked(graph)
        found = self._judged(graph, nodes, ranked=True) if kind is None else None
        if found is not None:
            return found.strange
        scores = self.scores(graph, nodes).double()
        t = self._temperature(self.learned_) or 1.0
        if kind == "softmax":
            return -torch.softmax(scores / t, dim=1).amax(dim=1)
        return -t * (scores / t).logsumexp(dim=1)

    @final
    def novelty(self, graph: Any, nodes: Nodes | None = None) -> Tensor:
        """One minus the share of known nodes that look as strange; additive learners tell it."""
        graph = self._checked(graph)
        found = self._judged(graph, nodes)
        if found is None:
            raise self._no_sums("tell how strange known nodes look")
        return found.novelty

    def novelty_report(self, alarms: float = 0.05) -> NoveltyReport | None:
        """What would be detected of each class if it were unknown; None: nothing kept tells it."""
        alarm_rate(alarms, "alarms")
        return None

    @final
    def groups(self, graph: Any, nodes: Nodes | None = None) -> Tensor:
        """A group number for each of these nodes, 0 for the largest: a guess at new classes.

        At most so many: a class is rather cut in several than joined with another. Without `nodes`,
        of those that `predict(graph, unknown=0.05)` calls unknown, in their order.
        Only additive learners can tell it, from their sums.

        >>> from undrift import Propagation
        >>> from undrift.testing.graphs import tiny_stream
        >>> first, second, _ = tiny_stream()
        >>> Propagation().observe(first).groups(second.graph, [4]).tolist()
        [0]
        """
        graph = self._checked(graph)
        asked = self.novelty(graph) > 1 - SELDOM if nodes is None else nodes
        found = self._grouped(graph, asked)
        if found is None:
            raise self._no_sums("group nodes")
        return found

    @final
    def score(self, graph: Any, nodes: Nodes | None = None) -> float:
        """The share of labelled nodes that are predicted right, 0 to 1; of all, or of `nodes`."""
        graph = with_class_ids(graph)
        index = node_index(nodes, graph).cpu()
        graph = graph.numbered()
        labels = graph.labelled().cpu()[index]
        known = labels >= 0
        if not bool(known.any()):
            raise InputError("none of these nodes has a label to compare with; set y or labels")
        right = self.predict(graph, index[known]) == labels[known]
        return float(right.double().mean())

    @final
    def predict_proba(
        self, graph: Any, nodes: Nodes | None = None, *, unknown: bool = False
    ) -> Tensor:
        """A probability per node and class seen: `softmax(scores / T)`, rows that add up to one.

        `unknown=True`: a last column has the `novelty`, and the others share the rest. T is 1 for
        the logits of a trained head. The sums of `propagation` and `hybrid` tell it; others do not.
        """
        if not checked("unknown", bool, unknown):
            return self.probabilities_of(self.scores(graph, nodes))
        scores, novelty = self.judged(graph, nodes)
        found = self.probabilities_of(scores)
        strange = (self.novelty(graph, nodes) if novelty is None else novelty).unsqueeze(1)
        return torch.cat([found * (1 - strange), strange], dim=1)

    @final
    def probabilities_of(self, scores: Tensor) -> Tensor:
        """What `predict_proba` makes of scores."""
        temperature = self._temperature(self.learned_)
        if temperature is None:
            few = len(self.classes_) < 2
            way = "observe a second class" if few else "take propagation, which has them"
            what = f"{self.display} has scores but no probabilities here"
            raise InputError(f"{what}; use scores(graph), or {way}")
        return torch.softmax(scores.double() / temperature, dim=1)

    @final
    def judged(self, graph: Any, nodes: Nodes | None = None) -> tuple[Tensor, Tensor | None]:
        """Scores and novelty, from rows that are made once; no novelty where it is not told."""
        graph = self._checked(graph)
        found = self._judged(graph, nodes, scored=True)
        if found is None:
            return self.scores(graph, nodes), None
        return found.scores, found.novelty

    @final
    def _no_sums(self, what: str) -> InputError:
        noisy = getattr(self, "epsilon", None) is not None
        sums, way = " without noise (epsilon)" * noisy, " without epsilon" * noisy
        keeps = f"{self.display} keeps no sums{sums} that {what}; strangeness(graph) ranks nodes"
        return InputError(f"{keeps}, or take propagation{way}, which has novelty and groups")

    @final
    def _checked(self, graph: Any) -> Graph:
        found = as_graph(graph)
        if not self.classes_:
            raise InputError("nothing was observed yet; observe a batch before predicting")
        self._check_width(found)
        return found

    @final
    def _narrowed(self, graph: Any, nodes: Nodes | None) -> tuple[Graph, Tensor | None]:
        """The nodes asked for (None: all), and the graph they are looked at in."""
        graph = self._checked(graph)
        self.settle()
        if isinstance(self.scaling_, Scaling):
            graph = graph.scaled(self.scaling_)
        if nodes is None:
            return graph, None
        index = node_index(nodes, graph)
        # side by side the work on the whole graph is done once for many
        hops = None if is_shared() else self._hops(self.learned_, graph, index)
        field = None if hops is None else ReceptiveField.of(graph, index, hops)
        return (graph, index) if field is None else (field.graph, field.at)

    @final
    def _check_width(self, graph: Graph) -> None:
        columns = graph.names.columns
        if columns and self.columns_ and columns != self.columns_:
            what, way = "the columns of this table are", "give the same in the same order, as in "
            way += 'nodes[["id", *learner.columns_]]'
            if graph.names.unlinked:
                what, way = "the rows of this batch are made by", "make them alike"
            learned = ", ".join(self.columns_[:20])
            raise InputError(f"{what} {', '.join(columns[:20])}, and learned were {learned}; {way}")
        if graph.encoding is not None and graph.encoding != self.encoding_:
            if self.encoding_ is None:
                what = "this is a table, and columns were learned as they are, in no encoding"
                raise InputError(f"{what}; give what was learned, or learn tables anew")
            raise InputError(
                "the columns of this table were encoded in another way than was learned; make it "
                "with Graph.from_table(frame, encoding=learner.encoding_)"
            )
        here = graph.num_features
        there = here if self.learned_ is None else self.learned_.num_features
        if here != there:
            way = "give the same columns in the same order"
            if Pooling().width(here) == there:
                way = "for a whole graph, give a list: [graph]"
            learned = f"but {there} were learned"
            raise InputError(f"this graph has {here} features per node, {learned}; {way}")


class Embedding(Reading):
    """One answer more, of a method with an encoder; `encoder_at`: where that is in `learned_`."""

    encoder_at: ClassVar[str]

    @final
    def embed(self, graph: Any) -> Tensor:
        """The encoder's embeddings of every node, of anything that `as_graph` takes."""
        graph, _ = self._narrowed(graph, None)
        found: Tensor = attrgetter(self.encoder_at)(self.learned_).embed(graph)
        return found.cpu()


def alarm_rate(unknown: float, name: str = "unknown") -> float:
    """The false-alarm rate, if it is one that the distribution of known rows can tell."""
    rate: float = checked(name, float, unknown)
    if not LEAST_ALARMS <= rate < 1:
        must = f"a false-alarm rate between {LEAST_ALARMS} and 1, such as 0.05"
        raise InputError(f"{name} must be {must}, not {unknown}")
    return rate
