"""The history: completed once, cut where it was torn, refused where it cannot have led here."""

from hashlib import sha256

import pytest

from undrift.errors import InputError
from undrift.folder.record import HISTORY, Entry, Line, complete, last_hash, now, read_history


def entry(step: int, **more: object) -> Entry:
    return Entry.model_validate({"step": step, "verb": "observe", "time": "now", **more})


@pytest.fixture
def second(tmp_path) -> Entry:
    """The second of two steps that are written down."""
    assert complete(tmp_path, entry(0), "s0") == "history.jsonl: the line of step 0"
    made = entry(1, parent="s0", previous=last_hash(tmp_path))
    assert complete(tmp_path, made, "s1") == "history.jsonl: the line of step 1"
    return made


def test_a_history_is_completed_once(tmp_path, second: Entry) -> None:
    before = (tmp_path / HISTORY).read_bytes()
    for dry in (False, True):
        assert complete(tmp_path, second, "s1", dry=dry) is None
    assert (tmp_path / HISTORY).read_bytes() == before
    lines = read_history(tmp_path)
    assert [line.result for line in lines] == ["s0", "s1"]
    assert lines[1].previous == sha256(before.split(b"\n")[0]).hexdigest()
    assert now().endswith("+00:00")


@pytest.mark.parametrize(
    ("wrong", "result", "why"),
    [
        (entry(0), "s9", "ends with step 1"),  # an earlier step
        (entry(1, parent="s0"), "s9", "ends with step 1"),  # the same step to another state
        (entry(2, parent="s9"), "s2", "ends with step 1"),  # the next from another state
        (entry(3, parent="s1"), "s3", "ends with step 1"),  # one was left out
        (entry(0), "s0", "HEAD names the state of step 0, .* goes to step 1"),
        (entry(1, parent="s0", nodes=5), "s1", "step 1 is not what the state says"),
    ],
)
def test_a_history_that_cannot_have_led_here(tmp_path, second, wrong, result, why) -> None:
    before = (tmp_path / HISTORY).read_bytes()
    with pytest.raises(InputError, match=why):
        complete(tmp_path, wrong, result)
    assert (tmp_path / HISTORY).read_bytes() == before
    with pytest.raises(InputError, match="is empty"):
        complete(tmp_path / "elsewhere", entry(1, parent="s0"), "s1")


def test_a_chain_that_is_broken(tmp_path, second: Entry) -> None:
    path = tmp_path / HISTORY
    one, two = path.read_bytes().splitlines(keepends=True)
    other = entry(1, parent="s5", previous=sha256(one[:-1]).hexdigest())
    said = Line(**other.model_dump(), result="s1").model_dump_json().encode() + b"\n"
    for data, why in (
        (one + two.replace(b'"step":1', b'"step":2'), "line 2 does not follow"),
        (one.replace(b"now", b"nov") + two, "line 2 does not follow"),
        (one.replace(b'"result":"s0"', b'"result":"s7"') + two, "line 2 does not follow"),
        (two, "line 1 does not follow"),
        (one + b"nonsense\n", "line 2 cannot be read"),
        (one + said, "step 1 does not start where the last one ended"),
    ):
        path.write_bytes(data)
        with pytest.raises(InputError, match=why):
            read_history(tmp_path)
