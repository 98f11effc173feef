"""Tables of a learner's folder for the terminal. Importing this module does not import torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from undrift.formatting import size
from undrift.reporting.terminal import plain_table

if TYPE_CHECKING:
    from undrift.folder.record import Line, Record
    from undrift.folder.store import Version
    from undrift.privacy.audit import Audit

_SHOWN = 8  # names of columns, or batches of a step


def fact_table(found: Version, title: str) -> Table:
    """What a folder holds, a line per fact."""
    record, entry = found.record, found.record.entry
    right, tested = record.foresight
    small = f"{record.small_classes}, under {record.least_rows} training nodes"
    columns = "by position" if record.columns is None else _few(record.columns, ", ")
    facts = [
        ("method", found.method),
        ("step", f"{entry.step} ({entry.verb}, {entry.time})"),
        ("state", f"{size(found.path.stat().st_size)}, {found.sha[:12]}..."),
        ("columns", f"{record.width or 0}: {columns}"),
        ("scaled", _scaled(record)),
        ("batches", f"{len(record.batches):,}"),
        ("predicted right before learned", f"{right:,} of {tested:,}" if tested else "-"),
        ("old states", f"{record.keep} kept"),
        ("node hashes", "remembered" if record.remember_nodes else "not kept"),
        ("small classes", "hidden by noise" if record.private else small),
    ]
    if entry.spent_epsilon is not None:
        once = "assumed" if record.assumes_disjoint else "checked by node hashes"
        facts.append(("epsilon spent", f"{entry.spent_epsilon:.3g}"))
        facts.append(("nobody is in two batches", once))
    return plain_table(title, {"": "word", " ": "text"}, facts)


def _scaled(record: Record) -> str:
    if isinstance(record.scale, dict):
        return f"as given: {_few(tuple(record.scale), ', ')}"
    if record.scale is None:
        return "not decided yet" if record.width is None else "no"
    return "by the first batch" if record.scale == "robust" else "no"


def class_table(found: Version) -> Table:
    """Labelled nodes per class."""
    record = found.record
    rows = [(c, "not counted" if record.private else f"{n:,}") for c, n in record.counts.items()]
    return plain_table(None, {"class": "name", "labelled nodes": "number"}, rows)


def audit_tables(found: Audit) -> list[Table]:
    """What is kept, what stands behind it, and what attacks find."""
    tensors = [
        (each.name, " x ".join(map(str, each.shape)), size(each.nbytes)) for each in found.kept
    ]
    behind = []
    for each in found.behind:
        shape = f"{each.rows:,}", f"{each.columns:,}", f"{each.rows_per_column:.2f}"
        small = "-" if each.smallest is None else f"{each.smallest[1]:,} ({each.smallest[0]})"
        thin = "-" if each.thinnest is None else f"{each.thinnest:.1f}"
        behind.append((each.name, *shape, small, thin))
    attacks = []
    for one in found.findings:
        known = "-" if one.figure is None else "tried" if one.measured else "foretold"
        attacks.append((one.where, one.attack, one.text, known, one.tried))
    numbers = {"rows": "number", "columns": "number", "rows per column": "number"}
    numbers |= {"smallest class": "text", "thinnest column": "number"}
    words = {"sum": "name", "attack": "word", "figure": "word", "": "word", "how": "text"}
    tables = [
        plain_table("Kept", {"tensor": "name", "shape": "word", "size": "number"}, tensors),
        plain_table("Rows behind it", {"sum": "name", **numbers}, behind),
        plain_table("Attacks", words, attacks),
    ]
    return [table for table in tables if table.row_count]


def history_table(lines: Sequence[Line]) -> Table:
    """A row per step, oldest first."""
    kinds = {"step": "number", "verb": "name", "time": "word", "nodes": "number"}
    kinds |= {"edges": "number", "labelled": "number", "batches": "text", "state": "word"}
    rows = []
    for line in lines:
        batches = [f"+{data[:8]}" for data in line.added] + [f"-{d[:8]}" for d in line.removed]
        counts = [f"{n:,}" if n else "" for n in (line.nodes, line.edges, line.labelled)]
        told = [str(line.step), line.verb, line.time[:19].replace("T", " "), *counts]
        rows.append([*told, _few(batches, " "), line.result[:8]])
    return plain_table(None, kinds, rows)


def _few(words: Sequence[str], between: str) -> str:
    return between.join([*words[:_SHOWN], *(["..."] if len(words) > _SHOWN else [])])
