"""A graph folder that somebody else made: nothing leads out of it, and nothing waits."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.folder.test_from_elsewhere import no_longer_than
from tests.scale.conftest import SMALL, half_labelled, write_tables
from undrift import InputError, LearnerFolder, make_learner
from undrift.scale.engine import Local
from undrift.scale.graph_folder import GraphFolder, GraphManifest
from undrift.scale.importing import import_graph
from undrift.scale.learning import observe
from undrift.scale.plan import BlockPlan

NAMES = ["graph.json", "ids.parquet", "labels.npy", "degrees.npy", "features-00000.npy"]
NAMES += ["edges-00000-indptr.npy", "edges-00000-indices.npy", "edges-00000-weights.npy"]
CHANGES: dict[str, Callable[[Path, Path], None]] = {
    "linked": lambda path, outside: path.symlink_to(outside / "twin" / path.name),
    "dangling": lambda path, outside: path.symlink_to(outside / "made"),
    "pipe": lambda path, outside: os.mkfifo(path),
    "folder": lambda path, outside: path.mkdir(),
}


@pytest.fixture(scope="module")
def clean(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("graph")
    nodes, edges = write_tables(half_labelled(nodes=60, features=3), place)
    import_graph(nodes, edges, place / "graph", memory=SMALL)
    LearnerFolder.new(place / "desk", settings={"gamma": 0.1, "hops": 1}, remember_nodes=True)
    LearnerFolder(place / "desk").observe(place / "graph")
    return place


@pytest.fixture
def graph(clean: Path, tmp_path) -> Path:
    outside = tmp_path / "outside"
    shutil.copytree(clean / "graph", outside / "twin")
    (outside / "token").write_bytes(b"secret")
    return Path(shutil.copytree(clean / "graph", tmp_path / "graph"))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_no_file_of_its_own_is_refused(change, name, graph, clean, tmp_path) -> None:
    (graph / name).unlink()
    CHANGES[change](graph / name, tmp_path / "outside")
    before = contents(tmp_path / "outside")
    new, out = tmp_path / "new", tmp_path / "predictions.csv"
    LearnerFolder.new(new, settings={"gamma": 0.1, "hops": 1})
    actions: list[Callable[[], object]] = [
        lambda: GraphFolder(graph).verify(),
        lambda: LearnerFolder(new).observe(graph),
        lambda: LearnerFolder(clean / "desk").predict(graph, out=out),
        lambda: GraphFolder(graph).ids() if "ids" in name else GraphFolder(graph)._load(name),
    ]
    for action in actions:
        with no_longer_than(10), pytest.raises(InputError, match=rf"{name} is a .*left alone"):
            action()
    assert contents(tmp_path / "outside") == before


def test_a_manifest_names_no_file_outside(graph: Path, tmp_path) -> None:
    there = GraphFolder(graph).manifest
    for name in ("../outside/token", str(tmp_path / "outside/token"), "..", ""):
        forged = there.model_copy(update={"files": {**there.files, name: 64 * "0"}}).sealed()
        (graph / "graph.json").write_text(forged.model_dump_json())
        with pytest.raises(InputError, match=r"graph\.json is damaged"):
            GraphFolder(graph)
    assert GraphManifest.model_validate(there.model_dump()) == there


@pytest.mark.parametrize("depth", ["work", "step", "done"])
def test_unfinished_steps_are_not_kept_elsewhere(depth, graph, clean, tmp_path) -> None:
    """A link in the place of their folder would have outside files deleted, or written."""
    outside = tmp_path / "outside"
    (outside / "precious.done").mkdir()
    (outside / "precious.done" / "thesis").write_bytes(b"years")
    if depth == "work":
        (graph / "work").symlink_to(outside)
    else:
        (graph / "work").mkdir()
        columns = range(len(GraphFolder(graph).manifest.classes))
        step = BlockPlan.of(GraphFolder(graph), {}, list(columns)).work
        place = step if depth == "step" else step.with_name(f"{step.name}.done")
        place.symlink_to(outside)
    before = contents(outside)
    learner = make_learner("propagation", gamma=0.1, hops=1)
    classes = {name: c for c, name in enumerate(GraphFolder(graph).manifest.classes)}
    with pytest.raises(InputError, match="is a link, not a folder"):
        observe(learner, GraphFolder(graph), classes, Local())
    with pytest.raises(InputError):  # a batch that is known: left-overs of it are deleted
        LearnerFolder(clean / "desk").observe(graph)
    assert contents(outside) == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes")
def test_a_result_of_an_unfinished_step_that_is_no_file(graph: Path) -> None:
    plan = BlockPlan.of(GraphFolder(graph), {}, [0])
    plan.work.mkdir(parents=True)
    os.mkfifo(plan.work / f"part-{16 * '0'}.npy")
    with no_longer_than(10), pytest.raises(InputError, match="is a pipe"):
        plan.find("part.npy", check=True)


@pytest.mark.parametrize("name", ["stage.duckdb", "import.json", "labels.npy", "spill"])
def test_an_unfinished_import_is_not_taken_up_through_a_link(name: str, tmp_path) -> None:
    nodes, edges = write_tables(half_labelled(nodes=60, features=3), tmp_path / "tables")
    import_graph(nodes, edges, tmp_path / "graph", memory=SMALL)
    out, outside = tmp_path / "unfinished", tmp_path / "token"
    outside.write_bytes(b"secret")
    out.mkdir()
    if name != "import.json":
        (out / "import.json").write_bytes(b"[]")
    (out / name).symlink_to(outside)
    with pytest.raises(InputError, match=f"{name} is a link"):
        import_graph(nodes, edges, out, memory=SMALL)
    assert outside.read_bytes() == b"secret"
