from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from undrift.datasets.readers import read_pyg
from undrift.errors import InputError

EDGES = torch.tensor([[0, 1], [1, 2]])


def tensors(**more: Any) -> dict[str, Any]:
    return {"x": torch.eye(3), "edge_index": EDGES, "y": torch.tensor([1, 0, -1]), **more}


def test_a_dict_of_tensors_is_a_graph(tmp_path: Path) -> None:
    torch.save(tensors(), tmp_path / "g.pt")
    graph = read_pyg(tmp_path / "g.pt")
    assert graph.num_nodes == 3
    assert graph.num_edges == 2
    assert graph.labelled().tolist() == [1, 0, -1]


def test_a_pyg_data_is_a_graph(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own import is not free of warnings
        data = pytest.importorskip("torch_geometric.data", reason="needs PyG")
    torch.save(data.Data(**tensors()), tmp_path / "g.pt")
    assert read_pyg(tmp_path / "g.pt").labelled().tolist() == [1, 0, -1]


class Trap:
    """What an attacker would pickle: a call."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("sprung",)


def test_nothing_in_a_file_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(tensors(y=Trap()), "g.pt")
    with pytest.raises(InputError, match=r"g.pt cannot be read as tensors alone.*to_dict"):
        read_pyg("g.pt")
    assert not Path("sprung").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([1, 2], "holds a list, not one graph"),
        ({"x": torch.eye(2)}, "has no edges `edge_index`"),
        ({"x": torch.eye(2), "edge_index": [[0], [7]]}, "an edge names node 7"),
    ],
)
def test_a_file_without_a_graph_says_what_it_holds(
    tmp_path: Path, content: Any, words: str
) -> None:
    torch.save(content, tmp_path / "g.pt")
    with pytest.raises(InputError, match=f"g.pt.*{words}"):
        read_pyg(tmp_path / "g.pt")


def test_a_missing_or_foreign_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        read_pyg(tmp_path / "g.pt")
    (tmp_path / "g.pt").write_text("a letter")
    with pytest.raises(InputError, match="cannot be read as tensors alone"):
        read_pyg(tmp_path / "g.pt")
