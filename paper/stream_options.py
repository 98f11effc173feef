"""`NAME@thin`: a stream thinned until its tasks are as skewed as the worst of Arxiv-CL.

`NAME@whole`: one whose every batch holds all tasks so far, for `joint` with `recipe=tuned`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from undrift.errors import InputError
from undrift.streams.benchmarks import StreamInfo, StreamOption

if TYPE_CHECKING:
    from undrift.streams.stream import TaskStream


def _check(info: StreamInfo) -> None:
    if info.dataset.increment < 2:
        raise InputError(
            f"stream {info.name!r} has one class per task, so no task of it can be skewed; thin "
            "one with two, as in photo-cl@thin"
        )


def _apply(stream: TaskStream, name: str) -> TaskStream:
    from paper.thin import thin  # here: it imports torch

    return thin(stream, name=name)


THIN = StreamOption(_check, _apply)
"""The option; the seed of the stream also draws which training nodes stay."""


def _whole(stream: TaskStream, name: str) -> TaskStream:
    from paper.tuned_joint import WholeStream  # here: it imports torch

    return WholeStream.of(stream, name)


WHOLE = StreamOption(lambda info: None, _whole)
"""The option; the graph and the split are those of the stream."""
