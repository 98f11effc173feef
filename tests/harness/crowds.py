"""Several processes at one folder at once: nobody's work is lost and nobody's is done twice."""

import time
from collections.abc import Callable
from pathlib import Path

from tests.harness.faults import ended, forked
from tests.harness.fuzz.table_targets import make_stream
from tests.harness.fuzz.targets import QUICK
from tests.harness.scenarios import Step, bench_step, plan_of
from undrift import InputError, LearnerFolder
from undrift.experiments import load_records
from undrift.testing import tiny_graph

_PATIENCE = 120.0  # seconds that a step may wait for others: a busy disk takes many for an fsync


def crowd(folder: Path, steps: list[Step]) -> None:
    """Run all steps at once, a process each, each again while another is at it."""

    def patient(step: Step) -> Step:
        def again(folder: Path) -> None:
            late = time.monotonic() + _PATIENCE
            while time.monotonic() < late:
                try:
                    step(folder)
                    return
                except InputError as error:
                    if "another process is" not in str(error):
                        raise AssertionError("refused") from error  # so that its trace is shown
                    time.sleep(0.01)
            raise AssertionError("never had its turn")

        return again

    codes = [ended(child, folder) for child in [forked(patient(step), folder) for step in steps]]
    assert not any(codes), f"processes ended with {codes}"


def observers(place: Path, size: int) -> None:
    """As many processes as batches observe, one batch each, while others predict."""
    place.mkdir()
    living = LearnerFolder.new(place / "desk", "bare", settings=QUICK)
    graphs = [tiny_graph(seed=i, nodes=24, classes=2) for i in range(size)]
    living.observe(tiny_graph(seed=99, nodes=24, classes=2))

    def observing(i: int) -> Step:
        return lambda folder: LearnerFolder(folder / "desk").observe(graphs[i])

    def predicting(folder: Path) -> None:
        for _ in range(5):
            LearnerFolder(folder / "desk").predict(graphs[0])

    steps: list[Step] = [observing(i) for i in range(size)]
    crowd(place, [*steps, *[predicting] * (size // 2)])
    assert len(living.show().record.batches) == size + 1, "a batch was lost, or is there twice"
    assert [line.step for line in living.history()] == list(range(size + 2)), "steps are missing"
    assert living.verify() == [], "something was left undone"


def makers(place: Path, size: int) -> None:
    """Everybody makes the same folder: one does, the others are refused."""
    place.mkdir()

    def making(folder: Path) -> None:
        try:
            LearnerFolder.new(folder / "desk", "bare", settings=QUICK)
        except ValueError as error:
            text = str(error)
            assert "is there already" in text or "cannot make the folder" in text, text

    crowd(place, [making] * size)
    assert LearnerFolder(place / "desk").verify() == []
    assert [path.name for path in place.iterdir()] == ["desk"], "something was left"


def benches(place: Path, size: int) -> None:
    """Everybody does the same plan: in the end every run is there, as one process makes it."""
    place.mkdir()
    make_stream(place)
    seeds = tuple(range(4))
    bench_step(place, place / "calm", seeds)
    wanted = load_records(place / "calm").results

    def bench(folder: Path) -> None:
        bench_step(folder, folder / "runs", seeds)

    crowd(place, [bench] * size)
    found = load_records(place / "runs")
    assert not found.damaged, found.damaged
    assert {n: r.matrix for n, r in found.results.items()} == {
        n: r.matrix for n, r in wanted.items()
    }
    [table] = found.manifests
    assert len(table.cells) == len(list(plan_of(place, seeds).cells())), "a cell is missing"
    assert not list((place / "runs").rglob("*.part")), "something was left"


CROWDS: dict[str, Callable[[Path, int], None]] = {
    "observe": observers,
    "make a folder": makers,
    "bench": benches,
}
