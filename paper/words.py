"""What people say about the results beside the numbers: `about.toml` and `reasons.toml`."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from undrift.errors import InputError, unknown_name

__all__ = ["Words", "read_words"]


@dataclass(frozen=True)
class Words:
    """`how` the runs were made, `notes` on a stream, and `reasons` by stream and row.

    A reason says why a number differs from the paper's; `paper.reasons` fills in its numbers.
    """

    how: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[tuple[str, str], str] = field(default_factory=dict)


def read_words(folder: str | Path, streams: Iterable[str], rows: Iterable[str]) -> Words:
    """Read `about.toml` and `reasons.toml` of a folder; a file that is not there says nothing.

        how = "On a machine with 16 cores, one thread a run."      # about.toml
        [streams]
        cs-cl = "A sentence for the reader of this stream's tables."

        [cs-cl]                                                   # reasons.toml
        cat = "Why CaT's numbers on CS-CL are not the paper's."

    A stream or a row that the results do not have is an `InputError`: it is a slip of the pen,
    and the sentence would be lost.
    """
    known, named = list(streams), list(rows)
    about_path, reasons_path = Path(folder) / "about.toml", Path(folder) / "reasons.toml"
    about = _table(about_path)
    for key in about:
        if key not in ("how", "streams"):
            raise InputError(f"{about_path}: {unknown_name('key', key, ('how', 'streams'))}")
    notes = about.get("streams", {})
    _check(about_path, notes, "stream", known)
    reasons = _table(reasons_path)
    for stream, found in reasons.items():
        _check(reasons_path, {stream: ""}, "stream", known)
        _check(reasons_path, found, "row", named)
    return Words(
        how=_text(about_path, about.get("how", "")),
        notes={stream: _text(about_path, text) for stream, text in notes.items()},
        reasons={
            (stream, row): _text(reasons_path, text)
            for stream, found in reasons.items()
            for row, text in found.items()
        },
    )


def _table(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path} cannot be read as TOML ({error}); mend it") from error


def _check(path: Path, found: object, what: str, known: Iterable[str]) -> None:
    if not isinstance(found, dict):
        raise InputError(f"{path}: sentences stand in tables such as [cs-cl]; mend it")
    names = list(known)
    for name in found:
        if name not in names:
            raise InputError(f"{path}: {unknown_name(what, name, names)}")


def _text(path: Path, text: object) -> str:
    if not isinstance(text, str):
        raise InputError(f"{path}: {text!r} is not a sentence; put it in quotes")
    return text.strip()
