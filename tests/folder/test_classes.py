"""Names and numbers of classes and columns, and what is small."""

from __future__ import annotations

import pytest

from undrift.errors import InputError
from undrift.folder.batch import Batch
from undrift.folder.classes import (
    POOL,
    check_ways,
    class_name,
    few_rows,
    instead_of_small,
    left_small,
    look_alikes,
    numbered,
    replaced,
    told,
)
from undrift.folder.columns import matched_columns
from undrift.folder.record import Entry, Held, Record
from undrift.testing.graphs import tiny_graph

# columns ---------------------------------------------------------------------------------


def test_columns_come_in_the_order_that_was_learned() -> None:
    assert matched_columns(["c", "a", "b"], ["a", "b", "c"], "f") == ("a", "b", "c")
    assert matched_columns(["c", "a"], None, "f") == ("c", "a")


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (["a", "b"], r"nodes.csv lacks 1 of the 3 columns .*'c' with 7.5 in every row"),
        (["a", "b", "c", "d"], r"has 1 column not learned: 'd'; .*--ignore d; .*new learner"),
        (["a", "b", "c", "d", "e"], r"has 2 columns not learned: 'd', 'e'"),
        (["a", "b", "C"], r"lacks 1 of the 3 columns learned: 'c' .* rename 'C' to 'c'"),
    ],
)
def test_other_columns_are_one_sentence(there: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        matched_columns(there, ["a", "b", "c"], "nodes.csv", {"c": 7.5})


@pytest.mark.parametrize(("count", "more"), [(4, "'c3';"), (5, "'c3' and 1 more;")])
def test_a_long_list_of_columns_is_cut(count: int, more: str) -> None:
    with pytest.raises(InputError, match=more):
        matched_columns([], [f"c{i}" for i in range(count)], "nodes.csv")


# names -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        *[("3.0", "3"), ("-3.0", "-3"), ("3.", "3."), (".0", ".0"), ("3.10", "3.10"), ("3", "3")],
        *[
            ("a.0", "a.0"),
            ("3.0.0", "3.0.0"),
            ("1e3.0", "1e3.0"),
            (" 2.00 ", "2"),
            (" a b ", "a b"),
        ],
    ],
)
def test_a_label_as_a_name(text: str, name: str) -> None:
    assert class_name(text) == name


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
def test_the_ids_of_classes(
    names: list[str], known: dict[str, int], past: list[int], ids: dict[str, int]
) -> None:
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


# small classes ---------------------------------------------------------------------------


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
def test_small_is_less_than_the_least(
    way: str, least: int, known: dict[str, int], instead: dict[str, str]
) -> None:
    rows = {"a": 4, "b": 5, "c": 0, "d": 1}
    assert instead_of_small(rows, known, way, least, "x") == instead  # type: ignore[arg-type]
    with pytest.raises(InputError, match="brings class 'a' with 4 nodes, class 'd' with 1 node,"):
        instead_of_small(rows, {}, "refuse", 5, "x")


def test_what_was_done_with_small_classes_in_words() -> None:
    few = dict.fromkeys("abcdef", 1) | {"large": 9}

    def said(names: str, instead: str = "") -> str:
        return "".join(told(dict.fromkeys(names, instead), few, 3, "x"))

    assert "class 'd' with 1 node, 2 more such classes: fewer than 3" in said("abcdef")
    assert "more" not in said("abcd")
    assert said("a").endswith("so it is left out as if without a label")
    assert "so they are" in said("ab")
    assert said("a", POOL).endswith(f"so it is learned as {POOL!r}")
    assert said("") == ""
    with pytest.raises(InputError, match="no class of x has 3 training nodes"):
        told({"a": ""}, {"a": 1}, 3, "x")
    with pytest.raises(InputError, match="at least 1, not 0"):
        check_ways("refuse", 0)


def test_classes_that_forgetting_left_small() -> None:
    def held(step: int, **labels: int) -> Held:
        return Held(data=f"d{step}", step=step, time="2026-01-01", nodes=9, labels=labels)

    record = Record(
        entry=Entry(step=3, verb="observe", time="now"),
        classes={"a": 0, "b": 1, "c": 2},
        batches=(held(1, a=2, b=5), held(2, a=2), held(3, b=9)),
    )
    assert record.counts == {"a": 4, "b": 14, "c": 0}
    (sentence,) = left_small(record)
    assert sentence.startswith("class 'a' with 4 nodes left, fewer than 5")
    assert "the batches of step 1 and 2" in sentence
    assert left_small(record.changed(small_classes="allow")) == []
    assert left_small(record.changed(least_rows=4)) == []
    assert "the batch of step 1 " in left_small(record.changed(batches=(held(1, a=4),)))[0]


def test_names_in_the_place_of_others() -> None:
    batch = Batch.of(tiny_graph(nodes=12, classes=3))
    found = replaced(batch, {"1": "", "2": POOL})
    assert dict(found.class_names) == {0: "0", 2: POOL}
    assert set(found.counts) == {"0", POOL}
    assert found.labels.count("") == batch.labels.count("1")


@pytest.mark.parametrize(("rows", "few"), [(0, 0), (1, 1), (9, 1), (10, 0), (11, 0)])
def test_rows_and_columns_of_a_batch(rows: int, few: int) -> None:
    assert len(few_rows(rows, 10)) == few
