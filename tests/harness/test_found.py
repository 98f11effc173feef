"""What the fuzzer has found, as small files: each was another exception or a silent answer."""

import json
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import duckdb
import numpy as np
import pytest
import torch
from safetensors.torch import save

import undrift
from tests.harness.fuzz.targets import QUICK, TARGETS
from undrift import InputError, LearnerFolder, load_stream_file, make_learner, read_tables
from undrift.datasets.archives import unpack_zip
from undrift.datasets.readers import read_npz, read_pyg
from undrift.experiments.plans import read_plan
from undrift.folder.store import _version
from undrift.scale.graph_folder import GraphFolder
from undrift.storage import State, load_state, save_state
from undrift.storage.splits import load_split, save_split
from undrift.testing import tiny_graph, tiny_stream

BATCH = tiny_graph(nodes=24, classes=2)


def with_member(path: Path, name: str, data: bytes) -> Path:
    """The same zip with other bytes under a name."""
    with ZipFile(path) as archive:
        parts = {info.filename: archive.read(info) for info in archive.infolist()}
    with ZipFile(path, "w") as archive:
        for member, old in parts.items():
            archive.writestr(member, data if member == name else old)
    return path


def npy(array: object) -> bytes:
    file = BytesIO()
    np.save(file, np.asarray(array))
    return file.getvalue()


def header(text: str) -> bytes:
    head = text.encode().ljust(117) + b"\n" if len(text) < 117 else text.encode()
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head


@pytest.mark.parametrize(
    ("member", "data", "sentence"),
    [
        ("labels", header("{'descr': ("), r"array 'labels' of .* is damaged"),
        ("labels", header("{" * 200), r"array 'labels' of .* is damaged"),
        ("labels", header("{'descr': '<i8', 'shape': (__x__,)}"), r"array 'labels' .* is damaged"),
        ("attr_shape", npy([30, 2**62]), r"are not a CSR matrix \(the shape is"),
        # scipy checks them only where the last is not 0, and sorts rows that are not there
        ("attr_indptr", npy([0, 9, *[0] * 29]), "the row pointers do not rise"),
    ],
)
def test_an_npz_with_a_strange_member(
    tmp_path: Path, member: str, data: bytes, sentence: str
) -> None:
    TARGETS["npz"].make(tmp_path)
    path = with_member(tmp_path / "graph.npz", f"{member}.npy", data)
    with pytest.raises(InputError, match=sentence):
        read_npz(path)


def test_a_split_of_another_shape(tmp_path: Path) -> None:
    huge = npy([1]).replace(b"(1,)", b"(9" + b"0" * 25 + b",)").replace(b" " * 26, b"", 1)
    torn = b"\x93NUMPY\x01\x00\x04\x00{'{(" + bytes(8)
    wrong = [("version", data) for data in (npy([[1]]), huge, torn)]
    wrong += [("classes", data) for data in (b"text", npy([1e308, np.inf]))]
    wrong += [("nodes", npy(number)) for number in (2**31 - 1, 1e308, np.inf)]
    for name, data in wrong:
        save_split(tmp_path / "split.npz", tiny_stream().saved_split())
        with pytest.raises(InputError, match="is damaged or is not a split"):
            load_split(with_member(tmp_path / "split.npz", f"{name}.npy", data))


def save_graph(path: Path, **changes: object) -> Path:
    parts = {"x": torch.rand(4, 2), "edge_index": torch.tensor([[0, 1], [1, 2]]), "y": None}
    torch.save(parts | changes, path)
    return path


@pytest.mark.parametrize(
    ("part", "tensor", "sentence"),
    [
        ("x", torch.empty(4, 2, device="meta"), "shapes without numbers"),
        ("x", torch.zeros(4, 2, dtype=torch.complex64), r"real numbers, not torch\.complex64"),
        ("edge_index", torch.ones(2, 3, dtype=torch.bool), "edges must be whole numbers"),
    ],
)
def test_a_pt_file_of_odd_tensors(tmp_path: Path, part: str, tensor: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_pyg(save_graph(tmp_path / "graph.pt", **{part: tensor}))


def test_a_hole_in_a_pt_file(tmp_path: Path) -> None:
    """torch writes checksums and does not compare them."""
    path = save_graph(tmp_path / "graph.pt", x=torch.ones(64, 8))
    data = bytearray(path.read_bytes())
    at = data.index(torch.ones(8).numpy().tobytes())
    data[at : at + 16] = bytes(16)
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"in .*graph\.pt is damaged"):
        read_pyg(path)


def test_a_pt_file_that_goes_on_on_another_disk(tmp_path: Path) -> None:
    """Python's `is_zipfile` raises there, and says neither yes nor no."""
    path = save_graph(tmp_path / "graph.pt")
    data = path.read_bytes()
    end = data.rindex(b"PK\x05\x06")
    locator = b"PK\x06\x07" + bytes(12) + (2).to_bytes(4, "little")
    path.write_bytes(data[: end - 20] + locator + data[end:])
    with pytest.raises(InputError, match=r"graph\.pt is damaged or not a zip"):
        read_pyg(path)


