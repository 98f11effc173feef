"""Arrivals as text: what is read, what is written again, and what is refused in one sentence."""

import pytest

from undrift.errors import InputError
from undrift.streams.arrival import parse_arrival


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("blurry:disjoint=0.5,blurry=0.1", "blurry"),
        ("blurry:blurry=0.30, disjoint=0.2", "blurry:disjoint=0.2,blurry=0.3"),
        ("online:batch=64", "online"),
        ("online:order=given,batch=8", "online:batch=8,order=given"),
        ("online:context=seen", "online:context=seen"),
        ("online:context=none", "online"),
        ("domain:batches=5", "domain:batches=5"),
        ("time:periods=12", "time:periods=12"),
    ],
)
def test_the_same_arrival_is_always_written_the_same(text: str, written: str) -> None:
    assert str(parse_arrival(text)) == written
    assert parse_arrival(written) == parse_arrival(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("blury", "unknown arrival 'blury'.*blurry"),
        ("", "unknown arrival ''"),
        ("blurry:disjont=1", "unknown option of arrival 'blurry' 'disjont'.*disjoint"),
        ("blurry:disjoint=1.5", "disjoint of arrival .* must be a share from 0 to 1, not '1.5'"),
        ("blurry:blurry=nan", "must be a share"),
        ("blurry:0.5", "needs name=value after the colon"),
        ("blurry:", "needs name=value after the colon"),
        ("online:batch=0", "batch of arrival .* must be a whole number of at least 1, not '0'"),
        ("online:order=label", "must be random or given, not 'label'"),
        ("classes:a=1", "takes no option; leave 'a=1' out"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why) as found:
        parse_arrival(text)
    assert "\n" not in str(found.value)
