"""`undrift report`: tables, figures and one page of a folder of results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from rich.console import Console

    from undrift.typing import Progress

_SENTENCES = 20
_PHASES = {
    "read": "reading results",
    "tables": "comparing",
    "table files": "writing tables",
    "figures": "drawing figures",
    "page": "writing the page",
}


def report(
    folder: Path = Path("runs"),
    /,
    *,
    out: Path = Path("report"),
    traceback: Annotated[bool, Parameter(negative="", show_default=False)] = False,
) -> None:
    """Make the report of a folder of results: tables, figures, one HTML page.

    OUT/index.html has everything inside and needs no network. The same results give the same
    report. Damaged files are named and skipped, here and in the report.

    Parameters
    ----------
    folder
        The folder of results.
    out
        The folder for the report.
    traceback
        When it fails, print where.
    """
    from undrift.cli.console import output, progress_console
    from undrift.experiments.store import load_records
    from undrift.formatting import size
    from undrift.reporting.report import write_report

    console = progress_console()
    with _shown(console) as progress:
        records = load_records(folder, progress=progress)
        _name_damaged(console, records.damaged)
        made = write_report(records, out, progress=progress)
    if made.left_out:
        console.print(
            f"{len(made.left_out)} figures or parts of them could not be drawn; the report says why"
        )
    output().print(f"report: {made.page} ({size(made.size)})", soft_wrap=True, markup=False)


def _name_damaged(console: Console, damaged: list[str]) -> None:
    for sentence in damaged[:_SENTENCES]:
        console.print(f"skipped: {sentence}", markup=False)
    if len(damaged) > _SENTENCES:
        console.print(f"skipped: {len(damaged) - _SENTENCES} more damaged files")


@contextmanager
def _shown(console: Console) -> Iterator[Progress]:
    """A bar on a terminal; elsewhere a line for each phase, when it starts."""
    if not console.is_terminal:
        yield lambda phase, done, total: _line(console, phase, done, total)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        row = bar.add_task("reading results", total=None)

        def move(phase: str, done: int, total: int) -> None:
            bar.update(row, description=_PHASES[phase], completed=done, total=total)

        yield move


def _line(console: Console, phase: str, done: int, total: int) -> None:
    if done == 0 and total > 0:
        console.print(f"{_PHASES[phase]}: {total}" if total > 1 else _PHASES[phase])
