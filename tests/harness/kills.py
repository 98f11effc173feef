"""Kills at random instants, and many processes at one folder. Unix only."""

from __future__ import annotations

import os
import shutil
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.harness.faults import forked
from tests.harness.scenarios import Scenario, Step
from undrift.errors import InputError

_REFUSED, _BROKEN = 78, 79


def kill_at_random(scenario: Scenario, kills: int, seed: int = 0) -> tuple[int, int]:
    """Kill the step at random instants until it was killed so many times.

    The folder that a kill left is taken up again by the next step, as a person would; after each
    that was done, or a few kills in a row, it is checked and begun anew. How many kills hit a
    running step, and how many steps were begun.
    """
    random = Random(seed)
    work = scenario.start.with_name(f"{scenario.start.name}-killed-{seed}")
    shutil.copytree(scenario.start, work)
    length = _timed(scenario, work)
    hit = begun = row = 0
    while hit < kills:
        child = _forked(scenario.step, work)
        begun += 1
        time.sleep(random.uniform(0.0, 1.1 * length))
        os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        killed = code == -signal.SIGKILL
        assert code != _BROKEN, f"{(work / 'trace').read_text()}"
        hit += killed
        row += killed
        if not killed or row >= random.randrange(1, 5):
            scenario.check(work, not killed and code == 0)
            shutil.rmtree(work)
            shutil.copytree(scenario.start, work)
            row = 0
    shutil.rmtree(work)
    return hit, begun


def _timed(scenario: Scenario, work: Path) -> float:
    """How long the step takes, the second time: the first loads what it needs."""
    length = 0.0
    for _ in range(2):
        began = time.monotonic()
        os.waitpid(_forked(scenario.step, work), 0)
        length = time.monotonic() - began
        shutil.rmtree(work)
        shutil.copytree(scenario.start, work)
    return length


def crowd(folder: Path, steps: list[Step]) -> list[str]:
    """Run all steps at once, a process each, each again while another is at it; their traces."""
    children = {_forked(_patient(step), folder): i for i, step in enumerate(steps)}
    codes = {i: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child, i in children.items()}
    return [f"process {i} ended with {code}" for i, code in codes.items() if code]


def _patient(step: Callable[[Path], object]) -> Step:
    def again(folder: Path) -> None:
        for _ in range(2000):
            try:
                step(folder)
                return
            except InputError as error:
                if "another process is" not in str(error):
                    raise
                time.sleep(0.01)
        raise InputError("never had its turn")

    return again


def _forked(step: Step, folder: Path) -> int:
    child = forked()
    if child:
        return child
    code = 0
    try:
        step(folder)
    except InputError:
        code = _REFUSED
    except BaseException:
        (folder / "trace").write_text(traceback.format_exc(), encoding="utf-8")
        code = _BROKEN
    os._exit(code)
