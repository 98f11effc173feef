"""`undrift report`: tables, figures and one page of a folder of results."""

from pathlib import Path

from undrift.cli.console import name_damaged, progress_console, say, working


def report(folder: Path = Path("runs"), /, *, out: Path = Path("report")) -> None:
    """Make the report of a folder of results: tables, figures, one HTML page.

    OUT/index.html has everything inside and needs no network. OUT/tables has the tables as
    Markdown, LaTeX and CSV, OUT/figures the figures as SVG and PDF. The same results give the same
    report. Damaged files are named and skipped, here and in the report.

    For example:

        undrift report
        undrift report runs --out report
        undrift report /tmp/runs --out /tmp/report

    :param folder: The folder of results.
    :param out: The folder for the report.
    """
    from undrift.experiments.store import load_records
    from undrift.formatting import size
    from undrift.reporting.report import write_report

    console = progress_console()
    with working("reporting") as progress:
        records = load_records(folder, progress=progress)
        name_damaged(console, records.damaged, "files")
        made = write_report(records, out, progress=progress)
    if made.left_out:
        console.print(
            f"{len(made.left_out)} figures or parts of them could not be drawn; the report says why"
        )
    say(f"report: {made.page} ({size(made.page.stat().st_size)})")
