from __future__ import annotations

import numpy as np
import pytest

from undrift.datasets.class_names import as_class_ids
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
