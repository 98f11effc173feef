"""Streams whose columns are in natural units."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.scale.conftest import write_tables
from undrift import Graph, InputError, TaskStream, load_stream, load_stream_file
from undrift.graphs import Scaling
from undrift.testing.graphs import tiny_graph

SHAPE = {"base": 2, "increment": 2}


def priced() -> Graph:
    """The tiny graph with a price in cents."""
    graph = tiny_graph(nodes=60)
    price = torch.from_numpy(np.random.default_rng(0).lognormal(8, 1, (60, 1))).float()
    return Graph(torch.cat([graph.features, price], dim=1), graph.adjacency, graph.labels)


def toml(place: Path, more: str = "") -> Path:
    write_tables(priced(), place)
    path = place / "stream.toml"
    text = f'name = "store"\n[graph]\nnodes = "nodes.csv"\nedges = "edges.csv"\n{more}\n'
    path.write_text(f"{text}[tasks]\nbase = 2\nincrement = 2\n", encoding="utf-8")
    return path


def test_columns_are_scaled_by_the_first_task_alone() -> None:
    graph = priced()
    stream = TaskStream.from_graph(graph, **SHAPE, scale="robust")
    first = Scaling.of(graph.features[stream.nodes([0])])
    assert torch.equal(stream.graph.features, first.apply(graph.features))
    assert "first task" in stream.provenance["scale"]
    later = graph.features.clone()
    later[stream.nodes([2])] *= 1000  # what comes later decides nothing
    again = TaskStream.from_graph(
        Graph(later, graph.adjacency, graph.labels), **SHAPE, scale="robust"
    )
    assert again.provenance["scale_sha256"] == stream.provenance["scale_sha256"]


def test_a_column_that_would_decide_alone_is_told() -> None:
    with pytest.warns(UserWarning, match=r"column 12 \(.*scale=\"robust\""):
        plain = TaskStream.from_graph(priced(), **SHAPE)
    assert torch.equal(plain.graph.features, priced().features)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TaskStream.from_graph(priced(), **SHAPE, scale="none")
        TaskStream.from_graph(tiny_graph(), **SHAPE)
    with pytest.warns(UserWarning, match="column 12"):
        TaskStream.by_time(priced(), np.arange(60) % 3, 3)


def test_ranges_may_be_given() -> None:
    stream = TaskStream.from_graph(priced(), **SHAPE, scale={"12": {"low": 0, "high": 2}})
    assert torch.equal(stream.graph.features[:, :12], priced().features[:, :12])
    assert float(stream.graph.features[:, 12].max()) == 4.0
    with pytest.raises(InputError, match='"robust"'):
        TaskStream.from_graph(priced(), **SHAPE, scale="rbust")  # type: ignore[arg-type]


def test_a_stream_file_scales_tables_and_says_so(tmp_path) -> None:
    stream = load_stream_file(toml(tmp_path / "a"))
    wanted = TaskStream.from_graph(priced(), **SHAPE, scale="robust")
    assert torch.allclose(stream.graph.features, wanted.graph.features)
    assert "robust" in stream.provenance["scale"]
    plain = load_stream_file(toml(tmp_path / "b", 'scale = "none"'))
    assert torch.allclose(plain.graph.features, priced().features)
    assert "scale" not in plain.provenance
    given = load_stream_file(toml(tmp_path / "c", "scale = {x12 = {low = 0, high = 2}}"))
    assert given.provenance["scale"] == "as given"
    with pytest.raises(InputError, match=r"stream.toml.*'x99'"):
        load_stream_file(toml(tmp_path / "d", "scale = {x99 = {low = 0, high = 2}}"))


def test_a_benchmark_is_not_split_by_masks_nor_scaled(monkeypatch) -> None:
    from undrift.streams import benchmarks

    graph = priced().with_masks(train=[True] * 60)
    info = benchmarks.stream_info("synthetic")
    monkeypatch.setattr(type(info), "load_graph", lambda self: (graph, {}))
    stream = load_stream("synthetic")
    assert stream.graph.features is graph.features
    assert stream.fractions == (0.6, 0.2, 0.2)
