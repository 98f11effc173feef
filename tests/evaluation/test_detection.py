"""AUROC, average precision, FPR95 and OSCR against their definitions, ties among them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.references import slow_detection, slow_oscr
from undrift.errors import InputError
from undrift.evaluation.detection import aupr, auroc, fpr95, oscr

values = st.lists(st.integers(0, 6).map(float), min_size=1, max_size=25)  # few values: many ties


@given(values, values, st.randoms(use_true_random=False))
def test_metrics_equal_their_slow_twins(known, unknown, random):
    k, u = torch.tensor(known), torch.tensor(unknown)
    slow = slow_detection(known, unknown)
    assert auroc(k, u) == pytest.approx(slow["auroc"], rel=1e-9)
    assert aupr(k, u) == pytest.approx(slow["aupr"], rel=1e-9)
    assert fpr95(k, u) == pytest.approx(slow["fpr95"], rel=1e-9)
    right = [random.random() < 0.7 for _ in known]
    assert oscr(k, u, torch.tensor(right)) == pytest.approx(
        slow_oscr(known, unknown, right), rel=1e-9, abs=1e-9
    )


@given(values, values)
def test_a_growing_function_of_strangeness_changes_nothing_and_its_negative_turns_auroc(k, u):
    known, unknown = torch.tensor(k), torch.tensor(u)
    for metric in (auroc, aupr, fpr95):
        assert metric(known.exp(), unknown.exp()) == pytest.approx(metric(known, unknown))
    assert auroc(-known, -unknown) == pytest.approx(100 - auroc(known, unknown))


def test_no_node_or_no_number_is_refused():
    with pytest.raises(InputError, match="not 0 and 1"):
        auroc(torch.tensor([]), torch.tensor([1.0]))
    with pytest.raises(InputError, match="not a number"):
        aupr(torch.tensor([1.0]), torch.tensor([float("nan")]))
