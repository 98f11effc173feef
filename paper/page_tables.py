"""The tables of the results page, a stream at a time, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from paper.markdown_text import grid
from undrift.learners.registry import METHODS
from undrift.reporting.names import row_label, stream_title, symbol
from undrift.reporting.tables.formats import COSTS, cost_text, escape_markdown

if TYPE_CHECKING:
    from undrift.experiments.result import Result
    from undrift.experiments.search import Search
    from undrift.reporting.tables.comparison import Comparison, ComparisonEntry

__all__ = ["accuracy_table", "chosen_table", "cost_table", "large_differences", "machines"]

DASH = "–"
EDGE = "°"


def accuracy_table(
    table: Comparison, by_node: Comparison, stream: str, results: Mapping[str, Result]
) -> str:
    """One stream: every metric by class, the paper's beside ours, A_f by node, and the drift."""
    mine = [row for row in table.rows if (row, stream, "a_avg") in table.entries]
    paper = {m for (_, s, m), entry in table.entries.items() if s == stream and entry.published}
    header, sides = ["method"], "l"
    for metric in table.metrics:
        header += [symbol(metric), "paper"] if metric in paper else [symbol(metric)]
    header += ["A_f by node", "drift"]
    sides += "r" * (len(header) - 1)
    lines = []
    for row in mine:
        cells = [_label(table, row)]
        for metric in table.metrics:
            entry = table.entries.get((row, stream, metric))
            cells.append(_ours(entry))
            cells += [_theirs(entry)] if metric in paper else []
        cells.append(_ours(by_node.entries.get((row, stream, "a_f"))))
        cells.append(_drift(table.entries[row, stream, "a_avg"], results))
        lines.append(cells)
    return grid(header, sides, lines)


def machines(table: Comparison, stream: str, results: Mapping[str, Result]) -> dict[str, str]:
    """Where the runs of every row were made, as far as it was recorded: device and torch."""
    found: dict[str, dict[str, None]] = {}
    for (row, place, _), entry in table.entries.items():
        for run in entry.runs if place == stream else ():
            done = results[run]
            torch = done.versions.get("torch", "unknown")
            found.setdefault(row, {})[f"{done.spec.device}, torch {torch}"] = None
    return {row: " and ".join(sorted(places)) for row, places in found.items()}


def cost_table(table: Comparison, stream: str, results: Mapping[str, Result]) -> str:
    """One stream: what a run of every row takes, and what its learner keeps.

    Where the rows ran on several machines, a column says which, and a row is compared with Bare
    only on Bare's.
    """
    spent = {row: table.costs[row, stream] for row in table.rows if (row, stream) in table.costs}
    bare = spent.get("bare", {}).get("seconds")
    where = machines(table, stream, results)
    several = len(set(where.values())) > 1
    names = [name for name in COSTS if any(name in costs for costs in spent.values())]
    header = ["method", *(["ran on"] if several else []), *(COSTS[name] for name in names)]
    header += ["× Bare"] if bare else []
    lines = []
    for row, costs in spent.items():
        cells = [cost_text(name, costs.get(name)) or DASH for name in names]
        if bare:
            same = where.get(row) == where.get("bare")
            cells.append(f"{costs['seconds'] / bare:.1f}" if same else DASH)
        place = [where.get(row, DASH)] if several else []
        lines.append([_label(table, row), *place, *cells])
    left = 2 if several else 1
    return grid(header, "l" * left + "r" * (len(header) - left), lines)


