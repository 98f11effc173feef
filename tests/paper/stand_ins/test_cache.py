from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse as sp

from paper.stand_ins import cache as stand_in_cache
from paper.stand_ins.cache import cached_matrix

LABELS = np.arange(5)
MATRIX = sp.csr_matrix(np.array([[0, 1, 1], [0, 0, 0], [1, 0, 1]], dtype=np.int8))


@pytest.fixture
def make():
    """Counts how often the matrix was made."""
    return Mock(return_value=MATRIX)


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("undrift.datasets.folder._platform_cache", lambda: tmp_path)
    monkeypatch.setattr(stand_in_cache, "SMALLEST", 1)
    return tmp_path / "undrift" / "stand-ins"


def load(make, labels=LABELS, shape=(3, 3)):
    return cached_matrix("x-0", labels, shape, make)


def test_a_matrix_is_made_once_and_read_afterwards(folder, tmp_path, make):
    first, second = load(make), load(make)
    assert make.call_count == 1
    assert (first != second).nnz == 0
    assert (second.dtype, second.indices.dtype) == (np.int8, np.int32)
    (path,) = folder.iterdir()
    assert path.name.startswith("x-0-")
    assert not (tmp_path / "data").exists()  # nothing is written among the user's files


@pytest.mark.parametrize("columns", [[2, 1, 0, 2], [1, 2, 0, 9]])
def test_a_damaged_matrix_is_made_again_and_replaced(folder, make, columns):
    load(Mock(return_value=MATRIX))
    (path,) = folder.iterdir()
    with np.load(path) as archive:
        np.savez(path, **{**archive, "indices": np.array(columns, dtype=np.int32)})
    for _ in range(2):
        assert (load(make) != MATRIX).nnz == 0
        assert make.call_count == 1


def test_other_labels_another_shape_or_version_are_made_anew(monkeypatch, make):
    load(make)
    load(make, labels=LABELS + 1)
    assert make.call_count == 2
    wide = Mock(return_value=sp.csr_matrix(np.ones((3, 4), dtype=np.int8)))
    assert load(wide, shape=(3, 4)).shape == (3, 4)
    monkeypatch.setattr(stand_in_cache, "VERSION", 99)
    load(make)
    assert make.call_count == 3
