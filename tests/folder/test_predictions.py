from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from undrift.datasets.columns import column_names, read_pieces
from undrift.errors import InputError
from undrift.folder.predictions import Predictions

RANKING = torch.tensor([[0.7, 0.2, 0.1], [0.25, 0.3, 0.45]], dtype=torch.float64)
NAMES = ["mule", 'said "fine", maybe', "takeover"]


def found(ids: list[object], *, probable: bool = True) -> Predictions:
    return Predictions.of(np.array(ids), RANKING, NAMES, probable=probable)


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
@pytest.mark.parametrize("ids", [["a", "007"], [12, 3]])
def test_a_file_says_what_was_predicted(tmp_path: Path, name: str, ids: list[object]) -> None:
    found(ids).write(tmp_path / name)
    columns = ["id", "class", "probability", "runner_up"]
    assert column_names(tmp_path / name) == columns
    (piece,) = read_pieces(tmp_path / name, columns)
    assert [str(i) for i in piece.columns["id"]] == [str(i) for i in ids]
    assert list(piece.columns["class"]) == ["mule", "takeover"]
    assert [float(p) for p in piece.columns["probability"]] == [0.7, 0.45]
    assert list(piece.columns["runner_up"]) == [NAMES[1], NAMES[1]]


def test_without_probabilities_the_column_is_empty(tmp_path: Path) -> None:
    found(["a", "b"], probable=False).write(tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text().splitlines()[1].startswith("a,mule,,")


def test_one_class_has_no_runner_up() -> None:
    alone = Predictions.of(np.array(["a"]), torch.ones(1, 1), ["fine"], probable=True)
    assert list(alone.rows()) == [("a", "fine", 1.0, "")]


def test_another_kind_of_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"written as \.csv or \.parquet, not as 'p\.xlsx'"):
        found(["a", "b"]).write(tmp_path / "p.xlsx")


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_every_class_has_its_probability(tmp_path: Path, name: str) -> None:
    made = found([12, 3])
    assert made.probabilities is not None
    assert made.names == NAMES
    np.testing.assert_array_equal(made.probabilities, RANKING.numpy())
    made.write(tmp_path / name, probabilities=True)
    more = [f"p_{each}" for each in NAMES]
    assert column_names(tmp_path / name) == ["id", "class", "probability", "runner_up", *more]
    (piece,) = read_pieces(tmp_path / name, more)
    for i, column in enumerate(more):
        assert [float(p) for p in piece.columns[column]] == RANKING[:, i].tolist()


def test_without_probabilities_there_is_no_table_of_them(tmp_path: Path) -> None:
    made = found(["a", "b"], probable=False)
    assert made.probabilities is None
    with pytest.raises(InputError, match=r"no probabilities.*propagation"):
        made.write(tmp_path / "p.csv", probabilities=True)
    assert not (tmp_path / "p.csv").exists()


def test_classes_that_differ_by_case_keep_their_columns(tmp_path: Path) -> None:
    made = Predictions.of(np.array(["a"]), RANKING[:1], ["fine", "Mule", "mule"], probable=True)
    made.write(tmp_path / "p.parquet", probabilities=True)
    assert len(column_names(tmp_path / "p.parquet")) == 4 + 3
