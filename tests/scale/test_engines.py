"""The same bytes from every engine, whoever is killed on the way, and nothing is left of it."""

from __future__ import annotations

import os
import random
import resource
import signal
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256
from multiprocessing import active_children, get_context
from pathlib import Path
from shutil import rmtree
from typing import cast

import pytest

from extras.dask_engine import Dask
from tests.scale.conftest import SMALL, half_labelled, write_tables
from undrift.errors import InputError
from undrift.folder.folder import LearnerFolder
from undrift.folder.large import observe_large
from undrift.graphs import Graph
from undrift.propagation.learner import Propagation
from undrift.scale.blocks import EDGES, count_edges
from undrift.scale.engine import Local, _end_all, _end_with_parent, engine_of
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


def killing(how: Callable[[], int]) -> Progress:
    """A progress that kills a process when the first block is done."""
    left = [("propagate", 1)]

    def progress(phase: str, done: int, total: int) -> None:
        if (phase, done) in left:
            left.remove((phase, done))
            os.kill(how(), signal.SIGKILL)

    return progress


def test_a_pool_gives_the_same_bytes_and_outlives_a_worker(
    folder: GraphFolder, tmp_path: Path
) -> None:
    alone = everything(folder, Local(), tmp_path / "a.parquet")
    kill = killing(lambda: next(child.pid for child in active_children() if child.pid))
    with engine_of(workers=2) as pool:
        assert everything(folder, pool, tmp_path / "b.parquet", kill) == alone
    assert not folder.left_over()


def no_work(plan: BlockPlan, call: Call) -> None:
    """What a process does that is only to be started."""


def run_pool(workers: int = 2) -> int:
    """How many of six tasks a pool has done."""
    done: list[None] = []
    calls = [Call(f"call-{i}", no_work) for i in range(6)]
    with engine_of(workers=workers) as pool:
        pool.run(cast(BlockPlan, None), calls, lambda: done.append(None))
    return len(done)


def test_a_pool_outlives_a_process_that_is_killed_while_it_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
def test_a_pool_whose_processes_never_start_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(_: ProcessPoolExecutor) -> None:
        raise error

    monkeypatch.setattr(ProcessPoolExecutor, "_spawn_process", fail)
    with pytest.raises(InputError, match=r"2 processes were killed .*fewer workers"):
        run_pool()


def test_nothing_is_left_of_a_pool_that_broke_while_it_started() -> None:
    """Else its own end waits for a process that nobody ends."""
    straggler = get_context("spawn").Process(target=time.sleep, args=(60,))
    straggler.start()
    pool = ProcessPoolExecutor(1)
    pool._processes[straggler.pid] = straggler
    _end_all(pool)
    straggler.join(10)
    assert straggler.exitcode == -signal.SIGKILL
    pool._processes.clear()
    pool.shutdown()


def test_a_cluster_gives_the_same_bytes_and_outlives_a_worker(
    folder: GraphFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    alone = everything(folder, Local(), tmp_path / "a.parquet")
    processes = "UNDRIFT_KILLS" in os.environ  # slow to start; else a worker is a thread
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=processes
    )
    with cluster:
        address = cluster.scheduler_address

        def worker() -> int:
            with distributed.Client(address, set_as_default=False) as client:
                return int(next(iter(client.run(os.getpid).values())))

        def leaving(phase: str, done: int, total: int) -> None:
            if phase == "propagate" and done == 1:
                cluster.scale(1)

        with engine_of(dask=address) as dask:
            how = killing(worker) if processes else leaving
            assert everything(folder, dask, tmp_path / "b.parquet", how) == alone
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


def test_a_cluster_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extras.dask_engine._PATIENCE", 0.2)
    for address in ("tcp://127.0.0.1:1", "nonsense://"):
        silence = pytest.raises(InputError, match="no Dask scheduler answers at")
        with silence, engine_of(dask=address):
            pass
    for wrong, sentence in (
        ({"workers": 2, "dask": "x"}, "not both"),
        ({"workers": 0}, "1 or more"),
    ):
        with pytest.raises(InputError, match=sentence), engine_of(**wrong):
            pass


