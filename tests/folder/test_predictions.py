from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from undrift.datasets.columns import column_names, read_pieces
from undrift.errors import InputError
from undrift.folder.predictions import Predictions

RANKING = torch.tensor([[0.7, 0.2, 0.1], [0.25, 0.3, 0.45]], dtype=torch.float64)
NAMES = ["mule", 'said "fine", maybe', "takeover"]


def found(ids: list[object], *, probable: bool = True, classes: int = 3) -> Predictions:
    return Predictions.of(np.array(ids), RANKING[:, :classes], NAMES[:classes], probable=probable)


def rows(made: Predictions) -> list[tuple[object, ...]]:
    return list(zip(*made.to_frame().values(), strict=True))


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("name", ["p.CSV", "p.parquet"])
@pytest.mark.parametrize("ids", [["a", "007"], [12, 3]])
def test_a_file_says_what_was_predicted(tmp_path, name, ids, every) -> None:
    path = tmp_path / "new" / name
    found(ids).write(path, probabilities=every)
    more = [f"p_{each}" for each in NAMES] if every else []
    columns = ["id", "class", "probability", "runner_up", *more]
    assert column_names(path) == columns
    (piece,) = read_pieces(path, columns)
    assert [str(i) for i in piece.columns["id"]] == [str(i) for i in ids]
    assert list(piece.columns["class"]) == ["mule", "takeover"]
    assert [float(p) for p in piece.columns["probability"]] == [0.7, 0.45]
    assert list(piece.columns["runner_up"]) == [NAMES[1], NAMES[1]]
    for i, column in enumerate(more):
        assert [float(p) for p in piece.columns[column]] == RANKING[:, i].tolist()


def test_predictions_are_compared_node_by_node() -> None:
    made, labels = found([4, 9, 7][:2]), ["mule", "takeover"]
    for right in (labels, np.array(labels), found([1, 2])):
        assert (made == right).tolist() == (right == made).tolist() == [True, True]
    numbers = replace(made, classes=["0", "3"])
    for y in ([0, 1], np.array([0, 1]), torch.tensor([0.0, 1.0])):
        assert (numbers == y).tolist() == (y == numbers).tolist() == [True, False]
        assert (numbers != y).tolist() == [False, True]
    assert (made == "mule").tolist() == [True, False]
    assert np.asarray(made).tolist() == labels
    assert (len(made), made[1]["class"], made[:1]) == (2, "takeover", [made[0]])
    table = pytest.importorskip("pandas").DataFrame(made)
    assert list(table.columns) == ["id", "class", "probability", "runner_up"]
    for wrong in (["mule"], None, 3):
        with pytest.raises(InputError, match="2 predictions are compared with"):
            assert made == wrong


def test_one_class_has_no_runner_up_and_two_have_the_other() -> None:
    one = found([4, 9], probable=False, classes=1)
    assert rows(one) == [(4, "mule", None, ""), (9, "mule", None, "")]
    assert rows(found([4, 9], classes=2))[1] == (9, NAMES[1], 0.3, "mule")


def test_without_probabilities_the_column_is_empty_and_there_is_no_table(tmp_path) -> None:
    made = found(["a", "b"], probable=False)
    assert made.probabilities is None
    with pytest.raises(InputError, match=r"no probabilities.*propagation"):
        made.write(tmp_path / "p.csv", probabilities=True)
    assert not (tmp_path / "p.csv").exists()
    made.write(tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text().splitlines()[1].startswith("a,mule,,")
    with pytest.raises(InputError, match=r"written as \.csv or \.parquet, not as 'p\.xlsx'"):
        made.write(tmp_path / "p.xlsx")


def test_classes_that_differ_by_case_keep_their_columns(tmp_path) -> None:
    made = Predictions.of(np.array(["a"]), RANKING[:1], ["fine", "Mule", "mule"], probable=True)
    assert repr(made) == "Predictions(1 node, 3 classes)"  # short, of a million nodes too
    made.write(tmp_path / "p.parquet", probabilities=True)
    assert len(column_names(tmp_path / "p.parquet")) == 4 + 3


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_an_unknown_node_has_the_word_and_the_class_it_would_have(tmp_path, name) -> None:
    novelty = torch.tensor([0.2, 0.96], dtype=torch.float64)
    how: Any = {"probable": True, "novelty": novelty, "unknown": 0.05}
    made = Predictions.of(np.array(["a", "b"]), RANKING, NAMES, **how)
    assert rows(made) == [
        ("a", "mule", 0.7, NAMES[1], 0.2),
        ("b", "unknown", None, "takeover", 0.96),
    ]
    replace(made, groups=["", "group 1"]).write(tmp_path / name)
    columns = ["id", "class", "probability", "runner_up", "novelty", "group"]
    assert column_names(tmp_path / name) == columns
    (piece,) = read_pieces(tmp_path / name, ["novelty", "group"])
    assert [float(x) for x in piece.columns["novelty"]] == [0.2, 0.96]
    assert [str(x or "") for x in piece.columns["group"]] == ["", "group 1"]
