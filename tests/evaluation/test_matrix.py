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
    assert AccuracyMatrix([[42.0]]).forgetting == 0.0  # one task cannot be forgotten


def test_a_matrix_cannot_be_changed_through_the_list_it_was_made_of() -> None:
    rows = [[90.0]]
    m = AccuracyMatrix(rows)
    rows[0][0] = 0.0
    assert m.rows == ((90.0,),)


@pytest.mark.parametrize(
    ("rows", "shares", "why"),
    [
        *((rows, None, "one per task seen") for rows in ([[1.0, 2.0]], [[1.0], [1.0]], [[]])),
        *(([[wrong]], None, "0 to 100") for wrong in (-0.1, 100.1, float("nan"))),
        ([[1.0, 2.0], [1.0]], (0.5, 0.5), "rows that do not get shorter"),
        ([[1.0]], (), "a share for each"),
        ([[]], (1.0,), "rows that do not get shorter"),
        ([[101.0]], (1.0,), "0 to 100"),
    ],
)
def test_a_matrix_is_checked(rows, shares, why) -> None:
    """One of tasks is triangular, one of classes has shares."""
    with pytest.raises(InputError, match=why):
        AccuracyMatrix(rows, "tasks" if shares is None else "classes", shares=shares or ())


def test_weights_are_for_every_part() -> None:
    with pytest.raises(InputError, match="2 parts needs a weight for each, not 1"):
        AccuracyMatrix([[1.0, 2.0]], "classes", (1,), (1.0,))
    assert AccuracyMatrix([[0.0, 100.0]], "classes", (1, 3), (1.0,)).a_t == (75.0,)


def test_a_class_that_came_last_has_nothing_to_forget() -> None:
    matrix = AccuracyMatrix([[90.0], [60.0], [70.0, 50.0]], "classes", shares=(0.2, 0.3, 0.5))
    assert matrix.class_forgetting == 20.0
    assert AccuracyMatrix([[90.0, 10.0]], "classes", shares=(1.0,)).class_forgetting == 0.0


def test_an_empty_matrix_has_no_metrics() -> None:
    assert AccuracyMatrix().a_t == ()
    with pytest.raises(InputError, match="grade a task first"):
        _ = AccuracyMatrix().a_f


def test_class_accuracy_weighs_classes_and_node_accuracy_nodes() -> None:
    truth = torch.tensor([3, 3, 3, 3, 7, 7])
    predicted = torch.tensor([3, 3, 3, 3, 7, 3])
    assert class_accuracy(predicted, truth, [3, 7]) == pytest.approx((100 + 50) / 2)
    assert node_accuracy(predicted, truth) == pytest.approx(100 * 5 / 6)


def test_predictions_need_the_shape_of_the_truth() -> None:
    for accuracy in (lambda p, t: class_accuracy(p, t, [0]), node_accuracy):
        with pytest.raises(InputError, match="predict one class per node"):
            accuracy(torch.zeros(2), torch.zeros(3))
