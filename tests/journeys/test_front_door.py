"""People who come with objects of their own: PyG, pandas or plain dicts, NetworkX."""

import random
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import undrift
from undrift import LearnerFolder, make_learner

TYPICAL = {"fine": (1, 0), "mule": (5, 0), "takeover": (1, 4)}
Columns = dict[str, list[Any]]


def test_a_pyg_user(tmp_path) -> None:
    pytest.importorskip("networkx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG's own import is not free of warnings
        pytest.importorskip("torch_geometric.data")
        data = undrift.load_stream("synthetic").graph.to_pyg(dense=True)
    data.train_mask = torch.rand(data.num_nodes, generator=torch.manual_seed(0)) < 0.6
    data.test_mask = ~data.train_mask
    parts = [data.subgraph((data.y >= low) & (data.y < low + 4)) for low in (0, 4, 8)]

    learner = undrift.Propagation()
    for part in parts:
        learner.observe(part)
    predicted = learner.predict(data)
    right = (predicted == data.y)[data.test_mask].float().mean()
    assert right == pytest.approx(learner.score(data, data.test_mask))
    assert right > 0.85
    learner.forget(parts[0])
    assert set(learner.predict(data).tolist()) <= set(range(4, 12))
    learner.save(tmp_path / "learner")
    assert torch.equal(undrift.load(tmp_path / "learner").predict(data), learner.predict(data))

    for name in ("adr", "ewc"):  # methods by name, with their settings
        rival = make_learner(name, epochs=5)
        for part in parts:
            rival.observe(part)
        assert 0 < rival.score(data, data.test_mask) < right
    with pytest.raises(undrift.InputError, match=r"cannot forget; .*propagation"):
        rival.forget(parts[0])


def month(number: int, *kinds: str) -> tuple[Columns, Columns]:
    """Twenty accounts of every kind, with links between accounts of one kind."""
    draw = random.Random(number)
    label = [kind for kind in kinds for _ in range(20)]
    ids = [f"{kind}-{number}-{k}" for k, kind in enumerate(label)]
    cells = [[typical + draw.gauss(0, 0.5) for typical in TYPICAL[kind]] for kind in label]
    links = [(a, b) for a in ids for b in draw.sample(ids, 6) if a[:3] == b[:3] and a != b]
    nodes: Columns = {"id": ids, "label": label}
    nodes |= {"amount": [a for a, _ in cells], "night": [b for _, b in cells]}
    return nodes, {"source": [a for a, _ in links], "target": [b for _, b in links]}


def written(tables: tuple[Columns, Columns], place: Path) -> tuple[Path, Path]:
    """The same tables as files."""
    files = place / "nodes.csv", place / "edges.csv"
    for table, file in zip(tables, files, strict=True):
        rows = [table, *zip(*table.values(), strict=True)]
        file.write_text("\n".join(",".join(map(str, row)) for row in rows))
    return files


@pytest.mark.parametrize("kind", ["dict", "pandas", "polars", "pyarrow"])
def test_a_user_with_tables_in_memory(kind: str, tmp_path) -> None:
    make: Any = dict
    if kind != "dict":
        module = pytest.importorskip(kind)
        make = module.table if kind == "pyarrow" else module.DataFrame

    def tables(*asked: Any) -> tuple[Any, Any]:
        nodes, edges = month(*asked)
        return make(nodes), make(edges)

    desk = LearnerFolder.new(tmp_path / "desk")
    desk.observe(tables(1, "fine", "mule"))
    desk.observe(tables(2, "mule", "takeover"))  # one class comes back, one is new
    may = month(3, "fine", "takeover")
    found = desk.predict(tables(3, "fine", "takeover"))
    frame = make(found.to_frame(probabilities=True))
    shown = getattr(frame, "column_names", getattr(frame, "columns", frame))
    columns = "id class probability runner_up p_fine p_mule p_takeover"
    assert list(shown) == columns.split()
    assert list(map(str, frame["class"])) == may[0]["label"]
    some = desk.predict(tables(3, "fine", "takeover"), nodes=["takeover-3-25"])
    assert some.to_frame()["class"] == ["takeover"]

    # the same content is the same batch, in memory or as files
    files = written(month(1, "fine", "mule"), tmp_path)
    with pytest.raises(undrift.InputError, match="already"):
        desk.observe(files)
    desk.forget(tables(2, "mule", "takeover"), ["mule-2-3", "takeover-2-21"])
    desk.revise(files, tables(4, "fine", "mule"))
    desk.forget(tables(4, "fine", "mule"))
    assert set(desk.show().record.classes) == {"mule", "takeover"}
    assert desk.predict(files, out=tmp_path / "out.csv") == 40

    clean = LearnerFolder.new(tmp_path / "clean", like=desk)
    clean.observe(desk.read(tables(2, "mule", "takeover")).without("mule-2-3", "takeover-2-21"))
    one, other = (each.predict(files).probabilities for each in (desk, clean))
    assert one is not None
    assert one == pytest.approx(other)
