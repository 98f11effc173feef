"""The report of a folder of results: tables, figures, and one page that holds all of it."""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from undrift.errors import InputError
from undrift.evaluation.metrics import METRICS
from undrift.experiments.plans import announced
from undrift.experiments.store import Records
from undrift.reporting.figures.sheet import write_figure
from undrift.reporting.html.page import Page, PageFigure, PlanTable, render, template
from undrift.reporting.tables.compare import Grading, compare, manifest_of_runs
from undrift.reporting.tables.comparison import IN_PRINT
from undrift.reporting.tables.formats import csv_table, latex_document, markdown_table
from undrift.storage.files import make_folder, writable_folder, write_atomically
from undrift.storage.lock import exclusive
from undrift.typing import Progress, silent, with_progress

TITLE = "Continual learning on graphs: results"
GRADINGS: tuple[Grading, ...] = ("class", "node")


@dataclass(frozen=True)
class Report:
    """What was written: the page, its size in bytes, and what could not be drawn, and why."""

    page: Path
    size: int
    tables: int
    figures: int
    left_out: list[str]


def write_report(records: Records, out: str | Path, *, progress: Progress = silent) -> Report:
    """Write `out`/index.html with everything inside, and its tables and figures beside it.

    Runs that no plan asked for get a table of their own. The same records give the same bytes:
    no clock is read. All of it is made aside and takes its place in the end, the page last: cut
    off before that, an older report stays as it was.
    """
    if not records.results:
        raise InputError(
            f"there is no finished run in {records.folder}; make some first, for example with "
            f"undrift bench smoke --out {records.folder}"
        )
    template()  # is jinja2 installed?
    folder = writable_folder(out)
    with exclusive(folder / ".report.lock", f"writing the report in {folder}"):
        for left in folder.glob(".report.*.part"):  # of a killed process: the lock is ours
            shutil.rmtree(left, ignore_errors=True)
        aside = folder / f".report.{secrets.token_hex(4)}.part"
        try:
            made = _make(records, aside, progress)
            _settle(aside, folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return replace(made, page=folder / "index.html")


def _settle(aside: Path, folder: Path) -> None:
    """Give every file its place, the page last."""
    files = [path for path in aside.rglob("*") if path.is_file()]
    try:
        for path in sorted(files, key=lambda path: (path.name == "index.html", path)):
            place = folder / path.relative_to(aside)
            os.replace(path, make_folder(place.parent) / place.name)
    except OSError as error:
        raise InputError(
            f"cannot write {place} ({error.strerror or error}); choose another folder"
        ) from error


def _make(records: Records, folder: Path, progress: Progress) -> Report:
    plans = _plans(records, progress)
    files = [(plan, grading) for plan in plans for grading in GRADINGS]
    for plan, grading in with_progress(files, "table files", progress):
        _write_table(plan, grading, folder / "tables")
    figures, left_out = _draw(records, folder / "figures", progress)
    progress("page", 0, 1)
    page = Page(
        title=TITLE,
        plans=plans,
        results=records.results,
        figures=figures,
        searches=records.searches,
        damaged=records.damaged,
        left_out=left_out,
        newest=_newest(records),
    )
    text = render(page).encode()
    write_atomically(folder / "index.html", text)
    progress("page", 1, 1)
    return Report(folder / "index.html", len(text), len(plans), len(figures), list(page.left_out))


def _plans(records: Records, progress: Progress) -> list[PlanTable]:
    """A table per plan with a finished run, then one of the runs that no plan asked for."""
    planned = {cell.run for manifest in records.manifests for cell in manifest.cells}
    loose = {run: result for run, result in records.results.items() if run not in planned}
    known = announced()  # then those of the reader
    manifests = sorted(records.manifests, key=lambda each: [*known, each.plan].index(each.plan))
    if loose:
        title = "Runs that belong to no plan" if manifests else "Runs"
        manifests.append(manifest_of_runs(loose, plan="other-runs", title=title))
    made = []
    for plan in with_progress(manifests, "tables", progress):
        first = known[plan.plan].first_metric if plan.plan in known else ""
        metrics = sorted(METRICS, key=lambda key: key != first)
        tables = {g: compare(records.results, plan, metrics=metrics, grading=g) for g in GRADINGS}
        if tables["class"].rows and tables["class"].streams:
            made.append(PlanTable(plan, tables))
    return made


def _write_table(plan: PlanTable, grading: Grading, folder: Path) -> None:
    """Its three files; only as many metrics as fit on paper are in print."""
    table = plan.tables[grading]
    kept = tuple(table.metrics[:IN_PRINT])
    entries = {place: entry for place, entry in table.entries.items() if place[2] in kept}
    short = replace(table, metrics=kept, entries=entries)
    name = plan.manifest.plan + ("" if grading == "class" else f"-{grading}")
    texts = {"md": markdown_table(short), "tex": latex_document(short), "csv": csv_table(table)}
    for suffix, text in texts.items():
        write_atomically(folder / f"{name}.{suffix}", text.encode())


def _draw(records: Records, folder: Path, progress: Progress) -> tuple[list[PageFigure], list[str]]:
    """Write every figure that can be drawn; those that cannot are told with the reason."""
    from undrift.reporting.figures.figure import all_figures

    every = all_figures(records)
    left_out = [f"{figure.name}: {figure.left_out}" for figure in every if figure.left_out]
    drawn = []
    for each in with_progress([f for f in every if not f.left_out], "figures", progress):
        try:
            figure = each.draw(records)
            if figure is None:
                raise InputError("there is nothing to draw")
            for suffix in ("svg", "pdf"):
                write_figure(figure, folder / f"{each.name}.{suffix}")
            svg = (folder / f"{each.name}.svg").read_text(encoding="utf-8")
            drawn.append(PageFigure(each.name, each.title, each.caption, svg))
        except InputError as error:
            if isinstance(error.__cause__, OSError):  # no fault of the figure
                raise
            left_out.append(f"{each.name}: {error}")
    return drawn, left_out


def _newest(records: Records) -> str | None:
    """The day, in UTC, on which the newest result was written."""
    paths = (records.folder / run / "result.json" for run in records.results)
    times = [path.stat().st_mtime for path in paths if path.is_file()]
    return datetime.fromtimestamp(max(times), UTC).strftime("%Y-%m-%d") if times else None
