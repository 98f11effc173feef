"""What searches found: the validation score of every setting of a grid, over seeds."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from statistics import fmean
from typing import Any

from undrift.experiments.search import CHOSEN_BY, Search
from undrift.experiments.spec import RunSpec
from undrift.experiments.standing import in_order
from undrift.learners.registry import METHODS
from undrift.reporting.names import value_text
from undrift.streams.benchmarks import STREAMS

Setting = tuple[str, ...]  # its values as text, in the order of `SearchGrid.values`


@dataclass(eq=False)
class SearchGrid:
    """Searches that differ in their seed alone."""

    searches: Sequence[Search]

    @property
    def base(self) -> RunSpec:
        """What all trials share, but for the seed."""
        return self.searches[0].spec.base

    @cached_property
    def values(self) -> dict[str, list[Any]]:
        """The values of every parameter, numbers ascending, others as the grids list them."""
        listed: dict[str, dict[str, Any]] = defaultdict(dict)
        for name, values in (pair for s in self.searches for pair in sorted(s.spec.grid.items())):
            listed[name] |= {value_text(value): value for value in values}
        plain = {name: [*found.values()] for name, found in listed.items()}
        numbers = {n for n, vs in plain.items() if all(type(v) in (int, float) for v in vs)}
        return {name: sorted(vs) if name in numbers else vs for name, vs in plain.items()}

    def key(self, params: Mapping[str, Any]) -> Setting:
        """A setting as text, by which trials of several searches are seen to be the same."""
        return tuple(value_text(params.get(name)) for name in self.values)

    @cached_property
    def scores(self) -> dict[Setting, float]:
        """The mean score of every setting over the seeds that have one."""
        found: dict[Setting, list[float]] = defaultdict(list)
        for trial in (trial for search in self.searches for trial in search.trials):
            if validation := trial.validation:
                found[self.key(trial.params)].append(validation.by_class.value(CHOSEN_BY.key))
        return {key: fmean(scores) for key, scores in found.items()}

    @property
    def chosen(self) -> Counter[Setting]:
        """How many seeds chose a setting."""
        return Counter(self.key(search.chosen) for search in self.searches)

    @property
    def across(self) -> str:
        """The parameter with most values, which runs across a table."""
        return max(self.values, key=lambda name: len(self.values[name]))

    @property
    def down(self) -> list[str]:
        """The other parameters, which share the rows of a table."""
        return [name for name in self.values if name != self.across]

    @property
    def rows(self) -> Iterator[tuple[str, list[Setting]]]:
        """The rows of a table: their values as text, and the setting of every cell."""
        for values in product(*(self.values[name] for name in self.down)):
            rest = dict(zip(self.down, values, strict=True))
            across = [self.key({**rest, self.across: value}) for value in self.values[self.across]]
            yield ", ".join(map(value_text, values)), across

    def warmth(self, setting: Setting) -> float:
        """The score of a setting from 0, the worst, to 1, the best."""
        low, high = min(self.scores.values()), max(self.scores.values())
        return round((self.scores[setting] - low) / (high - low), 2) if high > low else 1.0


def search_grids(searches: Iterable[Search]) -> list[SearchGrid]:
    """Searches of the same parameters together over seeds, in our order of methods and streams."""
    alike: dict[tuple[str, ...], list[Search]] = defaultdict(list)
    for search in searches:
        if search.spec.grid:
            base = search.spec.base.model_copy(update={"seed": 0}).model_dump_json()
            varied = (name for name, values in search.spec.grid.items() if len(values) > 1)
            alike[base, *sorted(varied)].append(search)
    grids = [SearchGrid(found) for found in alike.values()]
    methods = in_order({grid.base.method for grid in grids}, METHODS)
    streams = in_order({grid.base.place for grid in grids}, STREAMS)
    return sorted(grids, key=lambda g: (methods.index(g.base.method), streams.index(g.base.place)))
