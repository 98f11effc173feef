from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from undrift.datasets.columns import as_class_ids, as_times, days
from undrift.errors import InputError


def test_names_are_numbered_in_sorted_order() -> None:
    ids, names = as_class_ids(["b", "10", "", "a", "b"], "labels")
    np.testing.assert_array_equal(ids, [2, 0, -1, 1, 2])
    assert names == {0: "10", 1: "a", 2: "b"}


def test_whole_numbers_keep_their_gaps() -> None:
    ids, names = as_class_ids(["30", "4.0", "", "-1", "4"], "labels")
    np.testing.assert_array_equal(ids, [30, 4, -1, -1, 4])
    assert names == {4: "4", 30: "30"}


def test_no_label_at_all_is_unlabelled() -> None:
    ids, names = as_class_ids(["", ""], "labels")
    np.testing.assert_array_equal(ids, [-1, -1])
    assert names == {}


@pytest.mark.parametrize("label", ["1.5", "-2", "nan", "inf", "1e30"])
def test_numbers_that_are_no_class_are_refused(label: str) -> None:
    with pytest.raises(InputError, match=f"column 'y' holds '{label}'; write classes as whole"):
        as_class_ids(["0", label, "1"], "column 'y'")


def test_numbers_stay_and_dates_become_days() -> None:
    np.testing.assert_array_equal(as_times(["2001", " 2002.5 "], "t"), [2001, 2002.5])
    np.testing.assert_array_equal(as_times([3, 4.5], "t"), [3, 4.5])
    np.testing.assert_array_equal(as_times(["1970-01-02", "1969-12-31"], "t"), [1, -1])
    np.testing.assert_array_equal(
        as_times([date(1970, 1, 2), datetime(1970, 1, 1, 6)], "t"), [1, 0.25]
    )


def test_a_time_zone_counts() -> None:
    east = timezone(timedelta(hours=6))
    assert days("1970-01-02T00:00:00Z") == 1
    assert days(datetime(1970, 1, 2, tzinfo=east)) == days("1970-01-02T00:00+06:00") == 0.75
    assert days(datetime(1970, 1, 2, tzinfo=UTC)) == days("1970-01-02")


@pytest.mark.parametrize(
    ("values", "what"),
    [
        (["2001", "soon"], "t must hold a number in every row, .* row 2 has 'soon'"),
        (["2001", ""], "row 2 has nothing"),
        ([2001.0, None], "row 2 has nothing"),
        (["2001", "nan"], "row 2 has 'nan'"),
        (["2001", "2001-01-01"], "row 2 has '2001-01-01'"),
        (["2001-01-01", "2001"], "a date like 2021-03-31 in every row, .* row 2 has '2001'"),
        (["2001-01-01", 5], "row 2 has 5"),
        (["", "2001"], "row 1 has nothing"),
    ],
)
def test_an_unknown_time_is_named(values: list[Any], what: str) -> None:
    with pytest.raises(InputError, match=what):
        as_times(values, "t")
