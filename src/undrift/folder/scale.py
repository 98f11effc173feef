"""How a folder scales columns: as it is told, and for tables by what the first batch shows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from undrift.errors import InputError
from undrift.folder.batch import Batch
from undrift.folder.large_batch import LargeBatch
from undrift.folder.record import Record, Scale
from undrift.graphs import Scaling
from undrift.graphs.scaling import check_given, odd_columns, scaling_given
from undrift.learners.base import Learner
from undrift.learners.small_classes import has_noise

_SHOWN = 4
_WORDS: tuple[Literal["robust"], Literal["none"]] = ("robust", "none")
_FILE = '{"price": {"low": 0, "high": 100000}}'


def read_scale(scale: str | Path | Mapping[str, Any] | None, learner: Learner) -> Scale | None:
    """A scale as a record has it: `robust`, `none`, or what a JSON file or a mapping gives.

    With noise a scale from data is refused: medians of a batch are outside of epsilon.
    """
    if scale == "robust" and has_noise(learner):
        raise InputError(
            "robust scaling takes the medians of the first batch, which epsilon does not cover; "
            f"give public ranges in a file ({_FILE}) as --scale FILE.json, or --scale none"
        )
    if scale is None:
        return None
    for word in _WORDS:
        if scale == word:
            return word
    given = scale if isinstance(scale, Mapping) else _read(Path(scale))
    check_given(given)
    return {name: {key: float(n) for key, n in each.items()} for name, each in given.items()}


def _read(path: Path) -> Mapping[str, Any]:
    try:
        given = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(
            f"a scale is robust, none, or a JSON file, and {path} cannot be read "
            f"({error.strerror or error}); write one such as {_FILE}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not valid JSON; write it such as {_FILE}") from error
    if not isinstance(given, dict):
        raise InputError(f"{path} must name columns, such as {_FILE}")
    return given


def fixed_scale(
    learner: Learner, record: Record, batch: Batch | LargeBatch
) -> tuple[Scale, Scaling | None, list[str]]:
    """What the first batch fixes: how columns are scaled, by what, and what to know about it.

    Without a scale, tables are scaled and graphs without names of columns are not.
    """
    how, notes = record.scale, list[str]()
    if how is None:
        how = "none" if batch.columns is None or has_noise(learner) else "robust"
        notes = _notes(learner, batch) if how == "none" else []
    if how == "none":
        return how, None, notes
    if how == "robust":
        return how, Scaling.of(_features(batch)), notes
    return how, scaling_given(how, batch.columns, batch.graph.num_features), notes


def neutral(learner: Learner, columns: Sequence[str] | None) -> dict[str, float]:
    """Of every column learned, the number that tells nothing: its centre, or 0."""
    if columns is None:
        return {}
    known = learner.scaling_
    if known is None or known.width != len(columns):
        return dict.fromkeys(columns, 0.0)
    return dict(zip(columns, known.centre, strict=True))


def _features(batch: Batch | LargeBatch) -> Any:
    return batch.graph.features if isinstance(batch, Batch) else batch.graph.sampled()


def _notes(learner: Learner, batch: Batch | LargeBatch) -> list[str]:
    if batch.columns is not None:
        return [
            "columns are not scaled, as medians of a batch are outside of epsilon; where units "
            "differ, make the learner anew with public ranges: --scale FILE.json"
        ]
    odd = odd_columns(_features(batch))
    if not odd:
        return []
    shown = ", ".join(f"{j} ({times:,.0f} times)" for j, times in list(odd.items())[:_SHOWN])
    more = f" and {len(odd) - _SHOWN} more" if len(odd) > _SHOWN else ""
    which = "column" if len(odd) == 1 else "columns"
    return [
        f"{which} {shown}{more} of {batch.where}, counted from 0, "
        f"{'has' if len(odd) == 1 else 'have'} a far larger spread than the others and may decide "
        "alone; if that is not meant, make the learner anew with --scale robust (in Python "
        'scale="robust")'
    ]
