"""Targets: files that undrift itself writes; and all targets.

What its own files say is protected by checksums, or by what else they say: a change is refused or
does not matter.
"""

import contextlib
import json
import math
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import torch

from extras.table import load_table
from tests.harness.fuzz.archives import change_npy, change_safetensors, change_zip
from tests.harness.fuzz.changes import (
    change_file,
    change_json,
    changing,
    damage_bytes,
    damage_file,
    no_file,
    odd_value,
)
from tests.harness.fuzz.graph_targets import GRAPH_TARGETS
from tests.harness.fuzz.guard import Forged, Target
from tests.harness.fuzz.table_targets import TABLE_TARGETS, make_stream, write_csv
from undrift import Graph, InputError, LearnerFolder, make_learner
from undrift.experiments import RunSpec, execute, load_records, prepare
from undrift.experiments.checkpoint import load_checkpoint
from undrift.experiments.run import PreparedRun
from undrift.experiments.store import read_run
from undrift.learners.registry import METHODS, load, method_class
from undrift.scale.engine import Local
from undrift.scale.graph_folder import GraphFolder
from undrift.scale.importing import import_graph
from undrift.scale.learning import observe
from undrift.storage import State, load_state, save_state
from undrift.storage.splits import load_split, save_split
from undrift.testing import tiny_graph, tiny_stream

QUICK: dict[str, Any] = {"epochs": 1, "hidden": (4,)}


def batches(*ways: tuple[int, ...]) -> list[Graph]:
    """The nodes of these classes of a tiny graph, a batch each."""
    graph = tiny_graph()
    labels = graph.labelled()
    return [
        graph.subgraph(torch.isin(labels, torch.tensor(way)).nonzero().flatten()) for way in ways
    ]


def _make_state(name: str, folder: Path) -> None:
    known, quick = method_class(name).defaults(), QUICK | {"n_encoders": 2}
    learner = make_learner(name, **{key: value for key, value in quick.items() if key in known})
    for task in list(tiny_stream())[:2]:
        learner.observe(task)
    learner.save(folder / "state")


def forge(random: Random, path: Path) -> str:
    """Change what a state says and give it the checksum that fits, as somebody could on purpose."""
    state = load_state(path)
    tensors, values, params = dict(state.tensors), dict(state.values), dict(state.params)
    kind = random.random()
    if kind < 0.6 and tensors:
        name = random.choice(sorted(tensors))
        old = tensors.pop(name)
        told = "gone"
        if kind < 0.45:
            odd = [old[:0], old.flatten(), old.unsqueeze(0), old.double(), old.float(), old.long()]
            odd += [old.T if old.dim() == 2 else old.reshape(-1, 1), old * 0, old.new_ones(3)]
            odd += [old.float() * float("nan"), old.bool(), random.choice(list(tensors.values()))]
            odd += [old.repeat(*[2] * max(1, old.dim()))]
            tensors[name] = random.choice(odd).contiguous().clone()
            told = f"{tuple(tensors[name].shape)} {tensors[name].dtype}"
    else:
        part = values if kind < 0.85 and values else params
        name = random.choice(sorted(part))
        part[name] = odd_value(random, part[name])
        told = str(part[name])[:60]
    try:
        save_state(path, State(state.method, params, tensors, values))
    except (TypeError, ValueError):
        return damage_file(random, path)
    path.with_name("forged").touch()
    return f"forged: {name} is {told}"


def _read_state(folder: Path) -> Any:
    learner = load(folder / "state")
    scores = learner.scores(tiny_graph(nodes=12))
    found = (learner.classes_, tuple(scores.shape), scores.numpy().tobytes())
    return Forged() if (folder / "forged").exists() else found


def _make_folder(folder: Path) -> None:
    living = LearnerFolder.new(folder / "desk", "bare", settings=QUICK)
    for batch in batches((0, 1), (2, 3)):
        living.observe(batch)


def _change_line(random: Random, data: bytes) -> tuple[bytes, str]:
    lines = data.splitlines()
    i = random.randrange(len(lines))
    lines[i], done = change_json(random, lines[i])
    return b"".join(line + b"\n" for line in lines), f"line {i + 1}: {done}"


def _read_folder(folder: Path) -> Any:
    living = LearnerFolder(folder / "desk")
    classes = living.predict(tiny_graph(nodes=12)).classes
    living.verify()
    lines = [line.model_dump_json() for line in living.history()]
    try:
        living.observe(batches((0, 1))[0])
    except InputError as error:
        again = str(error).replace(str(folder), "")
    else:
        again = "observed twice"
    return list(classes), lines, again, living.show().description()


def _make_graph(folder: Path) -> None:
    write_csv(folder)
    import_graph(folder / "nodes.csv", folder / "edges.csv", folder / "graph", memory=2e-5)
    for name in ("nodes.csv", "edges.csv"):
        (folder / name).unlink()


