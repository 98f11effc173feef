"""The same bytes from every engine, whoever is killed on the way, and nothing is left of it."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from hashlib import sha256
from multiprocessing import active_children, get_context
from pathlib import Path
from shutil import rmtree
from typing import cast
from unittest.mock import Mock

import pytest

from extras.dask_engine import Dask
from tests.scale.conftest import SMALL, full_disk, half_labelled, write_tables
from undrift import Graph, InputError, LearnerFolder, Propagation
from undrift.machine import end_with_parent
from undrift.scale.blocks import EDGES, count_edges
from undrift.scale.engine import Local, _end, engine_of
from undrift.scale.graph_folder import GraphFolder
from undrift.scale.importing import import_graph
from undrift.scale.learning import observe, predict
from undrift.scale.plan import BlockPlan, Call, Engine, complete, perform
from undrift.typing import Progress, silent

CLASSES = {f"c{i}": i for i in range(6)}
KILLS = int(os.environ.get("UNDRIFT_KILLS", "3"))
"""How often a process is killed; 50 takes a minute."""


def everything(folder: GraphFolder, engine: Engine, out: Path, progress: Progress = silent) -> str:
    """A hash of what is learned and of what is predicted."""
    learner = Propagation(fourier=8)
    plans = observe(learner, folder, CLASSES, engine, progress=progress)
    predict(learner, folder, [f"c{c}" for c in learner.classes_], out, engine, progress=progress)
    for plan in plans:
        plan.clear()
    tensors = sorted(learner.state().tensors.items())
    told = b"".join(name.encode() + tensor.numpy().tobytes() for name, tensor in tensors)
    return sha256(told + out.read_bytes()).hexdigest()


@pytest.fixture
def folder(imported: Callable[[Graph], GraphFolder]) -> GraphFolder:
    return imported(half_labelled(nodes=70, features=6))


def at_first_block(act: Callable[[], object]) -> Progress:
    """A progress that does something once, when the first block is done."""
    left = [("propagate", 1)]

    def progress(phase: str, done: int, total: int) -> None:
        if (phase, done) in left:
            left.remove((phase, done))
            act()

    return progress


def test_a_pool_gives_the_same_bytes_and_outlives_a_worker(folder, tmp_path) -> None:
    alone = everything(folder, Local(), tmp_path / "a.parquet")
    kill = at_first_block(lambda: os.kill(active_children()[0].pid, signal.SIGKILL))
    with engine_of(workers=2) as pool:
        assert everything(folder, pool, tmp_path / "b.parquet", kill) == alone
    assert not folder.left_over()


def no_work(plan: BlockPlan, call: Call) -> None:
    """What a process does that is only to be started."""


def run_pool() -> int:
    """How many of six tasks a pool of two has done."""
    done: list[None] = []
    with engine_of(workers=2) as pool:
        calls = [Call(f"call-{i}", no_work) for i in range(6)]
        pool.run(cast(BlockPlan, None), calls, lambda: done.append(None))
    return len(done)


def test_a_pool_outlives_a_process_that_is_killed_while_it_starts(monkeypatch) -> None:
    spawn, killed = ProcessPoolExecutor._spawn_process, []

    def killing_two(pool: ProcessPoolExecutor) -> None:
        spawn(pool)
        if len(killed) < 2:
            killed.append(list(pool._processes)[-1])
            os.kill(killed[-1], signal.SIGKILL)

    monkeypatch.setattr(ProcessPoolExecutor, "_spawn_process", killing_two)
    monkeypatch.setattr("undrift.scale.engine.perform", no_work)
    assert run_pool() == 6
    assert len(killed) == 2


@pytest.mark.parametrize("error", [BrokenPipeError(32, "Broken pipe"), EOFError("unexpected EOF")])
def test_a_pool_whose_processes_never_start_is_one_sentence(monkeypatch, error: Exception) -> None:
    def fail(_: ProcessPoolExecutor) -> None:
        raise error

    monkeypatch.setattr(ProcessPoolExecutor, "_spawn_process", fail)
    with pytest.raises(InputError, match=r"2 processes were killed .*fewer workers"):
        run_pool()


def test_a_pool_ends_where_an_idle_process_is_killed() -> None:
    """The other one waits for a lock of the killed; to close the pool alone hung 3 times of 12."""
    for _ in range(6):
        pool, seen = ProcessPoolExecutor(2, get_context("forkserver")), set()
        while len(seen) < 2:
            seen |= {future.result() for future in [pool.submit(os.getpid) for _ in range(8)]}
        (holder,) = seen - {pool.submit(os.getpid).result()}  # it waits for work, with the lock
        time.sleep(0.05)
        ending = threading.Thread(target=_end, args=(pool,), daemon=True)
        os.kill(holder, signal.SIGKILL)
        ending.start()
        ending.join(20)
        assert not ending.is_alive()


def test_a_cluster_gives_the_same_bytes_and_outlives_a_worker(folder, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    alone = everything(folder, Local(), tmp_path / "a.parquet")
    processes = "UNDRIFT_KILLS" in os.environ  # slow to start; else a worker is a thread
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=processes
    )
    with cluster:
        address = cluster.scheduler_address

        def lose() -> None:
            with distributed.Client(address, set_as_default=False) as client:
                worker = next(iter(client.run(os.getpid).values()))
            if processes:
                os.kill(worker, signal.SIGKILL)
            else:
                cluster.scale(1)

        with engine_of(dask=address) as dask:
            assert everything(folder, dask, tmp_path / "b.parquet", at_first_block(lose)) == alone
        monkeypatch.setattr("extras.dask_engine._PATIENCE", 0.1)
        gone = pytest.raises(InputError, match="has lost all its workers; start some with")
        with engine_of(dask=address) as dask, gone:
            everything(folder, dask, tmp_path / "c.parquet", lambda *_: cluster.scale(0))
        cluster.scale(1)
        monkeypatch.setattr("extras.dask_engine._PATIENCE", 10)
        monkeypatch.setattr("extras.dask_engine.installed", lambda: "9.9")
        other = pytest.raises(InputError, match=r"has undrift 0.* and this process 9\.9; install")
        with other, engine_of(dask=address):
            pass


def test_a_cluster_that_does_not_answer(monkeypatch) -> None:
    monkeypatch.setattr("extras.dask_engine._PATIENCE", 0.2)
    for address in ("tcp://127.0.0.1:1", "nonsense://"):
        silence = pytest.raises(InputError, match="no Dask scheduler answers at")
        with silence, engine_of(dask=address):
            pass
    for how, why in (
        ({"workers": 0}, "1 or more"),
        ({"workers": 2, "dask": "tcp://x:1"}, "not both"),
    ):
        with pytest.raises(InputError, match=why), engine_of(**how):
            pass


def test_a_scheduler_that_goes_is_one_sentence(folder: GraphFolder, monkeypatch) -> None:
    distributed = pytest.importorskip("distributed")

    # as one whose scheduler was killed
    dask, gone = object.__new__(Dask), Mock(status="cancelled")
    gone.result.side_effect = distributed.CancelledError
    dask._client = Mock()
    dask._client.submit.return_value = gone
    dask._client.cancel.side_effect = OSError("no scheduler to tell")
    monkeypatch.setattr(Dask, "_finished", lambda _, left: iter(left))
    with pytest.raises(InputError, match=r"scheduler has gone .* goes on where it was"):
        dask.run(BlockPlan.of(folder, {}, range(6)), [Call(EDGES, count_edges)], lambda: None)


def test_a_worker_of_another_version_does_nothing(folder: GraphFolder, monkeypatch) -> None:
    plan = BlockPlan.of(folder, {}, range(6))
    monkeypatch.setattr("undrift.__version__", "9.9")
    with pytest.raises(InputError, match=r"a worker has undrift 9\.9 and this process 0"):
        perform(plan, Call(EDGES, count_edges))


def test_a_full_disk_and_a_damaged_block_lose_nothing(folder: GraphFolder, tmp_path) -> None:
    alone = everything(folder, Local(), tmp_path / "a.parquet")
    with full_disk(1500):
        everything(folder, Local(), tmp_path / "b.parquet")
    min(folder.work.rglob("*.npy")).write_bytes(b"rotten")
    assert everything(folder, Local(), tmp_path / "b.parquet") == alone


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_killed_at_any_instant_it_goes_on(tmp_path) -> None:
    nodes, edges = write_tables(half_labelled(nodes=70, features=6), tmp_path)

    def job(place: Path) -> None:
        done = (place / "g" / "graph.json").exists() and not (place / "g" / "import.json").exists()
        if not done:
            import_graph(nodes, edges, place / "g", memory=SMALL)
        sha = everything(GraphFolder(place / "g"), Local(), place / "out.parquet")
        (place / "sha").write_text(sha, encoding="ascii")

    calm, place, start = tmp_path / "calm", tmp_path / "killed", time.monotonic()
    calm.mkdir()
    place.mkdir()
    job(calm)
    seconds = time.monotonic() - start
    wanted = (calm / "sha").read_text(encoding="ascii")
    draw = random.Random(0)
    for _ in range(KILLS):
        process = get_context("fork").Process(target=job, args=(place,))
        process.start()
        process.join(draw.uniform(0, 0.7 * seconds))
        process.kill()
        process.join()
        if (place / "sha").exists():  # it was done: once more from the beginning
            assert (place / "sha").read_text(encoding="ascii") == wanted
            (place / "sha").unlink()
            rmtree(place / "g")
    job(place)
    assert (place / "sha").read_text(encoding="ascii") == wanted
    killed, whole = (GraphFolder(folder / "g") for folder in (place, calm))
    assert killed.manifest == whole.manifest
    killed.verify()
    assert {path.name for path in killed.path.iterdir()} == {"graph.json", *killed.manifest.files}


def dying(*_: object) -> None:
    raise SystemExit  # as if the process ended here


@pytest.mark.parametrize("end", ["folder.draft.Draft.commit", "scale.plan.BlockPlan.clear"])
def test_killed_around_the_step_no_task_is_done_again_and_no_row_stays(
    end: str, folder: GraphFolder, tmp_path, monkeypatch
) -> None:
    desk = LearnerFolder.new(tmp_path / "desk", settings={"fourier": 0})
    with monkeypatch.context() as patch:
        patch.setattr(f"undrift.{end}", dying)
        with pytest.raises(SystemExit):
            desk.observe(folder.path)
    assert folder.left_over()
    monkeypatch.setattr(BlockPlan, "put", dying)
    twice = pytest.raises(InputError, match="counting it twice would be wrong; nothing was changed")
    with nullcontext() if "commit" in end else twice:
        desk.observe(folder.path)
    assert not folder.work.exists()


def test_half_a_file_of_a_killed_task_goes(folder: GraphFolder) -> None:
    plan = BlockPlan.of(folder, {}, range(6))
    plan.work.mkdir(parents=True)
    (plan.work / ".block-0-00000.npy.0123abcd.part").write_bytes(b"half")
    complete(plan, [], Local(), "", silent)
    assert not list(plan.work.iterdir())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_worker_ends_with_the_process_that_asked() -> None:
    fork = get_context("fork")
    mine, theirs = fork.Pipe()

    def wait() -> None:
        end_with_parent()
        time.sleep(30)

    def ask() -> None:
        worker = fork.Process(target=wait)
        worker.start()
        theirs.send(worker.pid)
        time.sleep(30)

    asking = fork.Process(target=ask)
    asking.start()
    worker = int(mine.recv())
    asking.kill()
    asking.join()
    until = time.monotonic() + 10
    while alive(worker):
        assert time.monotonic() < until, "the worker goes on"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether a process is there and not a zombie that nobody waits for."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and ") Z " not in status.read_text(encoding="ascii")
