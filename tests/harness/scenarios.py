"""What undrift writes, as steps that can be cut off: each with a check of what is left.

A scenario is a folder to start from, a step `step(folder)`, and `check(folder, done)`, which says
with an AssertionError what is wrong after a fault, and does the step again until it is done.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from tests.harness.fuzz.table_targets import make_stream
from tests.harness.fuzz.targets import QUICK, batches
from undrift import Bare, InputError, LearnerFolder
from undrift.experiments import load_records
from undrift.experiments.bench import BUSY, FAILED, WorkerSettings, perform, record_plans
from undrift.experiments.checkpoint import clean
from undrift.experiments.plan import BenchPlan, PlanRow, jobs_of
from undrift.folder import RecommenderFolder
from undrift.storage import load_state, save_state
from undrift.storage.files import writable_folder
from undrift.storage.lock import sweep
from undrift.testing import tiny_stream

Step = Callable[[Path], object]


@dataclass(frozen=True)
class Scenario:
    """A step, the folder that it starts from, and the check of what is left."""

    start: Path
    step: Step
    check: Callable[[Path, bool], None]


def saving(start: Path) -> Scenario:
    """A state is saved over another."""
    start.mkdir()
    stream = tiny_stream()
    learner = Bare.from_params(**QUICK).observe(stream.task(0))
    save_state(start / "state", learner.state())
    after = learner.observe(stream.task(1)).state()

    def step(folder: Path) -> None:
        save_state(folder / "state", after)

    def check(folder: Path, done: bool) -> None:
        known = Bare.from_params(**QUICK).load(load_state(folder / "state")).classes_
        assert known in ((0, 1), (0, 1, 2, 3)), f"a state of the classes {known}"
        assert not done or len(known) == 4, "it ended well and the old state is there"
        sweep([folder])
        assert [path.name for path in folder.iterdir()] == ["state"], "something was left"
        step(folder)
        assert len(load_state(folder / "state").values) > 0, "again does not work"

    return Scenario(start, step, check)


def beginning(place: Path) -> Scenario:
    """A folder is made for a new learner."""
    place.mkdir()

    def step(folder: Path) -> None:
        LearnerFolder.new(folder / "desk", "bare", settings=QUICK)

    def check(folder: Path, done: bool) -> None:
        there = (folder / "desk").exists()
        assert there or not done, "it ended well and there is no folder"
        if not there:
            step(folder)
        assert LearnerFolder(folder / "desk").verify() == [], "a new folder was not whole"
        assert [path.name for path in folder.iterdir()] == ["desk"], "something was left"

    return Scenario(place, step, check)


def _desk_step(
    place: Path, step: Step, held: int, check: Callable[[LearnerFolder], None]
) -> Scenario:
    """A step of a learner's folder after which so many batches are held, 1 or 2; else the other."""

    def checked(folder: Path, done: bool) -> None:
        living = LearnerFolder(folder / "desk")
        found = len(living.show().record.batches)
        assert found in (1, 2), f"{found} batches are held"
        assert not done or found == held, "it ended well and nothing was done"
        if found != held:
            step(folder)
        check(living)
        living.verify()
        assert not list(folder.rglob("*.part")), "something was left"

    return Scenario(place, step, checked)


def observing(place: Path) -> Scenario:
    """A learner in a folder observes a batch."""
    place.mkdir()
    first, second = batches((0, 1), (2, 3))
    LearnerFolder.new(place / "desk", "bare", settings=QUICK).observe(first)

    def check(living: LearnerFolder) -> None:
        assert len(living.learner().classes_) == 4, "again does not work"

    return _desk_step(place, lambda f: LearnerFolder(f / "desk").observe(second), 2, check)


def releasing(place: Path) -> Scenario:
    """A private learner in a folder observes a batch: whatever is left of it is one release."""
    place.mkdir()
    first, second = batches((0, 1), (2, 3))
    settings = {"epsilon": 2.0, "class_list": (0, 1, 2, 3), "hops": 1}
    LearnerFolder.new(place / "desk", "propagation", settings=settings).observe(first)
    known = {path.name for path in (place / "desk").glob("state-*")}
    plain = _desk_step(
        place, lambda f: LearnerFolder(f / "desk").observe(second), 2, lambda living: None
    )

    def check(folder: Path, done: bool) -> None:
        desk = folder / "desk"
        left = [path for path in desk.glob("state-*") if path.name not in known]
        grams = [load_state(path).tensors["sums.gram"] for path in left]
        plain.check(folder, done)
        learned: Any = LearnerFolder(desk).learner().learned_
        final = learned.sums.gram
        assert all(torch.equal(gram, final) for gram in grams), "two releases of one batch"
        assert not (desk / "begun.json").exists(), "the key of a finished noise was left"

    return Scenario(place, plain.step, check)


def forgetting(place: Path) -> Scenario:
    """A learner in a folder forgets a batch, exactly."""
    place.mkdir()
    first, second = batches((0, 1), (2, 3))
    living = LearnerFolder.new(place / "desk", "propagation")
    living.observe(first)
    before = _counts(living)
    living.observe(second)

    def check(living: LearnerFolder) -> None:
        assert _counts(living) == before, "what is left is not what was before"

    return _desk_step(place, lambda f: LearnerFolder(f / "desk").forget(second), 1, check)


