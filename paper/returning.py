"""`docs/returning.md`, made from the tables in `results/returning/`.

python -m paper returning results/returning docs/returning.md [--check]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from paper.compact import read_compact
from paper.markdown_text import bullets, grid, prose
from paper.page import notes_of_tables, time_spent, write_page
from paper.page_tables import DASH, accuracy_table, cost_table
from paper.words import Words, read_words
from undrift.errors import InputError
from undrift.evaluation.metrics import METRICS
from undrift.reporting.names import stream_title, symbol
from undrift.reporting.tables.compare import compare
from undrift.reporting.tables.formats import escape_markdown, legend
from undrift.streams.arrival import parse_arrival, split_place

if TYPE_CHECKING:
    from undrift.experiments.store import Records
    from undrift.reporting.tables.comparison import Comparison

__all__ = ["main", "returning_page"]

PLAN = "returning"
_TITLES = {
    "blurry": "Blurry: half of the classes in one batch each, a tenth of the others everywhere",
    "domain": "Domain: the same classes from new regions",
    "online": "Online: a few random nodes at a time",
    "time": "Time: the nodes of a period",
}


def returning_page(records: Records, words: Words) -> str:
    """The page as Markdown; the same tables and words give the same text."""
    manifest = next((plan for plan in records.manifests if plan.plan == PLAN), None)
    if manifest is None:
        raise InputError(f"there is no plan {PLAN!r} in {records.folder}; run it and compact it")
    table = compare(records.results, manifest, metrics=tuple(METRICS))
    by_node = compare(records.results, manifest, metrics=("a_f",), grading="node")
    arrivals = list(dict.fromkeys(split_place(place)[1] for place in table.streams))
    parts = [
        "# Results where classes come back",
        _intro(records),
        "## Mean over the streams",
        prose(
            "A row has a number where every stream has one: the mean of the streams' means. The "
            "best of a column is bold, without the bounds."
        ),
        _means(table, arrivals),
        prose(_reading(table, arrivals)),
        *(part for arrive in arrivals for part in _arrival(arrive, table, by_node, records)),
        "## How it was run",
        *([prose(words.how)] if words.how else []),
        prose(time_spent(records)),
        bullets(_notes(table)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _intro(records: Records) -> str:
    runs = records.results.values()
    methods = {run.spec.method for run in runs}
    return prose(
        "Every number on this page is made by `make results` from the tables in "
        f"[results/returning](../results/returning/runs.csv): {len(runs)} runs of {len(methods)} "
        f"methods with {_seeds(records)}, on {_device(records)}{_settings(records)}. "
        "Each was graded and recorded as `undrift bench returning`, which makes them again, would "
        "do it; on what machine they ran, and what their seconds are worth, is said "
        "[at the end](#how-it-was-run), and what the arrivals and the metrics are under "
        "[arrivals](arrivals.md)."
    )


def _seeds(records: Records) -> str:
    seeds = sorted({run.spec.seed for run in records.results.values()})
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"seeds {seeds[0]}-{seeds[-1]}"
    return f"seeds {', '.join(map(str, seeds))}"


def _device(records: Records) -> str:
    devices = {run.spec.device.split(":")[0] for run in records.results.values()}
    named = {"cuda": "a GPU", "cpu": "the processor"}
    return " and ".join(named.get(device, device) for device in sorted(devices))


def _settings(records: Records) -> str:
    """What the runs' settings are, where there is one thing to say."""
    plain = not any(run.spec.params for run in records.results.values())
    return ", every method at its defaults" if plain and not records.searches else ""


def _mean(table: Comparison, row: str, arrive: str, key: str) -> float | None:
    """The mean over the streams of a row's mean; None where one of them has none."""
    places = [place for place in table.streams if split_place(place)[1] == arrive]
    found = [table.entries.get((row, place, key)) for place in places]
    whole = [entry.ours.mean for entry in found if entry is not None]
    return fmean(whole) if len(whole) == len(places) else None


def _best(table: Comparison, arrive: str, key: str) -> str:
    """The best mean as it is printed, without the bounds."""
    found = (_mean(table, row, arrive, key) for row in table.rows if row not in table.bounds)
    known = [mean for mean in found if mean is not None]
    return f"{max(known, key=lambda mean: METRICS[key].sign * mean):.2f}" if known else ""


def _means(table: Comparison, arrivals: Sequence[str]) -> str:
    keys = [key for key in ("a_auc", "a_f", "class_forgetting") if key in table.metrics]
    columns = [(arrive, key) for arrive in arrivals for key in keys]
    best = {column: _best(table, *column) for column in columns}
    lines = []
    for row in table.rows:
        cells = [escape_markdown(table.labels[row])]
        for column in columns:
            mean = _mean(table, row, *column)
            text = DASH if mean is None else f"{mean:.2f}"
            first = text == best[column] and row not in table.bounds
            cells.append(f"**{text}**" if first else text)
        lines.append(cells)
    header = ["method", *(f"{parse_arrival(a).name} {symbol(key)}" for a, key in columns)]
    return grid(header, "l" + "r" * len(columns), lines)


def _reading(table: Comparison, arrivals: Sequence[str]) -> str:
    """What the bounds say: how much there is to forget, by what they differ at the end."""
    gaps = []
    for arrive in arrivals:
        above, below = (_mean(table, row, arrive, "a_f") for row in ("joint", "bare"))
        if above is not None and below is not None:
            gaps.append(f"{above - below:.1f} points on {parse_arrival(arrive).name} streams")
    if not gaps:
        return ""
    return (
        f"Joint ends {', '.join(gaps)} above Bare, which does nothing against forgetting: where "
        "every batch brings most classes there is little to forget, and what counts is what a "
        "method makes of the data. F_class is negative where a class is known better at the end "
        "than at any time before, as when its first nodes were few; read it beside A_f."
    )


def _arrival(arrive: str, table: Comparison, by_node: Comparison, records: Records) -> list[str]:
    parts = [f"## {_TITLES[parse_arrival(arrive).name]}", f"`--arrive {arrive}`"]
    for place in table.streams:
        if split_place(place)[1] != arrive:
            continue
        runs = [run for run in records.results.values() if run.spec.place == place]
        batches = sorted({run.steps for run in runs})
        graded = max(len(run.matrix.by_class) for run in runs)
        counts = f"{batches[0]} to {batches[-1]}" if len(batches) > 1 else str(batches[0])
        some = f", graded after {graded} of them" if graded < batches[-1] else ""
        title = escape_markdown(stream_title(split_place(place)[0]))
        parts += [
            f"**{title}**: {counts} batches{some}",
            accuracy_table(table, by_node, place, records.results),
            cost_table(table, place, records.results),
        ]
    return parts


def _notes(table: Comparison) -> list[str]:
    marks = [f"{escape_markdown(mark)} {text}." for mark, text in legend(table) if mark != DASH]
    drift = (
        "Drift is how far the embeddings of the first batch's nodes moved between the first "
        f"encoder and the last, over how long they were; {DASH} where a method has no embeddings."
    )
    return [*marks, drift, *notes_of_tables([table])]


def main(arguments: Sequence[str]) -> int:
    """Make the page, or with `--check` only compare: 1 where it is not what the tables give."""
    return write_page(arguments, "returning", _made)


def _made(tables: Path, page: Path) -> str:
    records = read_compact(tables)
    streams = {cell.stream for plan in records.manifests for cell in plan.cells}
    rows = {cell.row for plan in records.manifests for cell in plan.cells}
    return returning_page(records, read_words(tables, streams, rows))
