from __future__ import annotations

import pytest

from undrift.reporting.names import row_label, stream_title
from undrift.streams.benchmarks import STREAMS


@pytest.mark.parametrize("stream", STREAMS)
def test_stand_ins_say_so_once(stream: str) -> None:
    title = stream_title(stream, stand_in=STREAMS[stream].stand_in)
    assert title.lower().count("stand-in") == STREAMS[stream].stand_in


def test_a_real_name_on_imitated_data_is_marked() -> None:
    assert stream_title("cs-cl", stand_in=True) == "CS-CL (stand-in)"


def test_an_option_stays_in_the_title() -> None:
    assert stream_title("arxiv-cl@directed") == "Arxiv-CL@directed"


def test_rows_of_methods_that_are_not_registered_keep_their_name() -> None:
    assert row_label("mine", "mine") == "mine"
    assert row_label("mine x=1", "mine") == "mine x=1"
    assert row_label("none", "mine") == "none"
