"""What a killed process leaves: files that the next takes up or deletes, and no process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import pytest

from tests.scale.conftest import half_labelled
from undrift.errors import InputError
from undrift.folder.folder import LearnerFolder
from undrift.folder.large import observe_large
from undrift.graphs import Graph
from undrift.scale.engine import Local, _end_with_parent
from undrift.scale.graph_folder import GraphFolder
from undrift.scale.plan import BlockPlan, complete
from undrift.typing import silent


class Killed(BaseException):
    """As if the process ended here."""


def killing(*_: object) -> None:
    raise Killed


@pytest.fixture
def folder(imported: Callable[[Graph], GraphFolder]) -> GraphFolder:
    return imported(half_labelled(nodes=60, features=3))


def test_killed_before_the_step_is_taken_no_task_is_done_again(
    folder: GraphFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    LearnerFolder.new(tmp_path / "desk", settings={"fourier": 0})
    with monkeypatch.context() as patch:
        patch.setattr("undrift.folder.draft.Draft.commit", killing)
        with pytest.raises(Killed):
            observe_large(tmp_path / "desk", folder.path, Local())
    assert folder.left_over()
    with monkeypatch.context() as patch:
        patch.setattr(BlockPlan, "put", killing)
        observe_large(tmp_path / "desk", folder.path, Local())
    assert not folder.work.exists()


def test_killed_after_the_step_is_taken_no_row_stays(
    folder: GraphFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    LearnerFolder.new(tmp_path / "desk", settings={"fourier": 0})
    with monkeypatch.context() as patch:
        patch.setattr(BlockPlan, "clear", killing)
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
