"""`undrift results`: what the runs of a folder came to, filtered, sorted, or asked in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from undrift.cli.options import Flag, Whole, Words

if TYPE_CHECKING:
    from extras.flat import Value
    from extras.table import ResultTable

_ROWS = 40


def results(
    folder: Path = Path("runs"),
    /,
    *,
    filters: Annotated[Words, Parameter(name="--filter")] = (),
    query: str | None = None,
    sort: str | None = None,
    reverse: Flag = False,
    columns: str | None = None,
    csv: Annotated[str | None, Parameter(allow_leading_hyphen=True, show_default=False)] = None,
    parquet: Path | None = None,
    limit: Whole | None = None,
) -> None:
    """Show the results in a folder, one line per run.

    Accuracies are in percent and by class: a_avg, a_f, a_l, forgetting; node_a_avg and so on are
    by node, val_a_avg and so on of the validation nodes. Damaged results are named and skipped.

    For example:

        undrift results --filter method=adr --filter "a_f>=80" --sort a_f
        undrift results --query "SELECT method, avg(a_f) FROM results GROUP BY method"
        undrift results --csv - | head

    :param folder: The folder of results.
    :param filters: Only runs with this, such as a_f>=80, method!=bare or stream=c*; repeat it for
        more.
    :param query: Ask in SQL (DuckDB's) instead: one SELECT from the table results.
    :param sort: The column to sort by: numbers from the highest, text from A.
    :param reverse: Sort the other way around.
    :param columns: Which columns to show, with commas between them; all: every one.
    :param csv: Write all the rows and columns to this file, or with - to the terminal.
    :param parquet: Write all the rows and columns to this Parquet file.
    :param limit: How many rows to show; 40 without it and all in a CSV file. 0: all.
    """
    from extras.table import load_table
    from undrift.cli.console import name_damaged, output, progress_console
    from undrift.errors import InputError

    if limit is not None and limit < 0:
        raise InputError(f"--limit must be 0 (all rows) or more, not {limit}")
    if csv is not None and (csv.startswith("--") or not csv):
        raise InputError("--csv needs the name of a file, or - for the terminal")
    if query is not None and (sort or columns or reverse or parquet):
        raise InputError("--query says the columns and the order itself; leave out the others")
    console = progress_console()
    with console.status(f"reading {folder}"):
        table = load_table(folder)
    name_damaged(console, table.damaged, "results")
    table.keep(filters)
    if parquet is not None:
        table.parquet(parquet)
        output().print(f"{len(table):,} rows: {parquet}", soft_wrap=True, markup=False)
        return
    given_up: Sequence[str] | None = None
    if query is not None:
        names, rows = table.ask(query)
    else:
        names, given_up = _picked(table, columns, everything=csv is not None)
        if reverse and sort is None:
            raise InputError("--reverse needs --sort; name a column, for example --sort a_f")
        rows = table.rows(names, sort, reverse=reverse)
    total, most = len(rows), limit if limit is not None else (0 if csv else _ROWS)
    rows = rows[:most] if most else rows
    if csv is not None:
        _write(csv, names, rows)
        return
    if not rows:
        what = "run passes the filters" if filters else "finished run lies"
        output().print(f"no {what} in {folder}" if query is None else "no rows", soft_wrap=True)
        return
    stand_ins = {str(run) for run, imitated in table.rows(("id", "stand_in")) if imitated}
    _show(names, rows, total, given_up, stand_ins)


def _picked(
    table: ResultTable, columns: str | None, *, everything: bool
) -> tuple[tuple[str, ...], Sequence[str] | None]:
    """The columns to show, and in which order they may be given up; None: as they stand."""
    from undrift.errors import InputError
    from undrift.evaluation.metrics import METRICS

    if columns == "all" or (columns is None and everything):
        return table.columns, None if columns else ()
    if columns is None:
        # a metric of streams where classes come back, and how they arrive: where there is any
        metrics = tuple(k for k in METRICS if METRICS[k].fits("tasks") or table.has_values(k))
        where = ("stream", "arrive") if table.has_values("a_auc") else ("stream",)
        costs = ("drift_last", "seconds_total", "state_mb")
        shown = ("id", *where, "method", "params", "seed", *metrics, "val_a_avg", *costs)
        first = ("state_mb", "drift_last", "val_a_avg", *reversed(metrics[2:]))
        return shown, (*first, "seconds_total", "params")
    names = tuple(dict.fromkeys(table.column(c) for c in columns.split(",") if c.strip()))
    if not names:
        raise InputError("--columns names no column; give some, for example --columns id,a_f")
    return names, None


def _show(
    names: Sequence[str],
    rows: Sequence[Sequence[Value]],
    total: int,
    given_up: Sequence[str] | None,
    stand_ins: set[str],
) -> None:
    from extras.screen import fitting, query_table, shown
    from undrift.cli.console import output
    from undrift.datasets.catalogue import marked

    console = output()
    cells = [[shown(n, v) for n, v in zip(names, row, strict=True)] for row in rows]
    if "id" in names and "stream" in names:
        run, stream = names.index("id"), names.index("stream")
        for row in cells:
            row[stream] = marked(row[stream], row[run] in stand_ins)
    numbers = [all(not isinstance(row[i], str | bool) for row in rows) for i, _ in enumerate(names)]
    kept = fitting(names, cells, console.width, given_up or ())
    lines = [[row[i] for i in kept] for row in cells]
    console.print(query_table([names[i] for i in kept], lines, [numbers[i] for i in kept]))
    left = [name for i, name in enumerate(names) if i not in kept]
    if left and given_up is None:
        console.print(f"too wide to show: {', '.join(left)}; --csv - has all", soft_wrap=True)
    if total > len(rows):
        console.print(f"{len(rows):,} of {total:,} rows; --limit 0 shows all", soft_wrap=True)


def _write(target: str, names: Sequence[str], rows: Sequence[Sequence[Value]]) -> None:
    import csv
    import io
    import os
    import sys

    from undrift.cli.console import output
    from undrift.storage.files import write_atomically

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    words = {True: "true", False: "false"}
    writer.writerows([words[v] if isinstance(v, bool) else v for v in row] for row in rows)
    if target != "-":
        write_atomically(target, text.getvalue().encode())
        output().print(f"{len(rows):,} rows: {target}", soft_wrap=True, markup=False)
        return
    try:
        sys.stdout.write(text.getvalue())
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