def test_a_zip_with_a_member_without_a_name(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.writestr("a.txt", b"one")
        archive.writestr("x", b"two")
    data = (tmp_path / "data.zip").read_bytes()
    at = data.rindex(b"PK\x01\x02")  # the directory's entry of "x": its name is then a comment
    entry = bytearray(data[at : at + 47])
    entry[28:30], entry[32:34] = (0).to_bytes(2, "little"), (1).to_bytes(2, "little")
    (tmp_path / "data.zip").write_bytes(data[:at] + bytes(entry) + data[at + 47 :])
    (found,) = unpack_zip(tmp_path / "data.zip", tmp_path / "out", ["a.txt"])
    assert found.read_bytes() == b"one"
    with pytest.raises(InputError, match=r"holds no file x, not one"):
        unpack_zip(tmp_path / "data.zip", tmp_path / "out", ["x"])


@pytest.mark.parametrize(
    ("method", "line", "why"),
    [
        ("adr", 'name = "mine"', "line 4: unknown parameter of adr 'name'"),
        ("adr", f"gamma = {'10' * 200}", "gamma must be a finite number"),
        ("adr", f"hidden = {'10' * 200}", "needs .* TB of memory"),
        ("propagation", f"hops = {9 * 10**18}", "hops must be a whole number from 0 to 1000"),
    ],
)
def test_a_plan_with_a_parameter_that_cannot_be(
    tmp_path: Path, method: str, line: str, why: str
) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(f'streams = ["cs-cl"]\nmethods = ["{method}"]\n[params.{method}]\n{line}\n')
    with pytest.raises(InputError, match=why):
        read_plan(path)


def test_a_name_that_no_disk_takes(tmp_path: Path) -> None:
    path = tmp_path / "stream.toml"
    graph = f'[graph]\nnpz = "{"a" * 3000}"\n[tasks]\nbase = 1\nincrement = 1\n'
    path.write_text(f'name = "mine"\n{graph}')
    with pytest.raises(InputError, match="File name too long"):
        load_stream_file(path)


def test_a_column_of_maps(tmp_path: Path) -> None:
    tables = {"n": "'a' AS id, MAP(['x'], [1]) AS label, 1.0 AS x"}
    tables["e"] = "'a' AS source, 'a' AS target"
    for name, columns in tables.items():
        duckdb.sql(f"COPY (SELECT {columns}) TO '{tmp_path / name}.parquet'")
    with pytest.raises(InputError, match="must hold texts or numbers, but row 1 has a dict"):
        read_tables(tmp_path / "n.parquet", tmp_path / "e.parquet")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    make_learner("bare", **QUICK).observe(tiny_stream().task(0)).save(tmp_path / "state")
    return tmp_path / "state"


def forged(path: Path, **changes: object) -> Path:
    """The state with other parts and the checksum that fits them."""
    old = load_state(path)
    tensors = {n: changes.get(n.rpartition(".")[2], t) for n, t in old.tensors.items()}
    params = old.params | {n: v for n, v in changes.items() if n in old.params}
    save_state(path, State(old.method, params, tensors, old.values))  # type: ignore[arg-type]
    return path


def test_a_state_whose_parts_do_not_fit_or_whose_device_is_not_here(state: Path) -> None:
    for device in ("c0u", "xpu"):
        with pytest.raises(InputError, match=f"on the device '{device}', which is not usable"):
            undrift.load(forged(state, device=device))
    assert undrift.load(state, device="cpu").classes_ == (0, 1)
    with pytest.raises(InputError, match="its parts do not fit each other"):
        undrift.load(forged(state, bias=torch.zeros(7, 3)), device="cpu")


def test_what_a_file_says_cannot_rule_a_terminal() -> None:
    error = InputError("column 'a\x1b[2J\nb' of x; rename it")
    assert str(error) == "column 'a\\x1b[2J b' of x; rename it"
    assert len(str(InputError(f"class {'a' * 9000!r} is new; leave it"))) < 400
    assert str(InputError("word " * 900 + "; end")).endswith("; end")


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    LearnerFolder.new(tmp_path / "desk", "bare", settings=QUICK).observe(BATCH)
    return tmp_path / "desk"


def test_json_that_is_nested_too_deeply(desk: Path, tmp_path: Path) -> None:
    deep = "[" * 100_000
    expected = LearnerFolder(desk).learner().classes_
    (desk / "learner.json").write_text(deep)
    assert LearnerFolder(desk).learner().classes_ == expected
    assert LearnerFolder(desk).verify() == ["learner.json: written again"]
    told = {"format": "undrift-state", "version": "1", "method": "bare", "values": "{}"}
    (tmp_path / "s").write_bytes(save({}, told | {"params": deep}))
    with pytest.raises(InputError, match="is damaged or is not a state file"):
        load_state(tmp_path / "s")
    with pytest.raises(InputError, match="is no state of a learner's folder"):
        _version(tmp_path / "s", {"folder": deep})


def test_another_key(desk: Path) -> None:
    """With it no batch is known, and one would be learned twice."""
    (desk / "key").write_text("00" * 32)
    with pytest.raises(InputError, match="key is missing or damaged"):
        LearnerFolder(desk).observe(BATCH)


def test_a_state_without_its_method(desk: Path) -> None:
    path = next(desk.glob("state-*"))
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"method":"bare"', b'"methop":"bare"'))
    with pytest.raises(InputError, match="is no state of a learner's folder"):
        LearnerFolder(desk)


def test_the_words_of_a_graph_folder(tmp_path: Path) -> None:
    TARGETS["graph folder"].make(tmp_path)
    path = tmp_path / "graph" / "graph.json"
    told = json.loads(path.read_text())
    path.write_text(json.dumps(told | {"columns": told["columns"][::-1]}))
    with pytest.raises(InputError, match=r"graph\.json is damaged"):
        GraphFolder(tmp_path / "graph")
