"""Columns in units of their spread."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift.errors import InputError
from undrift.graphs import Scaling
from undrift.graphs.scaling import FARTHEST, check_given, odd_columns, sample, scaling_given
from undrift.sparse import Csr


def one(column: list[float]) -> tuple[float, float]:
    found = Scaling.of(torch.tensor(column, dtype=torch.float32).unsqueeze(1))
    return found.centre[0], found.spread[0]


@pytest.mark.parametrize(
    ("column", "centre", "spread"),
    [
        ([0, 1, 1, 1], 0, 1),  # an indicator stays, though most rows have it
        ([0, 0, 0, 0], 0, 1),
        ([0, 0, 0, 250, 750], 0, 500),  # mostly zero: divided, not moved
        ([0, 0, 3, 1], 0, 2),  # half zero counts as mostly
        ([7, 7, 7, 9, 4], 7, 2.5),
        ([5, 5, 5], 5, 5),  # a constant: what differs later is a share of its size
        ([0.2, 0.2], pytest.approx(0.2), 1),
        ([1, 2, 3, 4, 5, 6, 1e9], 4, pytest.approx(3 / 1.349)),  # a few huge cells do not count
    ],
)
def test_columns_that_are_mostly_one_number(column, centre, spread) -> None:
    assert one(column) == (centre, spread)


def test_sparse_features_stay_sparse() -> None:
    words = Csr.from_scipy(sp.csr_matrix(np.array([[0, 3.0], [2, 0], [4, 0], [6, 1]])))
    scaling = Scaling.of(words)
    assert scaling == Scaling((0.0, 0.0), (4.0, 2.0))
    scaled = scaling.apply(words)
    assert isinstance(scaled, Csr)
    assert scaled.to_dense().tolist() == [[0, 1.5], [0.5, 0], [1, 0], [1.5, 0.5]]
    with pytest.raises(InputError, match="centre 0"):
        Scaling((1.0, 0.0), (1.0, 1.0)).apply(words)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=30),
    st.sampled_from([0.01, 100.0, 86_400.0]),
)
def test_the_unit_of_a_column_does_not_matter(column: list[float], unit: float) -> None:
    """Unless the rule looks at the numbers themselves: an indicator, or one number alone."""
    numbers = torch.tensor(column, dtype=torch.float64).unsqueeze(1)
    if {0.0, 1.0} >= set(column) or {0.0, 1.0} >= {unit * c for c in column}:
        return
    if len(set(column)) == 1:
        return
    first = Scaling.of(numbers).apply(numbers)
    second = Scaling.of(unit * numbers).apply(unit * numbers)
    assert torch.allclose(first, second, atol=1e-6)
    assert float(first.abs().max()) <= FARTHEST


def test_many_rows_are_sampled_evenly() -> None:
    assert sample(5).tolist() == [0, 1, 2, 3, 4]
    drawn = sample(1_000_000)
    assert (int(drawn[0]), int(drawn[-1])) == (0, 999_999)
    assert drawn.numel() == drawn.unique().numel() == 20_000


def test_ranges_and_centres_by_name() -> None:
    told = {"age": {"low": 0, "high": 80}, "price": {"centre": 900, "spread": 300}}
    assert scaling_given(told, ["x", "price", "age"], 3) == Scaling((0, 900, 40), (1, 300, 40))


def test_a_column_of_another_size_is_found() -> None:
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(200, 6))
    for column in (np.round(rng.lognormal(8, 1, 200)), 1.7e9 + rng.uniform(0, 2.6e6, 200)):
        features = torch.from_numpy(np.column_stack([plain, column])).float()
        assert list(odd_columns(features)) == [6]
    assert odd_columns(torch.from_numpy(plain).float()) == {}
    assert odd_columns(torch.from_numpy(plain[:, :1]).float()) == {}


@pytest.mark.parametrize(
    ("make", "told"),
    [
        *((partial(check_given, {"price": wrong}), r"'price'.*low.*spread")
          for wrong in (3, [0, 1], {"low": 0}, {"low": 5, "high": 5}, {"low": 0, "high": "9"},
                        {"centre": 1, "spread": 0})),
        (partial(scaling_given, {"prize": {"low": 0, "high": 1}}, ["price"], 1), "'prize'.*price"),
        (partial(Scaling((0.0,), (1.0,)).apply, torch.ones(2, 3)), "3 columns and the scaling 1"),
        (partial(Scaling, (0.0,), (0.0,)), "spread above 0"),
    ],
)  # fmt: skip
def test_what_is_no_scaling_is_refused(make: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        make()
