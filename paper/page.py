"""`docs/results.md`, made from the tables in `results/`: `make results`.

    python -m paper page results docs/results.md [--check]

makes the page and exits with 1 if it was another before; with `--check` it is only compared.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from paper.claims import claims_of
from paper.compact import read_compact
from paper.markdown_text import bullets, prose
from paper.page_claims import claims_table, contradictions, evidence_of
from paper.page_settings import settings_section
from paper.page_tables import (
    EDGE,
    accuracy_table,
    chosen_table,
    cost_table,
    large_differences,
    machines,
)
from paper.reasons import with_numbers
from paper.words import Words, read_words
from undrift.errors import InputError
from undrift.evaluation.metrics import METRICS
from undrift.experiments.plans import PLANS
from undrift.formatting import duration
from undrift.reporting.names import stream_title
from undrift.reporting.tables.compare import compare
from undrift.reporting.tables.formats import escape_markdown, legend
from undrift.storage.files import write_atomically
from undrift.streams.benchmarks import STREAMS

if TYPE_CHECKING:
    from undrift.experiments.store import Manifest, Records
    from undrift.reporting.tables.comparison import Comparison

__all__ = ["LARGE", "main", "notes_of_tables", "results_page", "time_spent", "write_page"]

LARGE = 5.0
"""Points: a difference to the paper beyond this is listed and asks for a reason."""

_TABLES = ("paper-table1", "paper-ablation")

Tables = list[tuple["Comparison", "Comparison"]]
"""A table by class and the same by node, for every plan on the page."""


def results_page(records: Records, words: Words, figures: Iterable[str] = ()) -> str:
    """The page as Markdown; `figures` are the names of those in the folder `figures` beside it.

    The same tables, words and figures give the same text.
    """
    manifests = _on_the_page(records.manifests)
    tables: Tables = [
        (
            compare(records.results, manifest, metrics=tuple(METRICS)),
            compare(records.results, manifest, metrics=("a_f",), grading="node"),
        )
        for manifest in manifests
    ]
    streams = _streams(tables)
    parts = [
        "# Results",
        _intro(records),
        "## Does the paper hold?",
        *_claims(records, streams),
        *settings_section(records, words.reasons, LARGE),
        *_differences(tables, words),
        *(part for stream in streams for part in _stream(stream, tables, records, words)),
        *_settings(records, streams),
        "## How it was run",
        *_how(tables, records, words),
        *_figures(records, figures),
        *_evidence(records, streams),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _intro(records: Records) -> str:
    runs, searches = records.results.values(), records.searches
    seeds = sorted({result.spec.seed for result in runs})
    methods = {result.spec.method for result in runs}
    trials = sum(len(search.trials) for search in searches)
    made = (
        f"{_counted(len(runs), 'run')} of {_counted(len(methods), 'method')} with "
        f"{_counted(len(seeds), 'seed')}"
    )
    tried = f"{_counted(len(searches), 'search', 'searches')} over {_counted(trials, 'setting')}"
    return prose(
        "Every number on this page is made by `make results` from four tables: "
        f"[runs.csv](../results/runs.csv) has {made}, [cells.csv](../results/cells.csv) and "
        "[plans.csv](../results/plans.csv) say which of them stand in which cell, and "
        f"[searches.csv](../results/searches.csv) has {tried}. Accuracies are means over the "
        "classes of a task, in percent, under global testing; see [protocols](protocols.md). How "
        "to read the tables stands under [how it was run](#how-it-was-run)."
    )


def _claims(records: Records, streams: Sequence[str]) -> list[str]:
    claims = claims_of(records)
    if not claims:
        return ["None of its claims can be checked with these runs."]
    claimed = [claim for claim in claims if claim.paper is not None]
    against = contradictions(claims)
    kept = len(claimed) - len(against)
    counted = (
        f"The paper speaks of {len(claimed)} of these cells, and our runs agree with it in {kept}. "
        if claimed
        else ""
    )
    parts = [
        prose(
            "What the paper claims, on every stream with the runs to check it. Claims are "
            f"compared by means over seeds. {counted}The numbers behind every cell are "
            "[at the end](#the-numbers-behind-the-claims)."
        ),
        claims_table(claims, streams),
    ]
    if against:
        parts += ["### Where our runs contradict the paper", bullets(against)]
    return parts


def _evidence(records: Records, streams: Sequence[str]) -> list[str]:
    claims = claims_of(records)
    return ["## The numbers behind the claims", evidence_of(claims, streams)] if claims else []


def _differences(tables: Tables, words: Words) -> list[str]:
    first = [by_class for by_class, _ in tables]
    if not any(entry.published for table in first for entry in table.entries.values()):
        return []
    found = large_differences(first, words.reasons, LARGE)
    heading = f"### Numbers more than {LARGE:g} points from the paper's"
    return [heading, found or "There is none."]


def _stream(stream: str, tables: Tables, records: Records, words: Words) -> list[str]:
    imitated = any(stream in by_class.stand_ins for by_class, _ in tables)
    parts = [f"## {escape_markdown(stream_title(stream, stand_in=imitated))}"]
    if stream in words.notes:
        parts.append(prose(words.notes[stream]))
    if imitated:
        parts.append(prose("Generated data that only imitates the benchmark."))
    mine = [pair for pair in tables if any(s == stream for _, s, _ in pair[0].entries)]
    for by_class, by_node in mine:
        parts.append(f"**{escape_markdown(by_class.title)}**")
        parts.append(accuracy_table(by_class, by_node, stream, records.results))
    if mine:
        used = set(machines(mine[0][0], stream, records.results).values())
        where = f" on {next(iter(used))}" if len(used) == 1 else ""
        parts += [f"**Cost of a run**{where}", cost_table(mine[0][0], stream, records.results)]
    return parts


def _settings(records: Records, streams: Sequence[str]) -> list[str]:
    if not records.searches:
        return []
    return [
        "## What the searches chose",
        prose(
            "Chosen by class A_avg on validation nodes; every setting that was tried, with its "
            f"score, is in [searches.csv](../results/searches.csv). {EDGE} marks a number at an "
            "end of its grid: a wider one might choose another."
        ),
        chosen_table(records.searches, streams),
    ]


def _how(tables: Tables, records: Records, words: Words) -> list[str]:
    parts = [prose(words.how)] if words.how else []
    parts.append(prose(time_spent(records)))
    marks = {m: t for by_class, _ in tables for m, t in legend(by_class) if m != "–"}
    notes = [f"{escape_markdown(mark)} {text}." for mark, text in marks.items()]
    notes.append(
        "Drift is how far the embeddings of the base task's nodes moved between the first encoder "
        "and the last, over how long they were; – where a method has no embeddings."
    )
    parts.append(bullets([*notes, *notes_of_tables([by_class for by_class, _ in tables])]))
    return parts


def notes_of_tables(tables: Sequence[Comparison]) -> list[str]:
    """The notes of the tables, once each; those that not all tables have say whose they are."""
    notes: dict[str, None] = {}
    for table in tables:
        for note in table.notes:
            shared = all(note in other.notes for other in tables)
            whose = "" if shared else f"*{escape_markdown(table.title)}*: "
            notes[whose + escape_markdown(note)] = None
    return list(notes)


def time_spent(records: Records) -> str:
    """What all runs and searches took."""
    runs = sum(result.cost.seconds.get("total", 0.0) for result in records.results.values())
    devices = sorted({result.spec.device for result in records.results.values()})
    searched = sum(search.seconds / (1 + len(search.shared_with)) for search in records.searches)
    torch = sorted({result.versions.get("torch", "unknown") for result in records.results.values()})
    searches = f" and all searches {duration(searched)}" if records.searches else ""
    return (
        f"All runs together took {duration(runs)}{searches} of one process each "
        f"(device {', '.join(devices)}; torch {', '.join(torch)})."
    )


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _figures(records: Records, names: Iterable[str]) -> list[str]:
    there = set(names)
    if not there:
        return []
    from undrift.reporting.figures.figure import all_figures

    # the picture of drift needs embeddings, which are not in the tables: it has no caption here
    drift = sorted(name for name in there if name == "drift" or name.startswith("drift-"))
    captions = dict.fromkeys(drift, "Feature drift of the base task's embeddings.")
    found = [figure for figure in all_figures(records) if not figure.left_out]
    captions |= {figure.name: f"{figure.title}. {figure.caption}" for figure in found}
    parts = [
        f"![{escape_markdown(captions[name])}](figures/{name}.svg)\n\n"
        f"*{escape_markdown(captions[name])}*"
        for name in captions
        if name in there
    ]
    return ["## Figures", *parts] if parts else []


def _on_the_page(manifests: Iterable[Manifest]) -> list[Manifest]:
    """The paper's two tables, then the reader's own plans; the rest of the paper's show in figures.

    Without any of these (a folder with the smoke test alone), all there are.
    """
    every = list(manifests)
    own = [plan for plan in every if plan.plan in _TABLES or plan.plan not in PLANS]
    place = {name: k for k, name in enumerate(_TABLES)}
    return sorted(own or every, key=lambda plan: (place.get(plan.plan, len(place)), plan.plan))


def _streams(tables: Tables) -> list[str]:
    there = {stream for by_class, _ in tables for _, stream, _ in by_class.entries}
    known = list(STREAMS)
    bare = {stream: stream.partition("@")[0] for stream in there}
    return sorted(
        there, key=lambda s: (known.index(bare[s]) if bare[s] in known else len(known), s)
    )


def main(arguments: Sequence[str]) -> int:
    """Make the page, or with `--check` only compare: 1 where it is not what the tables give."""
    return write_page(arguments, "page", _made)


def write_page(arguments: Sequence[str], command: str, make: Callable[[Path, Path], str]) -> int:
    """Make a page from a folder of tables by `make(tables, page)`, or with `--check` compare."""
    parser = argparse.ArgumentParser(prog=f"python -m paper {command}")
    parser.add_argument("tables", type=Path, help="the folder with runs.csv, such as results")
    parser.add_argument("page", type=Path, help="the page to make, such as docs/results.md")
    parser.add_argument("--check", action="store_true", help="write nothing, only compare")
    given = parser.parse_args(arguments)
    try:
        text = make(given.tables, given.page)
        old = given.page.read_text(encoding="utf-8") if given.page.is_file() else None
        if not given.check and old != text:
            write_atomically(given.page, text.encode())
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    if old == text:
        sys.stdout.write(f"{given.page} is what {given.tables} gives\n")
        return 0
    if old is None and not given.check:
        sys.stdout.write(f"{given.page} was made from {given.tables}\n")
        return 0
    done = "run make results" if given.check else "it was made again, look at what changed"
    sys.stderr.write(f"{given.page} was not what {given.tables} gives; {done}\n")
    return 1


def _made(tables: Path, page: Path) -> str:
    records = read_compact(tables)
    streams = {cell.stream for plan in records.manifests for cell in plan.cells}
    rows = {cell.row for plan in records.manifests for cell in plan.cells}
    words = read_words(tables, streams, rows)
    words = replace(words, reasons=with_numbers(words.reasons, records))
    figures = sorted(path.stem for path in (page.parent / "figures").glob("*.svg"))
    return results_page(records, words, figures)
