"""The report of a folder of results: tables, figures, and one page that holds all of it."""

from dataclasses import dataclass
from pathlib import Path

from undrift.errors import InputError
from undrift.evaluation.metrics import METRICS
from undrift.experiments.plans import PLANS
from undrift.experiments.store import Records
from undrift.reporting.figures.figure import Figure, all_figures, failure
from undrift.reporting.figures.sheet import figure_bytes
from undrift.reporting.html.page import Page, PlanTable, render, template
from undrift.reporting.tables.compare import Grading, compare, manifest_of_runs
from undrift.reporting.tables.formats import csv_table, latex_document, markdown_table
from undrift.storage.files import writable_folder, write_atomically
from undrift.storage.lock import exclusive, sweep
from undrift.typing import Progress, silent, with_progress

GRADINGS: tuple[Grading, ...] = ("class", "node")


@dataclass(frozen=True)
class Report:
    """The page that was written, and what could not be drawn, and why."""

    page: Path
    left_out: list[str]


def write_report(records: Records, out: str | Path, *, progress: Progress = silent) -> Report:
    """Write `out`/index.html with everything inside, and its tables and figures beside it.

    The same records give the same bytes. Cut off before its end, an older page stays as it was.
    """
    if not records.results:
        at = records.folder
        raise InputError(f"there is no finished run in {at}; try: undrift bench smoke --out {at}")
    template()  # is jinja2 installed?
    folder = writable_folder(out)
    with exclusive(folder / ".report.lock", f"writing the report in {folder}"):
        plans = _plans(records, progress)
        files = _table_files(plans, progress)
        figures, left_out = _draw(records, files, progress)
        progress("writing the page", 0, 1)
        files["index.html"] = render(Page(records, plans, figures, left_out)).encode()
        sweep([folder / "tables", folder / "figures"])
        for name, data in files.items():
            write_atomically(folder / name, data)
        progress("writing the page", 1, 1)
    return Report(folder / "index.html", left_out)


def _plans(records: Records, progress: Progress) -> list[PlanTable]:
    """A table per plan with a finished run, then one of the runs that no plan asked for."""
    planned = {cell.run for manifest in records.manifests for cell in manifest.cells}
    loose = {run: result for run, result in records.results.items() if run not in planned}
    known = dict(PLANS)  # then those of the reader
    manifests = sorted(records.manifests, key=lambda each: [*known, each.plan].index(each.plan))
    if loose:
        title = "Runs that belong to no plan" if manifests else "Runs"
        manifests.append(manifest_of_runs(loose, plan="other-runs", title=title))
    made = []
    for plan in with_progress(manifests, "comparing", progress):
        first = known[plan.plan].first_metric if plan.plan in known else ""
        metrics = sorted(METRICS, key=lambda key: key != first)
        runs = [records.results[cell.run] for cell in plan.cells if cell.run in records.results]
        ways = GRADINGS if any(run.matrix.by_node for run in runs) else GRADINGS[:1]
        tables = {g: compare(records.results, plan, metrics=metrics, grading=g) for g in ways}
        if tables["class"].rows and tables["class"].streams:
            made.append(PlanTable(plan, tables))
    return made


def _table_files(plans: list[PlanTable], progress: Progress) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    every = [(plan.manifest.plan, *each) for plan in plans for each in plan.tables.items()]
    for plan, grading, table in with_progress(every, "writing tables", progress):
        name, short = f"tables/{plan}{'-node' * (grading == 'node')}", table.printed()
        files[f"{name}.md"] = markdown_table(short).encode()
        files[f"{name}.tex"] = latex_document(short).encode()
        files[f"{name}.csv"] = csv_table(table).encode()
    return files


def _draw(
    records: Records, files: dict[str, bytes], progress: Progress
) -> tuple[list[tuple[Figure, bytes]], list[str]]:
    """Add every figure that can be drawn to the files; the others come with the reason."""
    every = all_figures(records)
    left_out = [f"{figure.name}: {figure.left_out}" for figure in every if figure.left_out]
    drawn = []
    for each in with_progress([f for f in every if not f.left_out], "drawing figures", progress):
        try:
            figure = each.draw(records)
            if figure is None:
                raise InputError("there is nothing to draw")
            pictures = {suffix: figure_bytes(figure, suffix) for suffix in ("svg", "pdf")}
        except Exception as error:
            left_out.append(f"{each.name}: {failure(error, each.package)}")
            continue
        files |= {f"figures/{each.name}.{suffix}": data for suffix, data in pictures.items()}
        drawn.append((each, pictures["svg"]))
    return drawn, left_out
