import pytest

from paper.words import Words, read_words
from undrift.errors import InputError

STREAMS, ROWS = ["cs-cl", "photo-cl"], ["adr", "cat"]


def test_both_files_are_read(tmp_path) -> None:
    (tmp_path / "about.toml").write_text('how = " On a machine. "\n[streams]\ncs-cl = "A note."\n')
    (tmp_path / "reasons.toml").write_text('[photo-cl]\ncat = "Because."\n')
    found = read_words(tmp_path, STREAMS, ROWS)
    assert found == Words("On a machine.", {"cs-cl": "A note."}, {("photo-cl", "cat"): "Because."})


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("about.toml", 'hw = "x"', "unknown key 'hw' .did you mean 'how'"),
        ("about.toml", '[streams]\ncs = "x"', "unknown stream 'cs'"),
        ("about.toml", "how = 3", "3 is not a sentence"),
        ("about.toml", "how = ", "cannot be read as TOML"),
        ("reasons.toml", '[cs]\nadr = "x"', "unknown stream 'cs' .did you mean 'cs-cl'"),
        ("reasons.toml", '[cs-cl]\ncta = "x"', "unknown row 'cta'"),
        ("reasons.toml", 'cs-cl = "x"', "sentences stand in tables"),
        ("reasons.toml", "[cs-cl]\nadr = 1", "1 is not a sentence"),
    ],
)
def test_a_slip_of_the_pen_is_named(tmp_path, file: str, text: str, why: str) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises(InputError, match=why) as caught:
        read_words(tmp_path, STREAMS, ROWS)
    assert str(tmp_path / file) in str(caught.value)
