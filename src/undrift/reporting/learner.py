"""Tables of a learner's folder for the terminal. Importing this module does not import torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from undrift.formatting import size, some_of
from undrift.reporting.terminal import plain_table

if TYPE_CHECKING:
    from undrift.folder.record import Entry, Line, Record
    from undrift.folder.store import Version
    from undrift.privacy.audit import Audit

_SHOWN = 8  # names of columns, or batches of a step


def fact_table(found: Version, title: str) -> Table:
    """What a folder holds, a line per fact."""
    record, entry = found.record, found.record.entry
    right, tested = record.foresight
    small = f"{record.small_classes}, under {record.least_rows} training nodes"
    columns = "by position" if record.columns is None else some_of(record.columns, _SHOWN)
    of_nodes = [
        ("columns", f"{record.width or len(record.columns or ())}: {columns}"),
        ("scaled", _scaled(record)),
        ("predicted right before learned", f"{right:,} of {tested:,}" if tested else "-"),
        ("small classes", "hidden by noise" if record.private else small),
    ]
    of_sessions = [
        ("items", f"{record.width or 0:,}"),
        ("sessions", f"{sum(held.rows for held in record.batches):,}"),
        ("exported", f"items and pairs of at least {record.least_rows} sessions"),
    ]
    facts = [
        ("method", found.method),
        ("step", f"{entry.step} ({entry.verb}, {entry.time})"),
        ("state", f"{size(found.path.stat().st_size)}, {found.sha[:12]}..."),
        *{"node": of_nodes, "session": of_sessions}[record.row],
        ("batches", f"{len(record.batches):,}"),
        ("old states", f"{record.keep} kept"),
        ("hashes of names", "remembered" if record.remember_nodes else "not kept"),
    ]
    if entry.spent_epsilon is not None:
        once = "assumed" if record.assumes_disjoint else "checked by node hashes"
        facts.append(("epsilon spent", f"{entry.spent_epsilon:.3g}"))
        facts.append(("nobody is in two batches", once))
    return plain_table(title, {"": "word", " ": "text"}, facts)


def _scaled(record: Record) -> str:
    if isinstance(record.scale, dict):
        return f"as given: {some_of(tuple(record.scale), _SHOWN)}"
    undecided = record.scale is None and record.width is None
    words = {"robust": "by the first batch"}
    return "not decided yet" if undecided else words.get(record.scale or "", "no")


def class_table(found: Version) -> Table:
    """Labelled nodes per class."""
    record = found.record
    rows = [(c, "not counted" if record.private else f"{n:,}") for c, n in record.counts.items()]
    return plain_table(None, {"class": "name", "labelled nodes": "number"}, rows)


def audit_tables(found: Audit) -> list[Table]:
    """What is kept, what stands behind it, and what attacks find."""
    rows = [[one.name, " x ".join(map(str, one.shape)), size(one.nbytes)] for one in found.kept]
    kept = plain_table("Kept", {"tensor": "name", "shape": "word", "size": "number"}, rows)
    numbers = dict.fromkeys(("rows", "columns", "rows per column"), "number")
    numbers |= {"smallest class": "text", "thinnest column": "number"}
    behind = plain_table("Rows behind it", {"sum": "name", **numbers})
    for each in found.behind:
        shape = f"{each.rows:,}", f"{each.columns:,}", f"{each.rows_per_column:.2f}"
        small = "-" if each.smallest is None else f"{each.smallest[1]:,} ({each.smallest[0]})"
        thin = "-" if each.thinnest is None else f"{each.thinnest:.1f}"
        behind.add_row(each.name, *shape, small, thin)
    words = {"sum": "name", "attack": "word", "figure": "word", "": "word", "how": "text"}
    attacks = plain_table("Attacks", words)
    for attack in found.findings:
        known = "-" if attack.figure is None else "tried" if attack.measured else "foretold"
        attacks.add_row(attack.where, attack.attack, attack.text, known, attack.tried)
    gone = plain_table("Taken out", {"step": "text"}, [[text] for text in found.erased])
    return [table for table in (kept, behind, attacks, gone) if table.row_count]


def history_table(lines: Sequence[Line]) -> Table:
    """A row per step, oldest first."""
    every = ("nodes", "edges", "labelled", "sessions", "clicks")
    shown = [name for name in every if any(getattr(line, name) for line in lines)]
    kinds = {"step": "number", "verb": "name", "time": "word"} | dict.fromkeys(shown, "number")
    heard = any(line.noticed for line in lines)
    kinds |= {"unknown": "word", "moved": "text"} if heard else {}
    kinds |= {"batches": "text", "state": "word"}
    rows = []
    for line in lines:
        batches = [f"+{data[:8]}" for data in line.added] + [f"-{d[:8]}" for d in line.removed]
        counts = [f"{n:,}" if (n := getattr(line, name)) else "" for name in shown]
        cells = [str(line.step), line.verb, line.time[:19].replace("T", " "), *counts]
        seen = line.noticed
        unknown = share(seen.strange, seen.unlabelled) if seen else ""
        cells += [unknown, moved_classes(line)] if heard else []
        rows.append([*cells, some_of(batches, _SHOWN, between=" "), line.result[:8]])
    return plain_table(None, kinds, rows)


def share(part: int | None, whole: int | None) -> str:
    """Such as `3 of 20`; nothing where there is no whole."""
    return f"{part or 0:,} of {whole:,}" if whole else ""


def moved_classes(line: Entry) -> str:
    """The classes of a step that moved more than chance does."""
    return ", ".join(line.noticed.beyond_chance) if line.noticed else ""
