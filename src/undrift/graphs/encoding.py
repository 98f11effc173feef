"""A table without edges: its columns as numbers (`Encoding`), and its edges (`Nearest`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from undrift.cells import MISSING, as_category, as_text, days, fits
from undrift.errors import InputError
from undrift.formatting import some_of
from undrift.graphs.scaling import FARTHEST, Array, Scaling, check_given
from undrift.sparse import Csr

Cells = Mapping[str, Sequence[Any]]
_LONGEST, _FEW, _PART = 60, 10, 4  # free text: longer, or more values than both 10 and a 4th
_SHOWN = 6
_NO_CELLS = (list, tuple, dict, set, bytes, complex, np.ndarray)
_MONTH = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DATE = re.compile(
    r"\d{1,4}([/.-])\d{1,2}\1\d{1,4}( .*)?|\d{4}[/-](0?[1-9]|1[0-2])|[0-2]\d:[0-5]\d(:[0-5]\d)?"
    rf"|\d{{1,2}}[ .-]+{_MONTH}[ .,-]+\d{{2,4}}|{_MONTH}[ .-]+(\d{{1,2}},? )?\d{{4}}",
    re.IGNORECASE,
)
_COMMA = re.compile(r"[+-]?(\d{1,3}([ ',.]\d{3})+([.,]\d+)?|\d*,\d+)")  # 36,5 and 1,200
_GRID = 1024  # steps per unit that distances are measured in: then every sum is exact
_AT_ONCE = 4_000_000  # distances that are held at a time: about 150 MB


class Number(NamedTuple):
    """A column of numbers, in units of its spread."""

    centre: float
    spread: float


Kind = Number | tuple[str, ...]
"""What a column holds: numbers, or categories by their names."""


@dataclass(frozen=True)
class Encoding:
    """What every column of a table means: a name and a kind each, in the order of the numbers.

    A number becomes two columns: `(x - centre) / spread`, moved to -4 or 4 where it is farther
    away, and whether it is missing, then at the centre. A category becomes a column per value, one
    for missing and one for values that are not listed. A cell is missing if it is empty, None, NaN,
    or a word of `cells.MISSING` that is no listed category. `2.0` is the category `2`, and truth
    values are the categories `True` and `False`, in whatever case they are written. So later
    batches have the same columns, and a row is a function of its cells. `shown`: the
    columns that were not given but seen in data.

    >>> known = Encoding.of({"age": [30, 40, None], "sex": ["f", "m", "f"]})
    >>> print(known)
    age: 30 +- 10, sex: f | m
    >>> known.matrix({"sex": ["x"], "age": [""]}).tolist()  # missing; neither f nor m, nor missing
    [[0.0, 1.0, 0.0, 0.0, 0.0, 1.0]]
    """

    columns: tuple[tuple[str, Kind], ...]
    shown: frozenset[str] = field(default=frozenset(), compare=False, repr=False)

    @classmethod
    def of(
        cls, cells: Cells, given: Mapping[str, Any] | None = None, where: str = "the table"
    ) -> Encoding:
        """The columns that are `given` as they are, the others as these cells show.

        `given`: by name, a list of categories, or a range or a centre and a spread, as
        `as_plain` writes them. Others are numbers where every cell that is not missing is one, by
        the rules of `Scaling.of`. They are categories where most cells are no numbers, in the order
        of the alphabet. Else, and for dates and free text, there is an error. Cost: one pass, and a
        sort of each column.
        """
        if not isinstance(given, Mapping | None):
            raise InputError(f"give an Encoding, or a mapping by column, not {given!r}")
        fixed = {name: _given(name, each) for name, each in (given or {}).items()}
        found = {name: _shown(name, cells[name], where) for name in cells if name not in fixed}
        return cls((*fixed.items(), *found.items()), frozenset(found))

    def matrix(self, cells: Cells, where: str = "the table") -> Array:
        """A row of numbers per row of the table, float32; columns are found by their names."""
        there, known = list(cells), [name for name, _ in self.columns]
        lacking = [repr(name) for name in known if name not in there]
        strange = [repr(name) for name in there if name not in known]
        if lacking or strange:
            what = f"lacks {', '.join(lacking[:6])}" if lacking else f"also has {strange[0]}"
            way = "add it with empty cells, if nobody knows them" if lacking else "leave it out"
            raise InputError(f"{where} {what}, unlike the columns that were learned; {way}")
        parts = []
        for name, kind in self.columns:
            texts = _texts(name, cells[name], where)
            if not isinstance(kind, Number):
                parts.append(np.eye(len(kind) + 2)[_places(kind, texts)])
                continue
            missing = [text in MISSING for text in texts]
            pairs = zip(cells[name], missing, strict=True)
            found = [kind.centre if no else _number(name, cell, where) for cell, no in pairs]
            scaled = (np.array(found) - kind.centre) / kind.spread
            parts.append(np.stack([np.clip(scaled, -FARTHEST, FARTHEST), missing], axis=1))
        return np.concatenate(parts, axis=1).astype(np.float32)

    def unseen(self, cells: Cells) -> list[str]:
        """A phrase per column of categories in which cells hold values that are not listed."""
        found = []
        for name, kind in self.columns:
            if isinstance(kind, Number):
                continue
            texts = list(map(as_text, cells[name]))
            places = zip(texts, _places(kind, texts), strict=True)
            new = [text for text, place in places if place > len(kind)]
            what = f"{name}: {len(new):,} of {len(texts):,} cells are values that were not learned"
            found += [f"{what}, first {new[0][:40]!r}"] if new else []
        return found

    def as_plain(self) -> dict[str, dict[str, float] | list[str]]:
        """The same as plain values, for JSON; `of` takes it as `given`."""
        return {
            name: kind._asdict() if isinstance(kind, Number) else list(kind)
            for name, kind in self.columns
        }

    def rare(self, features: Any, least: int) -> dict[str, list[str]]:
        """By column the categories that were seen in data, in fewer rows of these than `least`."""
        found: dict[str, list[str]] = {}
        at = 0
        for name, kind in self.columns:
            values = () if isinstance(kind, Number) else kind
            counts = (features[:, at : at + len(values)] > 0).sum(dim=0).tolist()
            few = [v for v, n in zip(values, counts, strict=True) if n < least]
            found |= {name: few} if few and name in self.shown else {}
            at += len(values) + 2  # a number: itself, and whether it is missing
        return found

    def __post_init__(self) -> None:
        if not self.columns:
            raise InputError("a table needs a column beside the id and the target; add one")

    def lines(self) -> list[str]:
        """A phrase per column of the table."""
        return [
            f"{name}: {kind.centre:.4g} +- {kind.spread:.3g}"
            if isinstance(kind, Number)
            else f"{name}: {some_of(kind, _SHOWN, between=' | ') or 'nothing yet'}"
            for name, kind in self.columns
        ]

    def __str__(self) -> str:
        return ", ".join(self.lines())


def _given(name: str, each: Any) -> Kind:
    if isinstance(each, Number) or not isinstance(each, list | tuple):
        number = each._asdict() if isinstance(each, Number) else each
        return Number(*check_given({name: number})[name])
    if len(each) == 2 and all(type(x) in (int, float) for x in each):
        a, b = each
        two = f'{{"low": {a}, "high": {b}}}, or the categories ["{a}", "{b}"]'
        raise InputError(f"two numbers for column {name!r} may be a range, {two}; write which")
    values = tuple(map(as_text, each))
    if len(set(values)) < len(values) or "" in values:
        must = f"must be different names, none of them empty, not {list(each)!r}"
        raise InputError(f"the categories of column {name!r} {must}")
    return values


def _shown(name: str, cells: Sequence[Any], where: str) -> Kind:
    """What the cells of a column look like; without any that is not missing, no categories."""
    texts = _texts(name, cells, where)
    filled = [cell for cell, text in zip(cells, texts, strict=True) if text not in MISSING]
    words = [cell for cell in filled if isinstance(cell, bool) or not fits(float, cell)]
    if filled and not words:
        numbers = [_number(name, cell, where) for cell in filled]
        known = Scaling.of(torch.tensor(numbers, dtype=torch.float64).unsqueeze(1))
        return Number(known.centre[0], known.spread[0])
    dates = (
        isinstance(word, date | time | timedelta) or fits(days, word) or _DATE.fullmatch(text)
        for text, word in {as_text(word): word for word in words}.items()
    )
    if any(dates):
        way = "write an age or the days since an event, give a list of categories, or leave it out"
        raise InputError(f"column {name!r} of {where} holds dates, which are no numbers; {way}")
    commas = [as_text(word) for word in words if _COMMA.fullmatch(as_text(word))]
    if commas and 2 * (len(filled) - len(words) + len(commas)) > len(filled):
        odd = f"holds numbers with a comma or gaps, first {commas[0]!r}"
        way = "write them with a point and nothing else, as 36.5 or 1200, or give the list of"
        raise InputError(f"column {name!r} of {where} {odd}; {way} categories")
    if 2 * len(words) < len(filled):
        odd = f"not in {len(words):,} of {len(filled):,} cells, first {as_text(words[0])[:40]!r}"
        way = "empty them, or give the list of categories"
        raise InputError(f"column {name!r} of {where} holds numbers, but {odd}; {way}")
    values = sorted(set(map(_plain, set(texts))) - {*MISSING})
    if len(values) > max(_FEW, len(filled) // _PART) or any(len(v) > _LONGEST for v in values):
        problem = f"free text, or ids ({len(values):,} different ones in {len(filled):,} rows)"
        way = "group them into a few categories, give their list, or leave the column out"
        raise InputError(f"column {name!r} of {where} holds {problem}; {way}")
    return tuple(values)


def _texts(name: str, cells: Sequence[Any], where: str) -> list[str]:
    """The cells of a column as text; what is no text and no number is refused."""
    odd = next((cell for cell in cells if isinstance(cell, _NO_CELLS)), None)
    if odd is not None:
        what = f"column {name!r} of {where} has a {type(odd).__name__}, {str(odd)[:40]}, in a cell"
        raise InputError(f"{what}; write texts or numbers, one in each")
    return list(map(as_text, cells))


def _plain(text: str) -> str:
    """A category as every tool writes it: 2 for 2.0, True for true or TRUE."""
    text = as_category(text)
    return text.capitalize() if text.lower() in ("true", "false") else text


def _places(kind: tuple[str, ...], texts: Sequence[str]) -> list[int]:
    """The place of each category: behind the last one if it is missing, then if it is not known."""
    place = {_plain(value): i for i, value in enumerate(kind)}
    place = dict.fromkeys(MISSING, len(kind)) | place | {v: i for i, v in enumerate(kind)}
    found = {text: place.get(text, place.get(_plain(text), len(kind) + 1)) for text in set(texts)}
    return [found[text] for text in texts]


def _number(name: str, cell: Any, where: str) -> float:
    if not fits(float, cell) or not np.isfinite(float(cell)):
        problem = (
            f"holds numbers, but one row has {as_text(cell)[:40]!r}; correct or empty the cell"
        )
        raise InputError(f"column {name!r} of {where} {problem}")
    return float(cell)


@dataclass(frozen=True, eq=False)
class Nearest:
    """How the rows of a table are linked: what they mean, to how many others, and who wins ties.

    `order` is a different number per row, from its id; of rows equally far away the next ones in
    this order are taken, from a row's own place on. The order of lines does not matter.
    """

    encoding: Encoding
    neighbours: int
    order: Tensor

    def some(self, index: Tensor) -> Nearest:
        """The same for some of the rows."""
        return Nearest(self.encoding, self.neighbours, self.order[index.cpu()])

    def links(self, features: Tensor | Csr, among: Tensor | None = None) -> Csr:
        """An edge in both directions between each row and its nearest ones; `among`: only these."""
        n = int(features.shape[0])
        rows = torch.arange(n) if among is None else among.cpu()
        table = features.to("cpu").to_dense()[rows].numpy()
        there = nearest(table, self.neighbours, self.order[rows].numpy())
        source = rows.numpy().repeat(there.shape[1])
        target = rows.numpy()[there.ravel()]
        ones = np.ones(source.size, dtype=np.float32)
        one_way = sp.csr_matrix((ones, (target, source)), shape=(n, n))
        return Csr.from_scipy(one_way.maximum(one_way.T), symmetric=True).to(features.device)


def nearest(rows: Array, count: int, order: Array) -> Array:
    """The `count` nearest other rows of every row `[n, count]`, all others where they are fewer.

    Distances are Euclidean between rows on a grid of 1/1024. Their sums are whole numbers that a
    float64 holds, so ties are ties on every machine. Cost: n^2 times the columns, exact, with four
    million distances held at most; 20,000 rows of 60 columns take 5 s on one core.
    """
    n, width = len(rows), min(count, len(rows) - 1)
    grid = np.rint(rows.astype(np.float64) * _GRID)
    rank = np.argsort(np.argsort(order)).astype(np.int64)
    size, found = (grid**2).sum(axis=1), np.zeros((n, max(width, 0)), dtype=np.int64)
    if width < 1:
        return found
    step = max(1, _AT_ONCE // n)
    for start in range(0, n, step):
        some = slice(start, start + step)
        squared = size[some, None] + size - 2 * (grid[some] @ grid.T)
        # one whole number that sorts by distance first and by order then
        keys = squared.astype(np.int64) * n + (rank - rank[some, None]) % n
        keys[np.arange(len(keys)), np.arange(start, start + len(keys))] = np.iinfo(np.int64).max
        found[some] = np.sort(np.argpartition(keys, width - 1, axis=1)[:, :width], axis=1)
    return found