def _read_graph(folder: Path) -> Any:
    graph = GraphFolder(folder / "graph")
    learner = make_learner("propagation")
    classes = {name: c for c, name in enumerate(graph.manifest.classes)}
    observe(learner, graph, classes, Local())
    scores = learner.scores(tiny_graph(nodes=12, features=3))
    told = graph.manifest.model_dump(mode="json", exclude={"sources"})
    return scores.numpy().tobytes(), graph.ids().tolist(), json.dumps(told, sort_keys=True)


def _make_split(folder: Path) -> None:
    save_split(folder / "split.npz", tiny_stream().saved_split())


def _prepared(folder: Path) -> PreparedRun:
    """A run of a stream of one's own."""
    make_stream(folder)
    return prepare(RunSpec(stream=str(folder / "stream.toml"), method="bare", params=QUICK))


def _make_runs(folder: Path) -> None:
    execute(_prepared(folder), folder / "runs")
    (folder / "clean.json").write_bytes(_result(folder).read_bytes())


def _result(folder: Path) -> Path:
    return next((folder / "runs").glob("*/result.json"))


def _read_result(folder: Path) -> Any:
    found = read_run(_result(folder))
    records = load_records(folder / "runs")
    assert not records.damaged, records.damaged
    table = load_table(folder / "runs")
    assert len(table.rows(table.columns)) == 1
    return _numbers(json.loads(found.model_dump_json(by_alias=True)))


def _plain_result(folder: Path) -> Any:
    """The JSON as it stands; what an older format lacks has its default or is computed."""
    found = json.loads(_result(folder).read_bytes())
    clean = json.loads((folder / "clean.json").read_bytes())
    found = {"imbalance": None, "returning": None} | found | {"format": clean["format"]}
    found["cost"] = {"state_bytes": []} | found["cost"]
    for by in ("class", "node"):
        found["metrics"][by] = clean["metrics"][by] | found["metrics"][by]
    return _numbers(found)


def _numbers(tree: Any) -> Any:
    """A tree whose numbers are floats, as are texts and truths that stand for numbers."""
    if isinstance(tree, dict):
        return {key: _numbers(part) for key, part in sorted(tree.items())}
    if isinstance(tree, list):
        return [_numbers(part) for part in tree]
    try:
        number = float(tree)
    except (TypeError, ValueError):
        return tree
    if math.isnan(number):
        return tree
    return None if number == float("inf") else number  # which JSON cannot say


def _make_checkpoint(folder: Path) -> None:
    def stop(t: int, _: Any) -> None:
        if t == 1:
            raise InterruptedError

    with contextlib.suppress(InterruptedError):
        execute(_prepared(folder), folder / "runs", checkpoints=True, after_task=stop)


def _checkpoint(folder: Path) -> Path:
    return next((folder / "runs").glob("*/checkpoint.safetensors"))


def _read_checkpoint(folder: Path) -> Any:
    learner = make_learner("bare", **QUICK)
    found = load_checkpoint(_checkpoint(folder).parent, learner)
    if found is None:
        raise InputError("counts as none: the run starts again")
    scores = learner.scores(tiny_graph(nodes=12, features=3))
    return found.grades["test"].by_class.rows, learner.classes_, scores.numpy().tobytes()


def _gone(random: Random, path: Path) -> str:
    path.unlink()
    return f"{path.name} gone"


def _by_suffix(random: Random, path: Path) -> str:
    """What the file says, changed; of one without a known form, its bytes."""
    ways = {".jsonl": _change_line, ".json": change_json, ".npy": change_npy}
    ways |= {".safetensors": change_safetensors, "state": change_safetensors}
    return change_file(random, path, ways.get(path.suffix or path.name, damage_bytes))


_change_state = changing("state", 0.35, _by_suffix, forge, forge)
_change_folder = changing("desk/*", 0.4, _gone, no_file, *[_by_suffix] * 8)
_change_graph = changing("graph/*.*", 0.3, no_file, *[_by_suffix] * 7)
_change_split = changing("split.npz", 0.4, partial(change_zip, inside=change_npy))
_change_result = changing("runs/*/result.json", 0.3, _by_suffix)
_change_checkpoint = changing("runs/*/checkpoint.safetensors", 0.5, _by_suffix)

OWN_TARGETS = (
    *(
        Target(f"state of {n}", partial(_make_state, n), _change_state, _read_state, weight=0.4)
        for n in METHODS
    ),
    Target("learner's folder", _make_folder, _change_folder, _read_folder, weight=1.5),
    Target("graph folder", _make_graph, _change_graph, _read_graph),
    Target("split.npz", _make_split, _change_split, lambda f: load_split(f / "split.npz").sha256),
    Target("result.json", _make_runs, _change_result, _read_result, _plain_result, weight=2),
    Target("checkpoint", _make_checkpoint, _change_checkpoint, _read_checkpoint),
)

TARGETS: dict[str, Target] = {
    target.name: target for target in (*GRAPH_TARGETS, *TABLE_TARGETS, *OWN_TARGETS)
}
