from __future__ import annotations

import dataclasses
import hashlib
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from undrift.errors import InputError
from undrift.streams import benchmarks
from undrift.streams.benchmarks import STREAMS, StreamInfo, load_stream
from undrift.streams.split import split_counts
from undrift.testing.check_stream import check_stream

SMALL = StreamInfo(
    name="small",
    title="Small",
    source="written by this test",
    base=1,
    increment=1,
    nodes=12,
    edges=22,
    features=12,
    classes=2,
    file="small.npz",
)


@pytest.fixture
def small_file(monkeypatch, tmp_path):
    """A stream `small` over a file in a data folder: twelve nodes in a row."""
    links, words = sp.eye(12, k=1, format="csr"), sp.eye(12, format="csr")
    parts = {"labels": np.arange(12) % 2}
    for prefix, matrix in (("adj", links), ("attr", words)):
        parts |= {
            f"{prefix}_data": matrix.data,
            f"{prefix}_indices": matrix.indices,
            f"{prefix}_indptr": matrix.indptr,
            f"{prefix}_shape": np.array(matrix.shape),
        }
    np.savez(tmp_path / "small.npz", **parts)
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    monkeypatch.setitem(benchmarks.STREAMS, "small", SMALL)
    return tmp_path / "small.npz"


def test_the_list_is_read_without_torch_numpy_or_scipy():
    code = (
        "import sys; from undrift.streams.benchmarks import STREAMS; "
        "STREAMS['cs-cl'].on_disk(); "
        "sys.exit(', '.join({'torch', 'numpy', 'scipy'} & set(sys.modules)) or 0)"
    )
    run = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_names_and_sizes_are_those_of_the_paper():
    assert list(STREAMS) == ["synthetic", "cs-cl"]
    assert all(name == info.name for name, info in STREAMS.items())
    cs = STREAMS["cs-cl"]
    assert (cs.base, cs.increment, cs.tasks, cs.classes) == (5, 2, 6, 15)
    assert not any(info.stand_in for info in STREAMS.values())


@pytest.mark.parametrize(
    ("base", "increment", "classes", "tasks"),
    [(5, 2, 15, 6), (4, 2, 10, 4), (3, 2, 8, 4), (15, 2, 15, 1), (1, 100, 3, 2)],
)
def test_tasks_counts_a_smaller_last_one(base, increment, classes, tasks):
    info = dataclasses.replace(SMALL, base=base, increment=increment, classes=classes)
    assert info.tasks == tasks


def test_on_disk_follows_the_file(monkeypatch, tmp_path):
    monkeypatch.delenv("UNDRIFT_DATA", raising=False)
    assert STREAMS["synthetic"].on_disk()
    assert not SMALL.on_disk()
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    assert not SMALL.on_disk()
    (tmp_path / "small.npz").write_bytes(b"")
    assert SMALL.on_disk()


def test_synthetic_matches_its_entry_and_keeps_the_promises():
    info, stream = STREAMS["synthetic"], load_stream("synthetic")
    assert len(stream) == info.tasks == 4
    assert stream.name == "synthetic"
    assert stream.provenance == {"generator": "undrift.datasets.synthetic.generate(seed=0)"}
    assert all(row.dropped > 0 for row in stream.describe())
    check_stream(stream, lambda seed: load_stream("synthetic", seed))


def test_a_seed_changes_the_split_of_synthetic_and_not_the_graph():
    first, second = load_stream("synthetic", 0), load_stream("synthetic", 1)
    assert torch.equal(first.graph.labels, second.graph.labels)
    assert torch.equal(first.graph.adjacency.indices, second.graph.adjacency.indices)
    assert torch.equal(first.graph.features.indices, second.graph.features.indices)
    assert not torch.equal(first.train, second.train)
    assert first.classes == second.classes


def test_a_file_stream_says_which_file_it_is(small_file):
    stream = load_stream("small", seed=2)
    digest = hashlib.sha256(small_file.read_bytes()).hexdigest()
    assert stream.provenance == {"file": "small.npz", "sha256": digest}
    assert (stream.name, stream.seed, len(stream)) == ("small", 2, 2)
    check_stream(stream)


@pytest.mark.parametrize(
    ("what", "count"), [("nodes", 12), ("edges", 22), ("features", 12), ("classes", 2)]
)
def test_a_file_with_other_statistics_does_not_pass(monkeypatch, small_file, what, count):
    changed = dataclasses.replace(SMALL, **{what: 99})
    monkeypatch.setitem(benchmarks.STREAMS, "small", changed)
    wanted = f"'small' has {count} {what}, but the benchmark has 99; use small.npz as published"
    with pytest.raises(InputError, match=wanted):
        load_stream("small")


def test_an_unknown_stream_prints_the_list():
    with pytest.raises(InputError, match=r"unknown stream 'cs' .*choose one of: cs-cl, synthetic"):
        load_stream("cs")


def test_a_missing_file_says_how_to_point_to_it(monkeypatch):
    monkeypatch.delenv("UNDRIFT_DATA", raising=False)
    with pytest.raises(InputError, match=r"ms_academic_cs\.npz is needed; set .* UNDRIFT_DATA"):
        load_stream("cs-cl")


@pytest.fixture(scope="module")
def cs():
    if not STREAMS["cs-cl"].on_disk():
        pytest.skip(
            "needs ms_academic_cs.npz (github.com/shchur/gnn-benchmark, data/npz) in the folder "
            "that UNDRIFT_DATA names"
        )
    return load_stream("cs-cl")


@pytest.mark.real_data
def test_cs_cl_keeps_the_promises(cs):
    check_stream(cs, lambda seed: load_stream("cs-cl", seed))
    assert cs.provenance["file"] == "ms_academic_cs.npz"
    assert len(cs.provenance["sha256"]) == 64


@pytest.mark.real_data
def test_cs_cl_has_six_tasks_of_known_sizes(cs):
    rows = cs.describe()
    assert [row.classes for row in rows] == [
        (0, 1, 2, 3, 4),
        (5, 6),
        (7, 8),
        (9, 10),
        (11, 12),
        (13, 14),
    ]
    assert [row.nodes for row in rows] == [5043, 2564, 1699, 1562, 2453, 5012]
    assert [row.train for row in rows] == [3025, 1539, 1019, 937, 1472, 3008]
    assert sum(row.edges + row.dropped for row in rows) == 163_788


@pytest.mark.real_data
def test_the_base_task_of_cs_cl_has_27_5_percent_of_the_nodes(cs):
    assert cs.nodes([0]).numel() / cs.graph.num_nodes == pytest.approx(0.275, abs=0.0005)


@pytest.mark.real_data
def test_every_class_of_cs_cl_is_split_6_2_2(cs):
    labels = cs.graph.labels
    for c in range(15):
        inside = labels == c
        found = tuple(int((mask & inside).sum()) for mask in (cs.train, cs.val, cs.test))
        assert found == split_counts(int(inside.sum()), (0.6, 0.2, 0.2))
        assert found[0] / sum(found) == pytest.approx(0.6, abs=0.01)
