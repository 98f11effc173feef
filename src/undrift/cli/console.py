"""Where the command line writes: results to stdout, progress to stderr."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

_PIPE_WIDTH = 120
_SENTENCES = 20


def output() -> Console:
    """The console for results; in a pipe or a file it is wide, whatever the terminal is."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_PIPE_WIDTH)


def progress_console() -> Console:
    """The console for progress, beside the results and never among them."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def name_damaged(console: Console, sentences: Sequence[str], what: str) -> None:
    """Say which files were skipped and why, not more than a reader takes in."""
    for sentence in sentences[:_SENTENCES]:
        console.print(f"skipped: {sentence}", markup=False)
    if len(sentences) > _SENTENCES:
        console.print(f"skipped: {len(sentences) - _SENTENCES} more damaged {what}")
