"""A graph in a file that `torch.save` wrote: a PyG `Data`, or a dict of its tensors."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from pickle import UnpicklingError  # the error alone: nothing is unpickled
from types import SimpleNamespace
from typing import Any
from zipfile import BadZipFile, is_zipfile

import torch

from undrift.checks import check_exists
from undrift.datasets.archives import check_zip
from undrift.datasets.npz import naming
from undrift.errors import InputError
from undrift.graphs import Graph

SUFFIXES = (".pt", ".pth")
_NAMES = ("x", "edge_index", "y", "edge_weight", "train_mask", "val_mask", "test_mask")


def read_pyg(path: str | Path) -> Graph:
    """The graph that `torch.save(data, path)` or `torch.save(data.to_dict(), path)` wrote.

    Read as tensors and plain values only (`weights_only=True`), so nothing in the file can be
    executed; a `Data` needs the extra `undrift[pyg]`, a dict of tensors does not.
    """
    path = Path(path)
    check_exists(path)
    try:
        zipped = is_zipfile(path)
    except BadZipFile:  # one that says it goes on on another disk
        zipped = True
    if zipped:  # torch does not compare the checksums that it writes
        check_zip(path)
    try:
        found = _tensors(path)
    except Exception as error:  # whatever the file makes torch's reader raise
        what = f"{path} cannot be read as tensors alone, and nothing else is unpickled"
        way = "where you trust it, write it again with torch.save(data.to_dict(), path)"
        raise InputError(f"{what}; {way}") from error
    if isinstance(found, dict):
        found = SimpleNamespace(**{name: found.get(name) for name in _NAMES})
    if any(getattr(getattr(found, name, None), "is_meta", False) for name in _NAMES):
        way = "save a graph whose tensors have data"
        raise InputError(f"{path} holds shapes without numbers; {way}")
    if not (hasattr(found, "x") and hasattr(found, "edge_index")):
        what = f"{path} holds a {type(found).__name__}, not one graph with x and edge_index"
        raise InputError(f"{what}; save the Data of one graph")
    with naming(path):
        return Graph.from_pyg(found)


def _tensors(path: Path) -> Any:
    """What the file holds; `weights_only` refuses everything that is not data."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError:  # a Data, whose classes torch knows once PyG is there
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = import_module("torch_geometric.data.data")
            storage = import_module("torch_geometric.data.storage")
        # plain holders: what a pickle may do with them is to fill their fields
        holders = [data.Data, data.DataEdgeAttr, data.DataTensorAttr, storage.GlobalStorage]
        torch.serialization.add_safe_globals(holders)
        return torch.load(path, map_location="cpu", weights_only=True)