def test_a_scheduler_that_goes_is_one_sentence(
    folder: GraphFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")

    class Client:
        """As one whose scheduler was killed."""

        status = "cancelled"

        def submit(self, *_: object, **__: object) -> Client:
            return self

        def result(self) -> None:
            raise distributed.CancelledError

        def cancel(self, _: object) -> None:
            raise OSError("no scheduler to tell")

    dask = object.__new__(Dask)
    dask._client = Client()
    monkeypatch.setattr(Dask, "_finished", lambda _, left: iter(left))
    with pytest.raises(InputError, match=r"scheduler has gone .* goes on where it was"):
        dask.run(BlockPlan.of(folder, {}, range(6)), [Call(EDGES, count_edges)], lambda: None)


def test_a_worker_of_another_version_does_nothing(
    folder: GraphFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = BlockPlan.of(folder, {}, range(6))
    monkeypatch.setattr("undrift.__version__", "9.9")
    with pytest.raises(InputError, match=r"a worker has undrift 9\.9 and this process 0"):
        perform(plan, Call(EDGES, count_edges))


def test_a_full_disk_and_a_damaged_block_lose_nothing(folder: GraphFolder, tmp_path: Path) -> None:
    alone = everything(folder, Local(), tmp_path / "a.parquet")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:  # as a disk that is full when a file grows beyond this
        resource.setrlimit(resource.RLIMIT_FSIZE, (1500, limits[1]))
        with pytest.raises(InputError, match="free some space and give the same command again"):
            everything(folder, Local(), tmp_path / "b.parquet")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    blocks = sorted(folder.work.rglob("*.npy"))
    assert blocks
    blocks[0].write_bytes(b"rotten")
    assert everything(folder, Local(), tmp_path / "b.parquet") == alone


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_killed_at_any_instant_it_goes_on(tmp_path: Path) -> None:
    nodes, edges = write_tables(half_labelled(nodes=70, features=6), tmp_path)

    def job(place: Path) -> None:
        done = (place / "g" / "graph.json").exists() and not (place / "g" / "import.json").exists()
        if not done:
            import_graph(nodes, edges, place / "g", memory=SMALL)
        sha = everything(GraphFolder(place / "g"), Local(), place / "out.parquet")
        (place / "sha").write_text(sha, encoding="ascii")

    start = time.monotonic()
    (tmp_path / "whole").mkdir()
    job(tmp_path / "whole")
    seconds = time.monotonic() - start
    wanted = (tmp_path / "whole" / "sha").read_text(encoding="ascii")
    place = tmp_path / "killed"
    place.mkdir()
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
    killed, whole = (GraphFolder(folder / "g") for folder in (place, tmp_path / "whole"))
    assert killed.manifest == whole.manifest
    killed.verify()
    assert {path.name for path in killed.path.iterdir()} == {"graph.json", *killed.manifest.files}


# what is left ----------------------------------------------------------------------------


class Killed(BaseException):
    """As if the process ended here."""


def dying(*_: object) -> None:
    raise Killed


def test_killed_before_the_step_is_taken_no_task_is_done_again(
    folder: GraphFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    LearnerFolder.new(tmp_path / "desk", settings={"fourier": 0})
    with monkeypatch.context() as patch:
        patch.setattr("undrift.folder.draft.Draft.commit", dying)
        with pytest.raises(Killed):
            observe_large(tmp_path / "desk", folder.path, Local())
    assert folder.left_over()
    with monkeypatch.context() as patch:
        patch.setattr(BlockPlan, "put", dying)
        observe_large(tmp_path / "desk", folder.path, Local())
    assert not folder.work.exists()


def test_killed_after_the_step_is_taken_no_row_stays(
    folder: GraphFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    LearnerFolder.new(tmp_path / "desk", settings={"fourier": 0})
    with monkeypatch.context() as patch:
        patch.setattr(BlockPlan, "clear", dying)
        with pytest.raises(Killed):
            observe_large(tmp_path / "desk", folder.path, Local())
    assert folder.left_over()
    with pytest.raises(InputError, match="counting it twice would be wrong; nothing was changed"):
        observe_large(tmp_path / "desk", folder.path, Local())
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
        _end_with_parent()
        time.sleep(30)

    def ask() -> None:
        worker = fork.Process(target=wait)
        worker.start()
        theirs.send(worker.pid)
        time.sleep(30)

    asking = fork.Process(target=ask)
    asking.start()
    worker = int(mine.recv())
    os.kill(int(asking.pid or 0), signal.SIGKILL)
    asking.join()
    until = time.monotonic() + 10
    while alive(worker):
        assert time.monotonic() < until, "the worker goes on"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether a process is there and not a zombie that nobody waits for."""
    status = Path(f"/proc/{pid}/stat")
    return (
        status.exists() and status.read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] != "Z"
    )
