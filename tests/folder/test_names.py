from __future__ import annotations

import pytest

from undrift.errors import InputError
from undrift.folder.names import class_name, look_alikes, matched_columns, numbered


def test_columns_come_in_the_order_that_was_learned() -> None:
    assert matched_columns(["c", "a", "b"], ["a", "b", "c"], "f") == ("a", "b", "c")
    assert matched_columns(["c", "a"], None, "f") == ("c", "a")


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (
            ["a", "b"],
            r"nodes.csv lacks 1 of the 3 columns learned: 'c'; .*'c' with 7.5 in every row",
        ),
        (["a", "b", "c", "d"], r"has 1 column not learned: 'd'; .*--ignore d; .*new learner"),
        (["a", "b", "C"], r"lacks 1 of the 3 columns learned: 'c' .* rename 'C' to 'c'"),
    ],
)
def test_other_columns_are_one_sentence(there: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        matched_columns(there, ["a", "b", "c"], "nodes.csv", {"c": 7.5})


def test_a_long_list_of_columns_is_cut() -> None:
    with pytest.raises(InputError, match=r"'x0', 'x1', 'x2', 'x3' and 96 more") as caught:
        matched_columns(["a"], [f"x{i}" for i in range(100)], "nodes.csv")
    assert len(str(caught.value)) < 500


def test_an_id_is_never_used_twice() -> None:
    ids = numbered(["b", "a"], {}, [])
    assert ids == {"b": 0, "a": 1}
    assert numbered(["c"], {"b": 0}, past=[1]) == {"b": 0, "c": 2}
    assert numbered(["1"], {"b": 0}, past=[1]) == {"b": 0, "1": 2}


def test_numbers_keep_their_number_and_names_that_look_like_them_do_not() -> None:
    assert numbered(["7", "007", "x"], {}, []) == {"7": 7, "007": 8, "x": 9}


@pytest.mark.parametrize(("text", "name"), [(" a b ", "a b"), ("2.0", "2"), ("2.5", "2.5")])
def test_a_label_as_a_name(text: str, name: str) -> None:
    assert class_name(text) == name


def test_names_that_differ_in_case_or_spaces_are_pointed_at() -> None:
    known = ["account takeover", "mule"]
    (sentence,) = look_alikes(["Account  Takeover", "mule", "new"], known)
    assert "'Account  Takeover' is new and differs from 'account takeover'" in sentence
    assert "--alias 'Account  Takeover=account takeover'" in sentence


def test_a_name_that_is_known_is_not_new_whatever_it_looks_like() -> None:
    assert look_alikes(["mule", "Mule"], ["mule", "Mule"]) == []


@pytest.mark.parametrize("name", ["NaN", "null", "n/a"])
def test_a_class_that_means_no_label_is_pointed_at(name: str) -> None:
    (sentence,) = look_alikes([name, "mule"], ["mule"])
    assert f"class {name!r} is new; if it means that the label is not known" in sentence
    assert look_alikes([name], [name]) == []
