"""Columns in natural units: what a folder makes of them, and what it keeps."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import undrift
from tests.folder.conftest import written
from undrift import Graph, InputError, LearnerFolder
from undrift.graphs import Scaling
from undrift.privacy.attacks import kept_sums
from undrift.scale.importing import import_graph

Files = tuple[Path, Path]
Column = Callable[[np.random.Generator, int, int], Any]
CLASSES = 6
EXTRA: dict[str, Column] = {
    "price_in_cents": lambda rng, n, month: np.round(rng.lognormal(8, 1, n)),
    "unix_time": lambda rng, n, month: 1.7e9 + rng.uniform(0, 3.2e7, n),
    "time_that_goes_on": lambda rng, n, month: 1.7e9 + 2.6e6 * month + rng.uniform(0, 2.6e6, n),
}


def shop(place: Path, month: int, extra: str = "", nodes: int = 150) -> Files:
    """Customers with six informative numbers, an indicator, and a column that tells nothing."""
    centres = np.random.default_rng(99).normal(size=(CLASSES, 6))
    rng = np.random.default_rng([month, 5])
    kind = rng.integers(0, CLASSES, nodes)
    columns = {f"x{j}": centres[kind, j] + rng.normal(size=nodes) for j in range(6)}
    columns["member"] = rng.integers(0, 2, nodes)
    if extra:
        columns[extra] = EXTRA[extra](np.random.default_rng([month, 6]), nodes, month)
    alike = [rng.choice(np.flatnonzero(kind == kind[i]), 2) for i in range(nodes)]
    alike = [two if rng.random() < 0.7 else rng.integers(0, nodes, 2) for two in alike]
    cells = zip(*(column.tolist() for column in columns.values()), strict=True)
    rows = [[f"c{month}-{i}", f"k{kind[i]}", *row] for i, row in enumerate(cells)]
    pairs = [f"c{month}-{i},c{month}-{j}" for i, two in enumerate(alike) for j in two.tolist()]
    return written(place, str(month), ",".join(["id", "label", *columns]), rows, pairs)


def accuracy(folder: LearnerFolder, files: Files) -> float:
    found = folder.predict(files).classes
    return float(np.mean(np.array(found) == np.array(folder.read(files).labels)))


def trial(place: Path, extra: str, **how: Any) -> float:
    """The accuracy on a month that was not learned."""
    folder = LearnerFolder.new(place / "learner", **how)
    for month in range(2):
        folder.observe(shop(place, month, extra))
    return accuracy(folder, shop(place, 8, extra, nodes=400))


@pytest.mark.parametrize("extra", EXTRA)
def test_a_column_that_tells_nothing_costs_nothing(extra: str, tmp_path) -> None:
    without = trial(tmp_path / "without", "")
    scaled = trial(tmp_path / "with", extra)
    before = trial(tmp_path / "as it was", extra, scale="none")
    assert without > 0.7
    assert scaled > without - 0.02
    assert before < without - 0.05


def sums(folder: LearnerFolder) -> dict[str, torch.Tensor]:
    """The sums of a state, its classes in the order of their names."""
    learner, ids = folder.learner(), folder.show().record.classes
    order = [learner.classes_.index(ids[name]) for name in sorted(ids)]
    bank = learner.learned_.sums.select(order).variants["mix"]
    return {name: getattr(bank, name) for name in ("gram", "moment", "counts")}


def parts(files: Files, place: Path) -> list[Files]:
    """The rows of a batch in two files; no edge between them was there, or is kept."""
    head, *rows = files[0].read_text(encoding="utf-8").splitlines()
    halves = ([row.split(",") for row in some] for some in (rows[::2], rows[1::2]))
    return [
        written(place, f"part{k}-{files[0].name}", head, half, []) for k, half in enumerate(halves)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_comes_after_the_first_batch_equals_one_training(seed, tmp_path) -> None:
    """Any order, batches in parts, a correction, and the first batch forgotten."""
    rng = random.Random(seed)
    months = [shop(tmp_path, m, "price_in_cents", nodes=60) for m in range(5)]
    for nodes, edges in months[3:]:  # without edges: a batch is then the sum of its parts
        edges.write_text("source,target\n", encoding="utf-8")
        assert nodes.exists()
    settings = {"gamma": 0.1, "hops": 2, "rank": 0, "homophily": 0.7}
    folder = LearnerFolder.new(tmp_path / "one", settings=settings)
    folder.observe(months[0])
    scaling = folder.learner().scaling_
    later = [months[1], *parts(months[3], tmp_path), *parts(months[4], tmp_path)]
    rng.shuffle(later)
    for files in later:
        folder.observe(files)
    folder.revise(months[1], months[2])
    folder.forget(months[0])
    assert folder.learner().scaling_ == scaling  # what the first batch fixed stays
    assert "median and spread" in (folder.path / "README.md").read_text(encoding="utf-8")

    pinned = {"gamma": 0.1, "plan": str(folder.path / "plan.json")}  # units too
    pooled = LearnerFolder.new(tmp_path / "pooled", settings=pinned)
    for files in (months[2], months[3], months[4]):
        pooled.observe(files)
    for name, tensor in sums(pooled).items():
        mine = sums(folder)[name]
        assert torch.allclose(mine, tensor, rtol=1e-9, atol=1e-9 * float(tensor.abs().max())), name


def test_the_learner_alone_answers_as_its_folder(tmp_path) -> None:
    folder = LearnerFolder.new(tmp_path / "desk")
    folder.observe(shop(tmp_path, 0, "unix_time"))
    asked = folder.read(shop(tmp_path, 1, "unix_time"))
    folder.export(tmp_path / "learner.safetensors")
    expected = folder.predict(asked).classes
    names = {c: name for name, c in folder.show().record.classes.items()}
    for place in (folder.path, tmp_path / "learner.safetensors"):
        learner = undrift.load(place)
        assert [names[c] for c in learner.predict(asked.graph).tolist()] == expected
        assert learner.clone().scaling_ is None


def test_an_audit_makes_rows_as_they_were_summed(tmp_path) -> None:
    folder = LearnerFolder.new(tmp_path / "desk", settings={"rank": 0, "sketch": 0, "fourier": 0})
    batch = folder.read(shop(tmp_path, 0, "price_in_cents"))
    folder.observe(batch)
    (kept, *_) = kept_sums(folder.learner())
    rows = kept.rows(batch.graph, torch.arange(batch.graph.num_nodes))
    assert torch.allclose(rows.T @ rows, kept.gram, atol=1e-9)


def test_graphs_without_names_are_left_and_noted(tmp_path) -> None:
    rng = np.random.default_rng(0)
    features = np.column_stack([rng.normal(size=(40, 4)), rng.lognormal(8, 1, 40)])
    graph = Graph.from_arrays(features, [], np.arange(40) % 2)
    folder = LearnerFolder.new(tmp_path / "plain")
    step = folder.observe(graph)
    assert folder.learner().scaling_ is None
    (note,) = [note for note in step.notes if "spread" in note]
    assert "column 4 (" in note
    assert "--scale robust" in note
    asked = LearnerFolder.new(tmp_path / "asked", scale="robust")
    assert not [note for note in asked.observe(graph).notes if "--scale" in note]
    assert asked.learner().scaling_ == Scaling.of(graph.features)
    plain = Graph.from_arrays(features[:, :4], [], np.arange(40) % 2)
    quiet = LearnerFolder.new(tmp_path / "quiet").observe(plain)
    assert not [note for note in quiet.notes if "--scale" in note]


def test_a_file_of_public_ranges(tmp_path) -> None:
    told = {"price_in_cents": {"low": 0, "high": 20_000}, "x0": {"centre": 1, "spread": 2}}
    (tmp_path / "ranges.json").write_text(json.dumps(told), encoding="utf-8")
    folder = LearnerFolder.new(tmp_path / "desk", scale=tmp_path / "ranges.json")
    folder.observe(shop(tmp_path, 0, "price_in_cents"))
    scaling = folder.learner().scaling_
    assert (scaling.centre[0], scaling.spread[0]) == (1, 2)
    assert (scaling.centre[-1], scaling.spread[-1]) == (10_000, 10_000)
    assert (scaling.centre[1], scaling.spread[1]) == (0, 1)  # one that is not named stays
    strange = LearnerFolder.new(tmp_path / "other", scale={"prize": {"low": 0, "high": 1}})
    with pytest.raises(InputError, match=r"'prize'.*price_in_cents"):
        strange.observe(shop(tmp_path, 0, "price_in_cents"))
    assert strange.show().record.entry.step == 0


@pytest.mark.parametrize(
    ("text", "match"),
    [("{", "not valid JSON"), ("[1]", "must name columns"), ('{"x0": 3}', "'x0'.*low")],
)
def test_a_file_that_is_none_is_refused(text: str, match: str, tmp_path) -> None:
    (tmp_path / "ranges.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=match):
        LearnerFolder.new(tmp_path / "desk", scale=str(tmp_path / "ranges.json"))
    with pytest.raises(InputError, match=r"rbust.*robust, none, or a JSON file|robust, none"):
        LearnerFolder.new(tmp_path / "desk", scale="rbust")
    assert not (tmp_path / "desk").exists()


def test_with_epsilon_nothing_of_a_batch_decides_it(tmp_path) -> None:
    settings: dict[str, Any] = {
        "epsilon": 8.0,
        "class_list": tuple(f"k{k}" for k in range(CLASSES)),
        "testing": True,
    }
    with pytest.raises(InputError, match=r"epsilon.*--scale FILE.*--scale none"):
        LearnerFolder.new(tmp_path / "robust", settings=settings, scale="robust")
    folder = LearnerFolder.new(tmp_path / "plain", settings=settings)
    step = folder.observe(shop(tmp_path, 0, "price_in_cents"))
    assert folder.learner().scaling_ is None
    assert [note for note in step.notes if "epsilon" in note and "--scale" in note]
    ranges = {"price_in_cents": {"low": 0, "high": 20_000}}
    given = LearnerFolder.new(tmp_path / "given", settings=settings, scale=ranges)
    step = given.observe(shop(tmp_path, 0, "price_in_cents"))
    assert not [note for note in step.notes if "--scale" in note]
    scaling = given.learner().scaling_
    assert scaling.spread[-1] == 10_000


def test_a_graph_folder_is_scaled_as_its_tables_are(tmp_path) -> None:
    files = shop(tmp_path, 0, "price_in_cents")
    graph = import_graph(*files, tmp_path / "graph", memory=2e-5)
    assert graph.manifest.blocks > 1
    large, small = (LearnerFolder.new(tmp_path / name) for name in ("large", "small"))
    large.observe(tmp_path / "graph")
    small.observe(files)
    assert large.learner().scaling_ == small.learner().scaling_ is not None
    for name, tensor in sums(small).items():
        scale = float(tensor.abs().max())
        assert torch.allclose(sums(large)[name], tensor, rtol=1e-9, atol=1e-9 * scale), name
    large.predict(tmp_path / "graph", out=tmp_path / "out.csv")
    rows = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert [row.split(",")[1] for row in rows] == small.predict(files).classes
