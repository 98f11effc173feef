from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from undrift.errors import InputError
from undrift.evaluation.matrix import AccuracyMatrix, class_accuracy, node_accuracy

ROWS = [[90.0], [80.0, 70.0], [60.0, 75.0, 96.0]]


def test_metrics_by_hand() -> None:
    m = AccuracyMatrix(ROWS)
    assert m.a_t == pytest.approx((90.0, 75.0, 77.0))
    assert m.a_avg == pytest.approx((90.0 + 75.0 + 77.0) / 3)  # eq. 12
    assert m.a_f == pytest.approx((60.0 + 75.0 + 96.0) / 3)  # eq. 12
    assert m.a_l == pytest.approx((90.0 + 70.0 + 96.0) / 3)  # eq. 13
    assert m.forgetting == pytest.approx(((90.0 - 60.0) + (70.0 - 75.0)) / 2)


def test_a_run_that_is_still_going_has_the_metrics_of_its_rows() -> None:
    m = AccuracyMatrix(ROWS[:2])
    assert len(m) == 2
    assert (m.a_avg, m.a_f, m.a_l, m.forgetting) == pytest.approx((82.5, 75.0, 80.0, 10.0))


def test_one_task_cannot_be_forgotten() -> None:
    m = AccuracyMatrix([[42.0]])
    assert (m.a_avg, m.a_f, m.a_l, m.forgetting) == (42.0, 42.0, 42.0, 0.0)


def test_then_adds_a_row_and_leaves_the_old_matrix() -> None:
    before = AccuracyMatrix(ROWS[:2])
    assert before.then(ROWS[2]) == AccuracyMatrix(ROWS)
    assert len(before) == 2


def test_a_matrix_cannot_be_changed_through_the_list_it_was_made_of() -> None:
    rows = [[90.0]]
    m = AccuracyMatrix(rows)
    rows[0][0] = 0.0
    assert m.rows == ((90.0,),)


@pytest.mark.parametrize("rows", [[[1.0, 2.0]], [[1.0], [1.0]], [[]]])
def test_a_matrix_is_triangular(rows: list[list[float]]) -> None:
    with pytest.raises(InputError, match="one per task seen"):
        AccuracyMatrix(rows)


@pytest.mark.parametrize("value", [-0.1, 100.1, float("nan")])
def test_accuracies_are_percent(value: float) -> None:
    with pytest.raises(InputError, match="0 to 100"):
        AccuracyMatrix([[value]])


@pytest.mark.parametrize("name", ["a_avg", "a_f", "a_l", "forgetting"])
def test_an_empty_matrix_has_no_metrics(name: str) -> None:
    assert AccuracyMatrix().a_t == ()
    with pytest.raises(InputError, match="grade a task first"):
        getattr(AccuracyMatrix(), name)


def test_class_accuracy_weighs_classes_and_node_accuracy_nodes() -> None:
    truth = torch.tensor([3, 3, 3, 3, 7, 7])
    predicted = torch.tensor([3, 3, 3, 3, 7, 3])
    assert class_accuracy(predicted, truth, [3, 7]) == pytest.approx((100 + 50) / 2)
    assert node_accuracy(predicted, truth) == pytest.approx(100 * 5 / 6)


def test_a_class_without_nodes_is_left_out() -> None:
    truth = torch.tensor([0, 0])
    assert class_accuracy(torch.tensor([0, 1]), truth, [0, 1]) == 50.0


def test_without_nodes_accuracy_is_undefined() -> None:
    none = torch.tensor([], dtype=torch.int64)
    assert class_accuracy(none, none, [0]) != class_accuracy(none, none, [0])
    assert node_accuracy(none, none) != node_accuracy(none, none)


def test_predictions_need_the_shape_of_the_truth() -> None:
    for accuracy in (lambda p, t: class_accuracy(p, t, [0]), node_accuracy):
        with pytest.raises(InputError, match="predict one class per node"):
            accuracy(torch.zeros(2), torch.zeros(3))


def test_the_matrix_does_not_import_torch() -> None:
    code = "import sys, undrift.evaluation.matrix; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
