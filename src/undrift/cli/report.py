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
    from undrift.cli.console import name_damaged, output, progress_console
    from undrift.experiments.store import load_records
    from undrift.formatting import size
    from undrift.reporting.report import write_report

    console = progress_console()
    with _shown(console) as progress:
        records = load_records(folder, progress=progress)
        name_damaged(console, records.damaged, "files")
        made = write_report(records, out, progress=progress)
    if made.left_out:
        console.print(
            f"{len(made.left_out)} figures or parts of them could not be drawn; the report says why"
        )
    output().print(f"report: {made.page} ({size(made.size)})", soft_wrap=True, markup=False)


@contextmanager
def _shown(console: Console) -> Iterator[Progress]:
    """A bar on a terminal; elsewhere a line for each phase, when it starts."""
    from undrift.cli.console import bar_of

    def line(phase: str, done: int, total: int) -> None:
        if done == 0 and total > 0:
            console.print(f"{_PHASES[phase]}: {total}" if total > 1 else _PHASES[phase])

    if not console.is_terminal:
        yield line
        return
    with bar_of(console) as bar:
        row = bar.add_task("reading results", total=None)
        yield lambda phase, done, total: bar.update(
            row, description=_PHASES[phase], completed=done, total=total
        )
