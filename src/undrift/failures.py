"""What an unexpected error says to people: its own words, or where a library gave up."""

from __future__ import annotations

import dis
from pathlib import Path
from types import TracebackType

from undrift.errors import InputError
from undrift.memory import shortage

_RAISES = {dis.opmap[name] for name in ("RAISE_VARARGS", "RERAISE")}
_LIBRARIES = {"torch", "numpy", "scipy", "safetensors", "pydantic", "duckdb"}


def told(error: BaseException) -> str:
    """One line about an error.

    What was raised in Python, by a method of a user's own for example, has words for people. What
    torch or NumPy raise inside has not: then the line says what kind it was and where.

    >>> try:
    ...     raise ZeroDivisionError("no nodes to divide by")
    ... except ZeroDivisionError as error:
    ...     print(told(error))
    ZeroDivisionError: no nodes to divide by
    """
    text = " ".join(str(error).split())
    if isinstance(error, InputError):
        return text
    short = shortage(error)
    if short is not None:
        return str(short)
    kind = type(error).__name__.lstrip("_")
    frames = list(_frames(error.__traceback__))
    if not frames or not _inside_a_library(frames[-1]):
        return f"{kind}: {text}" if text else kind
    ours = [f for f in frames if not _LIBRARIES & set(Path(f.tb_frame.f_code.co_filename).parts)]
    last = (ours or frames)[-1]
    where = Path(last.tb_frame.f_code.co_filename).name
    return f"an unexpected {kind} in {where}, line {last.tb_lineno}"


def _frames(trace: TracebackType | None) -> list[TracebackType]:
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    return frames


def _inside_a_library(frame: TracebackType) -> bool:
    """Whether compiled code raised it, or the Python code of a library."""
    code = frame.tb_frame.f_code
    raised = code.co_code[frame.tb_lasti] in _RAISES
    return not raised or bool(_LIBRARIES & set(Path(code.co_filename).parts))
