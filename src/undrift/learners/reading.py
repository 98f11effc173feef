"""`Reading`: what a learner answers about nodes: scores, classes, probabilities, strangeness."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self, final

import torch
from torch import Tensor

from undrift.analytic.groups import grouped, principal
from undrift.analytic.novelty import Strangeness
from undrift.errors import InputError
from undrift.graphs import Encoding, Graph, ReceptiveField, Scaling
from undrift.learners.nodes import Nodes, node_index, placed
from undrift.learners.novelty import SMOOTHED, smoothed
from undrift.learners.parameters import Parameters
from undrift.sharing import is_shared
from undrift.streams.any_graph import as_graph, with_class_ids
from undrift.typing import Progress, silent

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
_LOOKS = 256  # random directions through which rows are seen to be grouped


def likeliest(scores: Tensor, classes: Sequence[int]) -> Tensor:
    """The class of the largest score per node; among those within `EXACT` of it, the smallest id.

    So rounding decides nothing: where noise drowned all classes, every machine answers the same.

    >>> likeliest(torch.tensor([[0.5, 0.7, 0.7]]).double(), [4, 9, 2])
    tensor([2])
    """
    least = scores.amax(dim=1) - EXACT * scores.abs().amax(dim=1)
    ids = torch.tensor(classes).expand_as(scores)
    return ids.masked_fill(scores.cpu() < least.cpu().unsqueeze(1), max(classes)).amin(dim=1)


@dataclass(kw_only=True)
class Reading(Parameters):
    """What a learner answers. It says how by `_scores`, and two more functions if it can.

    `learned_` is what it knows, in its own dataclass. `scaling_`: the units that columns are put
    into, or the encoding that rows of tables came in; None: as given. `columns_`: their names, if
    a pair of tables had some.
    """

    display: ClassVar[str]  # in tables and figures; the name without it

    seed: int = 0
    device: str = "cpu"
    learned_: Any = field(default=None, init=False, repr=False, compare=False)
    scaling_: Scaling | Encoding | None = field(default=None, init=False, repr=False, compare=False)
    columns_: tuple[str, ...] | None = field(default=None, init=False, repr=False, compare=False)

    @abstractmethod
    def _scores(self, learned: Any, graph: Graph, nodes: Tensor | None) -> Tensor:
        """Scores of these nodes (indices; None: all), columns as in `learned.classes`."""

    def _hops(self, learned: Any, graph: Graph, nodes: Tensor) -> int | Tensor | None:
        """How many hops away the scores of these nodes look, or for each; None: the whole graph."""
        return None

    def _temperature(self, learned: Any) -> float | None:
        """What scores are divided by to be the logits of probabilities; None: there are none."""
        return None

    def settle(self, *, progress: Progress = silent) -> Self:
        """Finish what `observe` put off until it is needed; predicting and saving do it too."""
        return self

    @property
    def classes_(self) -> tuple[int, ...]:
        """Every class observed so far, in order of arrival."""
        return () if self.learned_ is None else tuple(self.learned_.classes)

    @property
    def encoding_(self) -> Encoding | None:
        """What the columns of the tables mean that it learned; for `Graph.from_table`.

        >>> from undrift import Graph, Propagation
        >>> batch = Graph.from_table({"age": [30, 34, 71], "ill": [0, 0, 1]}, target="ill")
        >>> print(Propagation().observe(batch).encoding_)
        age: 34 +- 15.2
        """
        return self.scaling_ if isinstance(self.scaling_, Encoding) else None

    def scores(self, graph: Any, nodes: Nodes | None = None) -> Tensor:
        """A score per node and class seen; columns in the order of `classes_`.

        `graph`: anything that `as_graph` takes, such as a PyG `Data`. `nodes`: only these, by
        number or as a mask. What is computed then is their receptive field.
        """
        graph, index = self._narrowed(graph, nodes)
        with torch.no_grad():
            return self._scores(self.learned_, graph, index).cpu()

    def predict(
        self, graph: Any, nodes: Nodes | None = None, *, unknown: float | None = None
    ) -> Tensor:
        """A class id per node, or per node of `nodes`; never one that was not observed.

        `unknown`: the share of nodes of known classes that may be called `UNKNOWN` (-1) by
        mistake. Nodes of a `novelty` above one minus that get it.

        >>> from undrift import UNKNOWN, Propagation
        >>> from undrift.testing.graphs import tiny_stream
        >>> first, second, _ = tiny_stream()
        >>> strange = Propagation().observe(first).predict(second.graph, unknown=0.05)
        >>> bool((strange == UNKNOWN).any())
        True
        """
        found = likeliest(self.ranking(graph, nodes), self.classes_)
        if unknown is None:
            return found
        return found.masked_fill(self.novelty(graph, nodes) > 1 - alarm_rate(unknown), UNKNOWN)

    def ranking(self, graph: Any, nodes: Nodes | None = None) -> Tensor:
        """Scores up to a positive factor per node, where that costs less."""
        return self.scores(graph, nodes)

    def strangeness(
        self, graph: Any, nodes: Nodes | None = None, *, kind: Strange | None = None
    ) -> Tensor:
        """How little a node looks like a known class, as a number that ranks; larger is stranger.

        Of an additive learner a distance, from its sums (docs/novelty.md). Of a trained method
        `energy`, `-T logsumexp(scores / T)`, or `softmax`, minus the largest probability.
        """
        found = self._strange(graph) if kind is None else None
        if found is not None:
            return self._looked_at(found, graph, nodes)[1]
        scores = self.scores(graph, nodes).double()
        t = self._temperature(self.learned_) or 1.0
        if kind == "softmax":
            return -torch.softmax(scores / t, dim=1).amax(dim=1)
        return -t * (scores / t).logsumexp(dim=1)

    def novelty(self, graph: Any, nodes: Nodes | None = None) -> Tensor:
        """One minus the share of nodes of known classes that would look at least as strange.

        0.99: one known node in a hundred looks as strange. Additive learners alone can tell it.

        >>> from undrift import Propagation
        >>> from undrift.testing.graphs import tiny_stream
        >>> first, second, _ = tiny_stream()
        >>> float(Propagation().observe(first).novelty(second.graph).mean()) > 0.5
        True
        """
        strangeness = self._strangeness(graph, "tell how strange known nodes look")
        return strangeness.novelty(self._looked_at(strangeness, graph, nodes)[1])

    def groups(self, graph: Any, nodes: Nodes | None = None) -> Tensor:
        """A group number for each of these nodes, 0 for the largest: a guess at new classes.

        Without `nodes`, of those that `predict(graph, unknown=0.05)` calls unknown, in their order.
        Only additive learners can tell it, from their sums.

        >>> from undrift import Propagation
        >>> from undrift.testing.graphs import tiny_stream
        >>> first, second, _ = tiny_stream()
        >>> Propagation().observe(first).groups(second.graph, [4]).tolist()
        [0]
        """
        strangeness = self._strangeness(graph, "group nodes")
        nodes = self.novelty(graph) > 1 - SELDOM if nodes is None else nodes
        known = self.learned_
        drawn = torch.Generator().manual_seed(0)
        looks = torch.randn(strangeness.weights.shape[0], _LOOKS, generator=drawn).to(
            strangeness.weights
        )
        rows = self._seen(replace(strangeness, weights=looks), graph, nodes)[1][:, :_LOOKS]
        sums = known.plan.scored_sums(known.sums, known.answer)
        there = (sums.counts > 0.5).nonzero().flatten().tolist()
        return grouped(principal(rows, sums.select(there).score_covariance(looks)[0])).cpu()

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

    def predict_proba(
        self, graph: Any, nodes: Nodes | None = None, *, unknown: bool = False
    ) -> Tensor:
        """A probability per node and class seen: `softmax(scores / T)`, rows that add up to one.

        `unknown=True`: a last column has the `novelty`, and the others share the rest.

        T is 1 where scores are the logits of a trained head, and told by the sums in `propagation`
        and `hybrid`; without one there are no probabilities.
        """
        if not unknown:
            return self.probabilities_of(self.scores(graph, nodes))
        scores, novelty = self.judged(graph, nodes)
        found = self.probabilities_of(scores)
        strange = (self.novelty(graph, nodes) if novelty is None else novelty).unsqueeze(1)
        return torch.cat([found * (1 - strange), strange], dim=1)

    def probabilities_of(self, scores: Tensor) -> Tensor:
        """What `predict_proba` makes of scores."""
        temperature = self._temperature(self.learned_)
        if temperature is None:
            few = len(self.classes_) < 2
            way_out = "observe a second class" if few else "take propagation, which has them"
            raise InputError(
                f"{self.display} has scores but no probabilities here; use scores(graph), or "
                f"{way_out}"
            )
        return torch.softmax(scores.double() / temperature, dim=1)

    def judged(self, graph: Any, nodes: Nodes | None = None) -> tuple[Tensor, Tensor | None]:
        """Scores and novelty, from rows that are made once; no novelty where it is not told."""
        strangeness = self._strange(graph)
        if strangeness is None:
            return self.scores(graph, nodes), None
        scores, strange = self._looked_at(strangeness, graph, nodes, scored=True)
        return scores, strangeness.novelty(strange)

    @final
    def _strange(self, graph: Any) -> Strangeness | None:
        """How strange rows look to what is known; only sums tell."""
        self._check_graph(as_graph(graph))
        found: Strangeness | None = getattr(self.settle().learned_, "strange", None)
        return found

    @final
    def _strangeness(self, graph: Any, what: str) -> Strangeness:
        """The same, where nothing else will do."""
        found = self._strange(graph)
        if found is None:
            raise InputError(
                f"{self.display} keeps no sums that {what}; strangeness(graph) ranks nodes, or "
                "take propagation, which has novelty and groups"
            )
        return found

    @final
    def _looked_at(
        self, strangeness: Strangeness, graph: Any, nodes: Nodes | None, *, scored: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Scores, if asked for, and distances averaged over neighbours, of all or these nodes."""
        graph, index = placed(as_graph(graph), nodes)
        field = None if index is None else ReceptiveField.of(graph, index, SMOOTHED)
        inner, around = (graph, None) if field is None else (field.graph, field.nodes)
        scores, raw = self._seen(strangeness, graph, around, scored=scored)
        strange = smoothed(inner, strangeness.scores(raw).cpu()).cpu()
        if index is None:
            return scores.cpu(), strange
        at = index.cpu() if field is None else field.at.cpu()
        return scores.cpu()[at if scored else at[:0]], strange[at]

    @final
    def _seen(
        self, strangeness: Strangeness, graph: Any, nodes: Nodes | None, *, scored: bool = False
    ) -> tuple[Tensor, Tensor]:
        graph, index = self._narrowed(graph, nodes)
        known, there = self.learned_, None if index is None else index.to(self.device)
        asked = known.answer, graph.to(self.device), there, strangeness
        with torch.no_grad():
            found: tuple[Tensor, Tensor] = known.plan.seen(*asked, scored=scored)
        return found

    @final
    def _narrowed(self, graph: Any, nodes: Nodes | None) -> tuple[Graph, Tensor | None]:
        """The nodes asked for (None: all), and the graph they are looked at in."""
        graph = as_graph(graph)
        self._check_graph(graph)
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
    def _check_graph(self, graph: Graph) -> None:
        if not self.classes_:
            raise InputError("nothing was observed yet; observe a batch before predicting")
        self._check_width(graph)

    @final
    def _check_width(self, graph: Graph) -> None:
        columns = graph.names.columns
        if columns and self.columns_ and columns != self.columns_:
            raise InputError(
                f"the columns of this table are {', '.join(columns[:20])}, and learned were "
                f"{', '.join(self.columns_[:20])}; give the same in the same order, as in "
                'nodes[["id", *learner.columns_]]'
            )
        if graph.num_features != self.learned_.num_features:
            raise InputError(
                f"this graph has {graph.num_features} features per node, but "
                f"{self.learned_.num_features} were learned; give the same columns in the same "
                "order"
            )
        if graph.encoding and self.encoding_ and graph.encoding != self.encoding_:
            raise InputError(
                "the columns of this table were encoded in another way than was learned; make it "
                "with Graph.from_table(frame, encoding=learner.encoding_)"
            )


def alarm_rate(unknown: float) -> float:
    """The false-alarm rate, if it is one."""
    if not isinstance(unknown, int | float) or not 0 < unknown < 1:
        raise InputError(
            f"unknown must be a false-alarm rate between 0 and 1, such as 0.05, not {unknown!r}"
        )
    return unknown