def chosen_table(searches: Iterable[Search], streams: Sequence[str]) -> str:
    """What every search chose: a line per method, a column per stream."""
    found: dict[tuple[str, str], Search] = {}
    for search in searches:
        base = search.spec.base
        found.setdefault((_searched_row(search), base.place), search)
    rows = dict.fromkeys(row for row, _ in found)
    known = list(METHODS)
    order = sorted(rows, key=lambda row: (known.index(row) if row in known else 99, row))
    shown = [stream for stream in streams if any((row, stream) in found for row in order)]
    lines = []
    for row in order:
        cells = [found.get((row, stream)) for stream in shown]
        tried = {len(search.trials) for search in cells if search}
        chosen = [escape_markdown(_chosen(search)) if search else DASH for search in cells]
        name = escape_markdown(row_label(row, row.split()[0]))
        lines.append([name, "/".join(map(str, sorted(tried))), *chosen])
    titles = [escape_markdown(stream_title(stream)) for stream in shown]
    return grid(["method", "tried", *titles], "lr" + "l" * len(shown), lines)


def _searched_row(search: Search) -> str:
    base = search.spec.base
    fixed = [f"{name}={value}" for name, value in sorted(base.params.items())]
    return " ".join([base.method, *fixed])


def _chosen(search: Search) -> str:
    """`alpha = 4, gamma = 1°`; the mark is on a number at an end of its grid."""
    settings = []
    for name, values in search.spec.grid.items():
        value = search.chosen[name]
        numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
        edge = numbers and len(values) > 2 and value in (min(values), max(values))
        settings.append(f"{name} = {_value(value)}{EDGE if edge else ''}")
    return ", ".join(settings)


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def large_differences(
    tables: Iterable[Comparison], reasons: Mapping[tuple[str, str], str], above: float
) -> str:
    """Where a number is further than so many points from the paper's, the furthest first.

    A row stands once per stream; one that two tables have (ADR and its ablation's HAM), in the
    first.
    """
    found: dict[tuple[str, str], tuple[float, list[str]]] = {}
    seen: set[tuple[str, ...]] = set()
    for table in tables:
        for stream in table.streams:
            for row in table.rows:
                entries = [table.entries.get((row, stream, metric)) for metric in ("a_avg", "a_f")]
                gaps = [abs(e.difference) for e in entries if e and e.difference is not None]
                runs = next((entry.runs for entry in entries if entry), ())
                if not gaps or max(gaps) <= above or runs in seen:
                    continue
                seen.add(runs)
                cells = [part for entry in entries for part in (_plain(entry), _theirs(entry))]
                reason = reasons.get((stream, row))
                why = escape_markdown(reason) if reason else "no cause found yet"
                title = escape_markdown(stream_title(stream, stand_in=stream in table.stand_ins))
                found[stream, row] = max(gaps), [title, _label(table, row), *cells, why]
    lines = [line for _, line in sorted(found.values(), key=lambda item: -item[0])]
    if not lines:
        return ""
    return grid(["stream", "row", "A_avg", "paper", "A_f", "paper", "why"], "llrrrrl", lines)


def _label(table: Comparison, row: str) -> str:
    name = escape_markdown(table.labels.get(row, row))
    return f"{name} †" if table.keeps_examples.get(row) else name


def _ours(entry: ComparisonEntry | None) -> str:
    if entry is None:
        return DASH
    text = _plain(entry)
    if entry.ours.deviation is not None:
        text += f" ± {entry.ours.deviation:.2f}"
    if entry.rank in (1, 2):
        text = f"**{text}**" if entry.rank == 1 else f"<u>{text}</u>"
    return text + (" \\*" if entry.beaten else "")


def _plain(entry: ComparisonEntry | None) -> str:
    return DASH if entry is None else f"{entry.ours.mean:.2f}"


def _theirs(entry: ComparisonEntry | None) -> str:
    if entry is None or entry.published is None or entry.difference is None:
        return ""
    return f"{entry.published.mean:.2f} ({entry.difference:+.2f})"


def _drift(entry: ComparisonEntry, results: Mapping[str, Result]) -> str:
    last = [results[run].drift[-1] for run in entry.runs if results[run].drift]
    known = [value for value in last if value is not None]
    return f"{100 * fmean(known):.1f} %" if known else DASH
