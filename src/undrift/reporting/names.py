"""The words that tables and figures print for metrics, streams and rows. Does not import torch."""

from collections.abc import Callable, Iterable
from itertools import groupby
from math import isnan
from typing import Any

from undrift.errors import InputError
from undrift.evaluation.metrics import METRICS
from undrift.learners.registry import METHODS, REGISTRY, Method
from undrift.merging import RULES
from undrift.plugins import Registry
from undrift.streams.arrival import BY_CLASS, split_place
from undrift.streams.benchmarks import listed_stream


def number_text(value: float, form: str = "{:.2f}") -> str:
    """A number of a metric; a dash where there is none."""
    return "–" if isnan(value) else form.format(value)


def symbol(key: str, subscript: str = "%s_%s", escape: Callable[[str], str] = str) -> str:
    """The symbol of a metric, its two parts put into a pattern where it has a subscript.

    >>> symbol("a_avg"), symbol("a_avg", "%s<sub>%s</sub>"), symbol("forgetting")
    ('A_avg', 'A<sub>avg</sub>', 'forgetting')
    """
    head, _, below = map(escape, METRICS[key].symbol.partition("_"))
    return subscript % (head, below) if below else head


def method_facts(name: str) -> Method:
    """What is known of a method; one that is not installed here goes by its name."""
    return METHODS[name] if name in METHODS else Method(name, name)


def stream_title(stream: str, *, stand_in: bool = False) -> str:
    """How a table names a stream, a file by the end of its path; a stand-in always says so."""
    stream, arrive = split_place(stream)
    info, (_, at, option) = listed_stream(stream), stream.partition("@")
    end = "/".join(stream.rpartition(":")[2].split("/")[-2:])
    title = end if info is None else info.title + at + option
    title += "" if arrive == BY_CLASS else f" ({arrive})"
    return f"{title} (stand-in)" if stand_in and "stand-in" not in title.lower() else title


def short_title(stream: str) -> str:
    """The title of a stream without the word stand-in, where a badge says it."""
    return stream_title(stream).replace(" stand-in", "")


def row_label(row: str, method: str) -> str:
    """How a table names a row: a method's display name, with what the row changes about it."""
    title = method_facts(method).display
    if row == method:
        return title
    if row in ("none", *RULES.names()) and (own := _fact(REGISTRY, method, "merging")):
        rule = _fact(RULES, own if row == "none" else row, "display") or row
        return title + {"none": f" without {rule}", own: f" ({rule})"}.get(row, f" with {rule}")
    return title + row.removeprefix(method) if row.startswith(f"{method} ") else row


def _fact(registry: Registry, name: str, fact: str) -> str:
    """A word on what is listed by this name; nothing where it cannot be loaded."""
    if name not in registry.names():  # a name spelled out in a file is not to be imported
        return ""
    try:
        return str(registry.facts(name, [fact]).get(fact, ""))
    except InputError:
        return ""


def value_text(value: Any) -> str:
    """The value of a hyperparameter."""
    if isinstance(value, tuple | list):
        return "×".join(map(value_text, value)) or "()"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:g}" if number else str(value)


def number_ranges(numbers: Iterable[int], dash: str = "-") -> str:
    """Whole numbers in few characters: three and more in a row as first-last.

    >>> number_ranges(range(30)), number_ranges([6, 5]), number_ranges([1, 2, 3, 7], "–")
    ('0-29', '5, 6', '1–3, 7')
    """
    apart = groupby(enumerate(sorted(set(numbers))), key=lambda each: each[1] - each[0])
    runs = [[str(number) for _, number in run] for _, run in apart]
    return ", ".join(f"{r[0]}{dash}{r[-1]}" if len(r) > 2 else ", ".join(r) for r in runs)