def erasing(place: Path) -> Scenario:
    """A recommender in a folder forgets a session; after it the batch is another one."""
    place.mkdir()
    rows = {"session": ["s", "s", "t", "t"], "item": ["a", "b", "a", "c"]}
    living = RecommenderFolder.new(place / "desk", remember_nodes=True)
    living.observe(rows, in_order=True)
    living.observe({**rows, "session": ["u", "u", "v", "v"]})

    def step(folder: Path) -> None:
        desk = RecommenderFolder(folder / "desk")
        if desk.learner().sessions_ == 4:  # not done yet
            desk.forget_node("session s", [rows])

    def check(folder: Path, done: bool) -> None:
        desk = RecommenderFolder(folder / "desk")
        assert desk.learner().sessions_ in ((3,) if done else (3, 4)), "half a step"
        step(folder)
        assert desk.forget_node("session s").outcome == "never here", "again does not work"
        desk.verify()
        assert not list(folder.rglob("*.part")), "something was left"
        assert len(list(folder.rglob("state-*"))) == 1, "two states give away the session"

    return Scenario(place, step, check)


def _counts(living: LearnerFolder) -> dict[str, list[float]]:
    tensors = living.learner().state().tensors
    return {name: t.double().flatten().tolist() for name, t in tensors.items() if "counts" in name}


def benching(place: Path, seeds: tuple[int, ...] = (0,)) -> Scenario:
    """What a worker of `bench` does: the runs in the end are those of an undisturbed bench."""
    place.mkdir()
    make_stream(place)
    calm = place / "calm"
    bench_step(place, calm, seeds)
    wanted = _accuracies(calm)

    def step(folder: Path) -> None:
        bench_step(place, folder / "runs", seeds)

    def check(folder: Path, done: bool) -> None:
        runs = folder / "runs"
        assert not done or _accuracies(runs) == wanted, "it ended well and a run is missing"
        if runs.is_dir():
            assert not load_records(runs).damaged, load_records(runs).damaged
        step(folder)
        assert _accuracies(runs) == wanted, "the table is another than that of a calm bench"
        left = [p.name for p in runs.rglob("*") if p.suffix in (".part", ".safetensors")]
        assert not left, f"left: {left}"

    (place / "start").mkdir()
    return Scenario(place / "start", step, check)


def bench_step(place: Path, runs: Path, seeds: tuple[int, ...]) -> None:
    """The runs of a plan one after the other, in this process; a failure is raised."""
    plan = plan_of(place, seeds)
    clean(writable_folder(runs))
    said: list[tuple[str, ...]] = []
    for job in jobs_of([plan], {}):
        perform(job, runs, lambda *message: said.append(message), WorkerSettings())
        if said[-1][0] == FAILED:
            assert not said[-1][2], said[-1][2]  # a trace: no sentence
            raise InputError(said[-1][1])
        if said[-1][0] == BUSY:
            raise InputError("another process is at it")
    record_plans([plan], runs)


def plan_of(place: Path, seeds: tuple[int, ...]) -> BenchPlan:
    """A plan of one method on one stream of tables."""
    stream = str(place / "stream.toml")
    return BenchPlan("mine", "Mine", (PlanRow("bare", "bare", QUICK),), (stream,), seeds=seeds)


def _accuracies(runs: Path) -> dict[str, Any]:
    if not runs.is_dir():
        return {}
    found = load_records(runs)
    assert [m.plan for m in found.manifests] == ["mine"] or not found.results, "no table"
    return {name: result.matrix.model_dump_json() for name, result in found.results.items()}


def reporting(place: Path) -> Scenario:
    """A report is written over an older one; with one figure, as drawing takes most of the time."""
    from undrift.reporting import report
    from undrift.reporting.figures import figure

    place.mkdir()
    make_stream(place)
    bench_step(place, place / "runs", (0,))
    records = load_records(place / "runs")
    few = [each for each in figure.all_figures(records) if not each.left_out][:1]

    def step(folder: Path) -> None:
        with mock.patch("undrift.reporting.report.all_figures", return_value=few):
            report.write_report(records, folder / "report")

    (place / "start").mkdir()
    step(place / "start")
    wanted = _files(place / "start")
    (place / "start" / "report" / "index.html").write_text("an older one", encoding="utf-8")

    def check(folder: Path, done: bool) -> None:
        page = (folder / "report" / "index.html").read_bytes()
        assert page in (b"an older one", wanted["index.html"]), "half a page"
        assert not done or page == wanted["index.html"], "it ended well and the old page is there"
        step(folder)
        assert _files(folder) == wanted, "again gives another report"

    return Scenario(place / "start", step, check)


def _files(folder: Path) -> dict[str, bytes]:
    there = (path for path in (folder / "report").rglob("*") if path.is_file())
    names = {str(path.relative_to(folder / "report")): path for path in there}
    return {name: path.read_bytes() for name, path in names.items() if ".lock" not in name}


SCENARIOS: dict[str, Callable[[Path], Scenario]] = {
    "save a state": saving,
    "make a folder": beginning,
    "observe in a folder": observing,
    "observe with noise": releasing,
    "forget in a folder": forgetting,
    "erase in a shop": erasing,
    "a step of bench": benching,
    "write a report": reporting,
}
