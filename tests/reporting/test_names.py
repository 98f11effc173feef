"""The words for streams and rows."""

import pytest

from undrift.reporting.names import row_label, stream_title
from undrift.streams.benchmarks import STREAMS


@pytest.mark.parametrize("stream", STREAMS)
def test_stand_ins_say_so_once(stream: str) -> None:
    title = stream_title(stream, stand_in=STREAMS[stream].stand_in)
    assert title.lower().count("stand-in") == STREAMS[stream].stand_in


@pytest.mark.parametrize(
    ("row", "method", "label"),
    [
        ("ham", "adr", "ADR (HAM)"),
        ("fisher", "adr", "ADR with Fisher merging"),
        ("none", "ewc", "none"),  # it merges nothing
        ("mine", "mine", "mine"),
        ("mine x=1", "mine", "mine x=1"),
        ("none", "mine", "none"),
        ("none", "no.module:Method", "none"),  # and nothing is imported
    ],
)
def test_a_row_is_named_by_its_method_and_changes(row: str, method: str, label: str) -> None:
    assert row_label(row, method) == label
