from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from undrift.reporting.tables.compare import holm, paired_t_test

NUMBERS = st.lists(st.floats(-50, 50).map(lambda x: round(x, 4)), min_size=2, max_size=8)
P_VALUES = st.dictionaries(st.text(max_size=3), st.floats(0, 1), max_size=8)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(NUMBERS)
def test_it_is_the_paired_t_test_of_scipy(differences: list[float]) -> None:
    ours = paired_t_test(differences)
    if len(set(differences)) == 1:
        assert ours == (1.0 if differences[0] == 0 else None)
        return
    theirs = stats.ttest_rel(differences, [0.0] * len(differences)).pvalue
    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-15)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(NUMBERS)
def test_it_does_not_depend_on_sign_and_is_a_probability(differences: list[float]) -> None:
    p = paired_t_test(differences)
    assert p == paired_t_test([-value for value in differences])
    assert p is None or (math.isfinite(p) and 0 <= p <= 1)


def test_without_two_seeds_or_without_deviation_there_is_no_test() -> None:
    assert paired_t_test([]) is None
    assert paired_t_test([3.0]) is None
    assert paired_t_test([0.1 + 0.2, 0.3, 0.3]) is None  # the same but for rounding
    assert paired_t_test([1e-12, -1e-12]) == 1.0  # nothing but rounding


def test_a_sign_flip_test_could_not_get_there_and_this_one_does() -> None:
    p = paired_t_test([3.0, 3.2, 2.9, 3.1, 3.3])
    assert p is not None
    assert p < 0.001 < 2 / 2**5


@settings(deadline=None, max_examples=60, derandomize=True)
@given(P_VALUES)
def test_holm_raises_keeps_order_and_stays_a_probability(values: dict[str, float]) -> None:
    corrected = holm(values)
    assert corrected.keys() == values.keys()
    for a, p in values.items():
        assert p <= corrected[a] <= 1
        assert corrected[a] <= min(1.0, len(values) * p)  # never more than Bonferroni
        for b, other in values.items():
            assert p > other or corrected[a] <= corrected[b]


def test_holm_steps_down() -> None:
    assert holm({"x": 0.02, "y": 0.001, "z": 0.5}) == {"x": 0.04, "y": 0.003, "z": 0.5}


def test_importing_the_tables_imports_neither_scipy_nor_torch() -> None:
    code = (
        "import sys, undrift.reporting.tables.compare, undrift.reporting.tables.formats, "
        "undrift.reporting.tables.loose_runs; assert not {'torch', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
