"""Names and numbers of classes and columns, and what is small."""

import pytest

from undrift.errors import InputError
from undrift.folder.classes import POOL, as_category, instead_of_small, look_alikes, numbered
from undrift.folder.columns import matched_columns


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (["a", "b"], r"nodes.csv lacks 1 of the 3 columns .*'c' with 7.5 in every row"),
        (
            ["a", "b", "c", "d"],
            r"has 1 column not learned: 'd'; .*ignore .--ignore d.; .*new learner",
        ),
        (["a", "b", "c", "d", "e"], r"has 2 columns not learned: 'd', 'e'"),
        (["a", "b", "C"], r"lacks 1 of the 3 columns learned: 'c' .* rename 'C' to 'c'"),
    ],
)
def test_other_columns_are_one_sentence(there: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        matched_columns(there, ["a", "b", "c"], "nodes.csv", {"c": 7.5})


LABELS = {"3.0": "3", "-3.0": "-3", " 2.00 ": "2", " a b ": "a b"}
LABELS |= {same: same for same in ("3", "3.", ".0", "3.10", "a.0", "3.0.0", "1e3.0")}


@pytest.mark.parametrize(("text", "name"), LABELS.items())
def test_a_label_as_a_name(text: str, name: str) -> None:
    assert as_category(text) == name


@pytest.mark.parametrize(
    ("names", "known", "past", "ids"),
    [
        (["b", "a"], {}, [], {"b": 0, "a": 1}),
        (["c"], {"b": 0}, [1], {"b": 0, "c": 2}),  # no id is used twice
        (["1"], {"b": 0}, [1], {"b": 0, "1": 2}),
        (["a"], {"b": 4}, [7], {"b": 4, "a": 8}),
        (["5", "0", "a"], {}, [], {"5": 5, "0": 0, "a": 6}),  # a number keeps its number
        (["7", "007", "x"], {}, [], {"7": 7, "007": 8, "x": 9}),
        (["9" * 15], {}, [], {"9" * 15: int("9" * 15)}),
        (["9" * 16], {}, [], {"9" * 16: 0}),
    ],
)
def test_the_ids_of_classes(names, known, past, ids) -> None:
    assert numbered(names, known, past) == ids


def test_names_that_may_be_no_class_of_their_own_are_pointed_at() -> None:
    (sentence,) = look_alikes(["Account  Takeover", "mule", "new"], ["account takeover", "mule"])
    assert "'Account  Takeover' is new and differs from 'account takeover'" in sentence
    assert "--alias 'Account  Takeover=account takeover'" in sentence
    assert len(look_alikes(["mule", "Mule", "MULE"], ["mule"])) == 2
    assert look_alikes(["mule", "Mule", "nan"], ["mule", "Mule", "nan"]) == []
    unknown = look_alikes(["NaN", "?", "n/a", "fine", "un known"], [])
    assert len(unknown) == 4
    assert "if it means that the label is not known" in unknown[0]


@pytest.mark.parametrize(
    ("way", "least", "known", "instead"),
    [
        ("context", 5, {}, {"a": "", "d": ""}),
        ("context", 5, {"a": 1}, {"d": ""}),
        ("context", 5, {"a": 0}, {"a": "", "d": ""}),
        ("context", 1, {}, {}),
        ("pool", 5, {}, {"a": POOL, "d": POOL}),  # five of them together
        ("pool", 6, {}, {"a": POOL, "b": POOL, "d": POOL}),
        ("pool", 5, {"a": 1}, {"d": ""}),
        ("pool", 5, {"a": 1, POOL: 4}, {"d": POOL}),
        ("pool", 5, {"a": 1, POOL: 3}, {"d": ""}),
        ("allow", 5, {}, {}),
    ],
)
def test_small_is_less_than_the_least(way, least, known, instead) -> None:
    rows = {"a": 4, "b": 5, "c": 0, "d": 1}
    assert instead_of_small(rows, known, way, least, "x") == instead  # type: ignore[arg-type]
    with pytest.raises(InputError, match="brings class 'a' with 4 nodes, class 'd' with 1 node,"):
        instead_of_small(rows, {}, "refuse", 5, "x")
