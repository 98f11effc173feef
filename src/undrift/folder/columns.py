"""Columns: matched by name, and scaled as a folder is told or as the first batch shows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from undrift.cells import as_text
from undrift.datasets.columns import ignoring
from undrift.datasets.tables import check_named
from undrift.errors import InputError
from undrift.folder.classes import folded
from undrift.folder.record import Record, Scale
from undrift.formatting import counted, some_of
from undrift.graphs import Encoding, Scaling
from undrift.graphs.scaling import check_given, odd_columns, scaling_given
from undrift.learners.base import Learner
from undrift.learners.small_classes import has_noise
from undrift.storage.lock import system_errors

if TYPE_CHECKING:
    from undrift.folder.batch import Batch, LargeBatch

CHANGED = "docs/first-year.md, When columns change"
_SHOWN = 4
_FILE = '{"price": {"low": 0, "high": 100000}}'


def matched_columns(
    there: Sequence[str],
    known: Sequence[str] | None,
    where: str,
    neutral: Mapping[str, float | None] | None = None,
) -> tuple[str, ...]:
    """The columns to read, in the order that was learned; others than those are an error.

    `neutral`: of every column learned, a number that tells nothing, or None: an empty cell does.
    """
    if known is None:
        check_named(where, there)
        return tuple(there)
    lacking = [name for name in known if name not in there]
    strange = [name for name in there if name not in known]
    wrong, fixes = [], []
    if lacking:
        wrong.append(f"lacks {len(lacking)} of the {len(known)} columns learned: {_few(lacking)}")
        fixes.append(_lacking(lacking, strange, neutral or {}))
    if strange:
        wrong.append(f"has {counted(len(strange), 'column')} not learned: {_few(strange)}")
        fixes.append(f"to go on without what is new, put it into ignore ({ignoring(strange)})")
    if wrong:
        raise InputError(
            f"{where} {' and '.join(wrong)}; {'; '.join(fixes)}; to learn from other columns, make "
            f"a new learner ({CHANGED})"
        )
    return tuple(known)


def _lacking(
    lacking: Sequence[str], strange: Sequence[str], neutral: Mapping[str, float | None]
) -> str:
    """What to do to a file that lacks columns: rename one that looks like it, or add it."""
    names = {folded(name): name for name in strange}
    for name in lacking:
        near = get_close_matches(folded(name), names, n=1, cutoff=0.75)
        if near:
            return f"rename {names[near[0]]!r} to {name!r}, if they are one"
    filled = {name: neutral.get(name, 0.0) for name in lacking}
    cells = [f"{n!r} with {'nothing' if x is None else f'{x:.9g}'}" for n, x in filled.items()]
    shown = some_of(cells, _SHOWN, "more with their centre")
    return f"if nobody knows the numbers, add {shown} in every row: it tells nothing"


def _few(names: Sequence[str]) -> str:
    return some_of([*map(repr, names)], _SHOWN)


def read_scale(
    scale: str | Path | Mapping[str, Any] | Encoding | None, learner: Learner
) -> Scale | None:
    """A scale as a record has it: `robust`, `none`, or what a JSON file or a mapping gives."""
    if scale is None or scale == "none":
        return None if scale is None else "none"
    if scale == "robust":
        if has_noise(learner):
            raise InputError(
                "with epsilon the ranges of columns must be public, and robust takes them from the "
                f"first batch; give public ranges ({_FILE}) as scale (--scale FILE.json), or "
                "scale='none' (--scale none)"
            )
        return "robust"
    given = scale.as_plain() if isinstance(scale, Encoding) else scale
    if not isinstance(given, Mapping):
        failed = f"a scale is robust, none, or a JSON file, and {scale} cannot be read"
        with system_errors(failed, f"write one such as {_FILE}"):
            try:
                given = json.loads(Path(given).read_text(encoding="utf-8-sig"))
            except (ValueError, RecursionError) as error:
                raise InputError(f"{scale} is not valid JSON; write it such as {_FILE}") from error
    if not isinstance(given, Mapping):
        raise InputError(f"{scale} must name columns, such as {_FILE}")
    if given:
        Encoding.of({}, given)  # its errors name the column
    return {
        name: list(map(as_text, each))
        if isinstance(each, list | tuple)
        else {key: float(n) for key, n in each.items()}
        for name, each in given.items()
    }


def fixed_scale(
    learner: Learner, record: Record, batch: Batch | LargeBatch
) -> tuple[Scale, Scaling | Encoding | None, list[str]]:
    """What the first batch fixes: how columns are scaled, by what, and what to know about it."""
    encoding = getattr(batch.graph, "encoding", None)  # of a table without edges
    if encoding is not None:
        public = record.scale if isinstance(record.scale, dict) else {}
        shown = [name for name, _ in encoding.columns if name not in public]
        if has_noise(learner) and shown:
            raise InputError(
                "with epsilon ranges and categories must be public, and those of column "
                f"{shown[0]!r} would come from the batch; make the learner with a scale (--scale "
                'FILE.json) of every column, such as {"age": {"low": 0, "high": 100}, "sex": '
                '["f", "m"]}'
            )
        few = encoding.rare(batch.some_features(), record.least_rows)
        rare = "; ".join(f"{name!r}: {_few(few[name])}" for name in list(few)[:_SHOWN])
        note = (
            f"categories of fewer than {record.least_rows} rows ({rare}) stay by name, whoever is "
            "erased; if a name could reveal somebody, make a new learner and give the list with "
            "--scale"
        )
        return record.scale or "robust", encoding, [note] if few else []
    if record.scale is None and (batch.columns is None or has_noise(learner)):
        return "none", None, _notes(batch)
    how = record.scale or "robust"
    if isinstance(how, dict):
        return how, scaling_given(how, batch.columns, batch.graph.num_features), []
    return how, Scaling.of(batch.some_features()) if how == "robust" else None, []


def neutral(learner: Learner, record: Record) -> dict[str, float | None]:
    """Of every column learned, the number that tells nothing: its centre, or 0; None: no number."""
    names, known = record.columns or (), learner.scaling_
    if learner.learned_ is None and isinstance(record.scale, dict):  # pinned by a plan
        numbers = {n: each for n, each in record.scale.items() if isinstance(each, dict)}
        centres = {n: centre for n, (centre, _) in check_given(numbers).items()}
        return {name: centres.get(name) for name in names}
    if isinstance(known, Encoding):
        return dict.fromkeys(names)
    if known is None or known.width != len(names):
        return dict.fromkeys(names, 0.0)
    return dict(zip(names, known.centre, strict=True))


def _notes(batch: Batch | LargeBatch) -> list[str]:
    """What to know where nobody said how to scale, and columns are not."""
    if batch.columns is not None:
        return [
            "columns are not scaled, as with epsilon their ranges must be public; where units "
            "differ, make a new learner with public ranges as scale (--scale FILE.json)"
        ]
    odd = odd_columns(batch.some_features())
    if not odd:
        return []
    shown = some_of([f"{j} ({times:,.0f} times)" for j, times in odd.items()], _SHOWN)
    which, have = ("column", "has") if len(odd) == 1 else ("columns", "have")
    return [
        f"{which} {shown} of {batch.where}, counted from 0, {have} a far larger spread than "
        "the others and may decide alone; if that is not meant, make a new learner with "
        'scale="robust" (--scale robust)'
    ]
