"""`audit`: what a learner keeps, how many rows stand behind it, and what that gives away."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from undrift.formatting import counted, size, some_of
from undrift.learners.base import Learner
from undrift.learners.kept import Inventory, KeptSum, unnamed
from undrift.learners.small_classes import LEAST_ROWS, bounded
from undrift.noise.gaussian import best_attack
from undrift.privacy.attacks import LEAST, Finding, attack_state, predicted
from undrift.storage.state import pack, size_of_half
from undrift.streams.task import Task

ALIKE_FROM = 20  # rows from which a mean like one of them says what they are like, and not who

SHOWN_ONLY = frozenset({"all candidates"})
"""Attacks that are shown and not judged: no guard changes what they find, only noise does."""

ROWS_PER_COLUMN = 30.0
"""Rows per column of a sum under which the audit is not passed (docs/privacy/guards.md)."""

ROWS_PER_DIRECTION = 150.0
"""The same where R is seen through a few directions: each has a number for every column."""

_SHOWN = 4  # tensors that are named


@dataclass(frozen=True)
class AuditedSum:
    """A tensor of the state: its name in the file, its shape and its bytes."""

    name: str
    shape: tuple[int, ...]
    nbytes: int


@dataclass(frozen=True)
class Behind:
    """How many rows stand behind the numbers of one sum; None is unknown.

    `columns`: or `directions`, where R is seen through a few. `smallest`: the class with the fewest
    rows, and how many. `products`: whether R is kept, and not class means alone. `thinnest` and
    `typical`: the least and the median of `(sum_c q_jc)^2 / R_jj` over the columns j that are not
    negative, behind which stand at least so many rows (Cauchy-Schwarz).
    """

    name: str
    rows: int
    columns: int
    smallest: tuple[str, int] | None = None
    products: bool = False
    directions: bool = False
    thinnest: float | None = None
    typical: float | None = None

    @property
    def rows_per_column(self) -> float:
        """Rows over columns."""
        return self.rows / max(self.columns, 1)

    @property
    def size(self) -> str:
        """Rows and columns in words."""
        what = "directions" if self.directions else "columns"
        return f"{self.rows:,} rows in {self.columns:,} {what}"


@dataclass(frozen=True)
class Audit:
    """What is kept, what stands behind it, what attacks find, which thresholds are `broken`."""

    method: str
    kept: tuple[AuditedSum, ...]
    behind: tuple[Behind, ...]
    findings: tuple[Finding, ...]
    broken: tuple[str, ...]
    examples: bool = False
    bound: str = ""  # what noise proves
    unjudged: tuple[str, ...] = ()
    erased: tuple[str, ...] = ()  # the steps of a folder that took somebody out

    @property
    def passed(self) -> bool:
        """Whether everything was judged, and no threshold is broken."""
        return not self.broken and not self.unjudged

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(each.nbytes for each in self.kept)

    @property
    def verdict(self) -> str:
        """One line."""
        if not self.passed:
            parts = {"not passed": self.broken, "not judged": self.unjudged}
            return "; ".join(f"{what}: {'; '.join(why)}" for what, why in parts.items() if why)
        if self.bound:
            return f"{self.bound}; no threshold is broken"
        if not self.behind:
            return "no sum over rows is kept; what weights give away was not looked at"
        return f"no threshold is broken (attacks: {self._how}); this is no bound"

    @property
    def _how(self) -> str:
        """How attacks were made, and what they leave open."""
        untried = [each.where for each in self.findings if each.figure is None]
        compared = [each for each in self.findings if each.interval is not None]
        if untried:
            return f"not tried on {', '.join(untried)}" + ", tried on others" * bool(compared)
        if not self.findings:
            return "none tried"
        if not any(each.measured for each in self.findings):
            return "foretold"
        wide = [each for each in compared if each.attack not in SHOWN_ONLY]
        if any(each.interval and each.interval[1] >= LEAST[each.measure] for each in wide):
            return f"tried; an AUC of {LEAST['auc']:g} is not ruled out, with so few nodes"
        return "tried"


def audit(
    learner: Learner,
    tasks: Iterable[Task] = (),
    *,
    least_rows: int = LEAST_ROWS,
    names: Mapping[int, str] | None = None,
) -> Audit:
    """Look at what a learner keeps. With batches that it observed, attacks are tried on it.

    Broken is: a class of fewer training nodes than `least_rows`, or fewer effective rows behind a
    column; fewer rows than `ROWS_PER_COLUMN` times the columns, or `ROWS_PER_DIRECTION` times the
    directions; an attack whose figure is one to act on (`Finding.leaks`); examples that are kept.
    Not judged is: a tensor that may be a sum over rows and that the learner does not name
    (`Learner.inventory`); class means without counts; an AUC that is high and may be chance.
    Without batches, what attacks would find is foretold from counts. Where sums were released with
    noise, what holds is their epsilon: nothing is foretold, and rows behind them do not count.
    `names`: of the classes. Cost: d^2, and with batches 9 d^3, for d columns.

    >>> from undrift.propagation.learner import Propagation
    >>> from undrift.testing.graphs import tiny_stream
    >>> first, *_ = tiny_stream()
    >>> audit(Propagation().observe(first)).behind[0].smallest
    ('0', 6)
    """
    learner.settle()
    batches = list(tasks)
    class_names = {c: str(c) for c in learner.classes_} | dict(names or {})
    inventory = learner.inventory()
    behind = tuple(_behind(each, class_names) for each in inventory.sums)
    tried = attack_state(learner, batches) if batches else []
    done = {(each.attack, each.where) for each in tried}
    bound = _bound(learner)
    if not bound:
        tried += [each for each in predicted(learner) if (each.attack, each.where) not in done]
    findings = tuple(replace(each, tried=_named(each.tried, class_names)) for each in tried)
    broken = [*([] if bound else _thin(behind, least_rows)), *_leaks(findings)]
    if learner.keeps_examples:
        broken.insert(0, "examples are kept: nodes as they were, or what stands for them")
    known = learner.learned_
    tensors = pack(known, halved=size_of_half)[0] if known is not None else {}
    return Audit(
        learner.name,
        tuple(AuditedSum(name, tuple(t.shape), t.nbytes) for name, t in tensors.items()),
        behind,
        findings,
        tuple(broken),
        learner.keeps_examples,
        bound,
        (*_unjudged(learner, inventory), *_open(findings)),
    )


def _bound(learner: Learner) -> str:
    """What noise proves of any one node; nothing where it proves too little (`bounded`)."""
    if not bounded(learner):
        return ""
    account = learner.account_  # type: ignore[attr-defined]
    right = best_attack(account.epsilon, account.delta)
    return (
        f"released with noise: epsilon {account.spent_epsilon:.3g}, delta {account.delta:g} for "
        f"any one {learner.params()['level']} in one batch at most; the best attack is right "
        f"at most {right:.0%} of the time"
    )


def _unjudged(learner: Learner, inventory: Inventory) -> Iterator[str]:
    found = unnamed(learner.learned_, inventory)
    if found:
        few = [f"{name} ({' x '.join(map(str, shape))})" for name, shape in found.items()]
        yield (
            f"{some_of(few, _SHOWN)} may be sums over rows, and {learner.name} does not say "
            "(Learner._inventory)"
        )
    for each in inventory.sums:
        if each.make_means and each.counts is None:
            yield f"{each.name}: how many rows each class has is not kept"


def _behind(kept: KeptSum, names: Mapping[int, str]) -> Behind:
    few = kept.smallest()
    smallest = (names[kept.classes[few[0]]], round(few[1])) if few else None
    facts = kept.name, kept.count, kept.columns, smallest, kept.has_products, kept.seen is not None
    rows = _effective_rows(kept)
    return Behind(*facts, *((float(rows.min()), float(rows.median())) if rows.numel() else ()))


def _effective_rows(kept: KeptSum) -> Tensor:
    """Of every column that is not zero and nowhere negative, how many rows are not zero there."""
    if kept.column_facts is None or kept.means is None:
        return torch.zeros(0)
    (diagonal, lowest), moment = kept.column_facts(), kept.means
    squares = diagonal.double()
    least = 1e-12 * squares.max().clamp(min=torch.finfo(torch.float64).tiny)
    negative = (lowest < -least) | (moment < -least).any(dim=1)
    there = (squares > least) & ~negative
    return moment.double().sum(dim=1)[there].square() / squares[there]


def _thin(behind: Iterable[Behind], least_rows: int) -> Iterator[str]:
    for each in behind:
        if each.smallest is not None and each.smallest[1] < least_rows:
            c, n = each.smallest
            yield f"{each.name}: class {c!r} has {counted(n, 'row')}, under {least_rows}"
        least = ROWS_PER_DIRECTION if each.directions else ROWS_PER_COLUMN
        if each.products and 0 < each.rows < least * each.columns:
            yield f"{each.name}: {each.size}, under {least:g} each"
        if each.thinnest is not None and each.thinnest < min(least_rows, each.rows):
            yield f"{each.name}: a column with {each.thinnest:.1f} rows, under {least_rows}"


def _leaks(findings: Iterable[Finding]) -> Iterator[str]:
    """A phrase for the worst finding of each sum and measure that is one to act on."""
    worst: dict[tuple[str, str], Finding] = {}
    for each in findings:
        alike = each.measure == "cosine" and (each.rows or 0) >= ALIKE_FROM
        if each.leaks and each.measured and not alike and each.attack not in SHOWN_ONLY:
            key = each.where, each.measure
            worst[key] = max(worst.get(key, each), each, key=lambda found: found.figure or 0.0)
    for each in worst.values():
        yield f"{each.where}: {each.attack}, {each.text}, not under {LEAST[each.measure]:g}"


def _open(findings: Iterable[Finding]) -> Iterator[str]:
    """A phrase for each sum on which an attack did well, perhaps by chance."""
    first: dict[str, Finding] = {}
    for each in findings:
        if each.open and each.attack not in SHOWN_ONLY:
            first.setdefault(each.where, each)
    for each in first.values():
        yield f"{each.where}: {each.attack}, {each.text}, may be chance ({each.tried})"


def _named(text: str, names: Mapping[int, str]) -> str:
    return re.sub(r"\bclass (\d+)\b", lambda m: f"class {names.get(int(m[1]), m[1])!r}", text)


def lines(found: Audit) -> list[str]:
    """The audit as plain lines, for cards and terminals."""
    texts = [f"{counted(len(found.kept), 'tensor')}, {size(found.nbytes)}"]
    for each in found.behind:
        parts = [f"{each.name}: {each.size} ({each.rows_per_column:.2f} each)"]
        if each.smallest is not None:
            parts.append(f"smallest class {each.smallest[0]!r} with {each.smallest[1]:,}")
        if each.thinnest is not None and each.typical is not None:
            parts.append(
                f"behind a column at least {each.thinnest:.1f}, in the middle {each.typical:.0f}"
            )
        texts.append(", ".join(parts))
    for finding in found.findings:
        how = "" if finding.measured else ", foretold"
        texts.append(f"{finding.where}: {finding.attack} ({finding.tried}): {finding.text}{how}")
    return [*texts, *found.erased]
