"""Killed at random instants, a graph folder ends with the same bytes.

    python -m benchmarks.kills 50 FOLDER          import, observe and predict, each killed 50 times
    python -m benchmarks.kills 50 FOLDER pool     the workers of a pool of two, killed 50 times
    python -m benchmarks.kills 50 FOLDER dask     those of a Dask cluster of two
    python -m benchmarks.kills 50 FOLDER disk     a disk that is full at 50 random sizes (as root)

The commands are those of the command line, in processes of their own that get SIGKILL; then the
same command is given again. What counts is only a kill that met a living process.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from multiprocessing import active_children, get_context
from pathlib import Path
from shutil import copytree, rmtree
from threading import Event, Thread

import torch

from benchmarks.large_graph import write_large_graph
from undrift.cli.app import start
from undrift.errors import InputError
from undrift.folder.folder import LearnerFolder
from undrift.propagation.learner import Propagation
from undrift.scale.engine import Local, engine_of
from undrift.scale.graph_folder import GraphFolder
from undrift.scale.learning import observe, predict
from undrift.scale.plan import Engine

NODES, EDGES, FEATURES, MEMORY = 20_000, 160_000, 24, 0.01
SPACE = 1 << 30
LEFT = (".part", "spill", "stage.duckdb", "import.json", "work")


def commands(place: Path) -> dict[str, list[str]]:
    """The command lines by name."""
    graph, desk = str(place / "graph"), str(place / "desk")
    tables = [str(place.parent / f"{name}.parquet") for name in ("nodes", "edges")]
    out = str(place / "predicted.parquet")
    return {
        "import": ["graph", "import", *tables, "--out", graph, "--memory", str(MEMORY)],
        "observe": ["learner", "observe", desk, graph],
        "predict": ["learner", "predict", desk, graph, "--out", out],
    }


def digest_of(name: str, place: Path) -> str:
    """A hash of all that a command leaves; what it must not leave is an error."""
    left = [str(path) for path in place.rglob("*") if path.name.endswith(LEFT)]
    assert not left, left
    digest = sha256()
    if name == "import":
        for path in sorted((place / "graph").iterdir()):
            digest.update(path.name.encode() + path.read_bytes())
    elif name == "observe":
        learner = LearnerFolder(place / "desk").learner()
        for key, tensor in sorted(learner.state().tensors.items()):
            digest.update(key.encode() + tensor.numpy().tobytes())
    else:
        digest.update((place / "predicted.parquet").read_bytes())
    return digest.hexdigest()


def killed(name: str, place: Path, kills: int, draw: random.Random) -> None:
    """One command, killed so often; what came of it is printed."""
    arguments = commands(place)[name]
    before = place.with_name(f"before-{name}")
    copytree(place, before)
    times = []
    for _ in range(3):  # the least: a machine has other things to do
        rmtree(place)
        copytree(before, place)
        begin = time.monotonic()
        assert _in_process(arguments, None) == 0
        times.append(time.monotonic() - begin)
        wanted = digest_of(name, place)
    seconds = min(times)
    hits = finished = late = 0
    rmtree(place)
    copytree(before, place)
    while True:
        code = _in_process(arguments, draw.uniform(0, seconds) if hits < kills else None)
        if code == -signal.SIGKILL:
            hits += 1
            continue
        if code:  # it was killed when all was done: nothing is done twice
            _refused_as_done(name, place)
            late += 1
        assert digest_of(name, place) == wanted, f"{name}: other bytes after {hits} kills"
        finished += 1
        if hits == kills:
            break
        rmtree(place)
        copytree(before, place)
    print(
        f"{name}: {hits} kills within {seconds:.1f} s; {finished} times whole "
        f"({late} of them killed after the last of it), the same bytes",
        flush=True,
    )


def _refused_as_done(name: str, place: Path) -> None:
    """Whether a command that was refused had been done before."""
    if name == "import":
        GraphFolder(place / "graph").verify()
    else:
        assert LearnerFolder(place / "desk").learner().classes_, "refused but not done"


def _in_process(arguments: list[str], seconds: float | None, said: Path | None = None) -> int:
    """The exit code of a command line in a process that is killed after so many seconds."""

    def work() -> None:
        os.dup2(os.open(said or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.dup2(2, 1)
        sys.exit(start(arguments))

    process = get_context("fork").Process(target=work)
    process.start()
    process.join(seconds)
    if process.is_alive():
        process.kill()
    process.join()
    return int(process.exitcode or 0)


# a full disk -----------------------------------------------------------------------------


def filled(name: str, place: Path, times: int, draw: random.Random) -> None:
    """One command on a disk of little space, then with more; what came of it is printed."""
    arguments = commands(place)[name]
    before = place.with_name(f"before-{name}")
    copytree(place, before)
    used = _used(before)
    assert _in_process(arguments, None) == 0
    wanted, most = digest_of(name, place), 2 * _used(place)
    full = 0
    while full < times:
        _emptied(place, before)
        _sized(place, used + int(draw.random() * most))
        code = _in_process(arguments, None, place.parent / "said")
        _sized(place, SPACE)
        if code:
            said = (place.parent / "said").read_text(encoding="utf-8")
            sentence = [line for line in said.splitlines() if line.startswith("undrift: ")]
            assert (code, len(sentence)) == (2, 1), said
            assert "free some space" in sentence[0], said
            assert _in_process(arguments, None) == 0
            full += 1
        assert digest_of(name, place) == wanted, f"{name}: other bytes after a full disk"
    print(f"{name}: {full} times on a full disk, one sentence; with more space the same bytes")


def _used(folder: Path) -> int:
    """Bytes of all files, in the pages of a tmpfs."""
    return sum(-(-p.stat().st_size // 4096) * 4096 for p in folder.rglob("*") if p.is_file())


def _emptied(place: Path, before: Path) -> None:
    for path in place.iterdir():
        rmtree(path) if path.is_dir() else path.unlink()
    copytree(before, place, dirs_exist_ok=True)


def _sized(place: Path, size: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(place)], check=True)


# workers ---------------------------------------------------------------------------------


def workers_killed(
    kills: int,
    place: Path,
    engine: Engine,
    pids: Callable[[], list[int]],
    more: Callable[[], object],
    draw: random.Random,
) -> None:
    """Observe and predict over and over while workers are killed; the same bytes each time.

    `more` starts a worker where all have died.
    """
    folder = GraphFolder(place / "graph")
    wanted = _learned(folder, Local(), place)
    counts: Counter[str] = Counter()
    with _killer(pids, draw, counts):
        while counts["kills"] < kills:
            try:
                assert _learned(folder, engine, place) == wanted, "other bytes"
                counts["whole"] += 1
            except InputError as error:  # workers died faster than they worked
                if "goes on where it was" not in str(error):
                    raise
                counts["given again"] += 1
                more()
    print(f"{type(engine).__name__}: {dict(counts)}, the same bytes")


def _learned(folder: GraphFolder, engine: Engine, place: Path) -> str:
    names = list(folder.manifest.classes)
    learner, out = Propagation(), place / "of-workers.parquet"
    plans = observe(learner, folder, {c: i for i, c in enumerate(names)}, engine)
    predict(learner, folder, names, out, engine)
    for plan in plans:
        plan.clear()
    digest = sha256(out.read_bytes())
    for key, tensor in sorted(learner.state().tensors.items()):
        digest.update(key.encode() + tensor.numpy().tobytes())
    return digest.hexdigest()


@contextmanager
def _killer(
    pids: Callable[[], list[int]], draw: random.Random, counts: Counter[str]
) -> Iterator[None]:
    """Kill a worker every now and then."""
    over = Event()

    def work() -> None:
        while not over.wait(draw.uniform(0.3, 4)):
            there = pids()
            if there:
                with suppress(ProcessLookupError):  # dead, and not yet replaced
                    os.kill(draw.choice(there), signal.SIGKILL)
                    counts["kills"] += 1

    thread = Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def main(kills: str, where: str, how: str = "process") -> None:
    """Make the tables, then kill."""
    torch.set_num_threads(1)
    base = Path(where)
    place = base / how
    draw = random.Random(0)
    write_large_graph(base, NODES, EDGES, FEATURES)
    for old in (place, *base.glob("before-*")):
        rmtree(old, ignore_errors=True)
    place.mkdir(parents=True)
    if how in ("process", "disk"):
        if how == "disk":
            subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(place)], check=True)
        assert start(["learner", "new", str(place / "desk")]) == 0
        for name in ("import", "observe", "predict"):
            (killed if how == "process" else filled)(name, place, int(kills), draw)
        if how == "disk":
            subprocess.run(["umount", str(place)], check=True)
        return
    assert start(commands(place)["import"]) == 0
    if how == "pool":
        with engine_of(workers=2) as pool:
            pids = lambda: [child.pid for child in active_children() if child.pid]  # noqa: E731
            workers_killed(int(kills), place, pool, pids, lambda: None, draw)
        return
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:

        def alive() -> list[int]:  # a nanny gives up a worker that dies while it begins
            running = [n for n in cluster.workers.values() if n.status.name == "running"]
            return [n.pid for n in running if n.pid]

        with engine_of(dask=cluster.scheduler_address) as dask:
            more = lambda: cluster.scale(len(cluster.workers) + 1)  # noqa: E731
            workers_killed(int(kills), place, dask, alive, more, draw)


if __name__ == "__main__":
    main(*sys.argv[1:])
