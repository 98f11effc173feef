"""Processes that run cases, with a watchdog and a limit of memory; one that dies is replaced."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tests.harness.fuzz.guard import BYTES, SECONDS, Case, copied, run_case
from tests.harness.fuzz.targets import TARGETS

Job = tuple[str, int, int]
"""A target, its first seed, and how many."""


class Workers:
    """Processes that run cases; one that dies, or is too long at one, has found something."""

    def __init__(self, number: int, clean: Path, place: Path) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._number, self._clean, self._place = number, clean, place
        self._started = 0
        self._died: set[tuple[str, int]] = set()

    def run(self, jobs: list[Job], until: float) -> Iterator[Case]:
        """Every case of these jobs, as they end."""
        left = list(reversed(jobs))
        busy: dict[Any, tuple[Any, Job]] = {}
        idle: list[tuple[Any, Any]] = []
        while (left and time.monotonic() < until) or busy:
            while left and len(busy) < self._number and time.monotonic() < until:
                process, line = idle.pop() if idle else self._start()
                busy[line] = process, left.pop()
                line.send(busy[line][1])
            ready: list[Any] = wait(list(busy), timeout=1.0)
            for line in ready:
                process, (name, first, count) = busy.pop(line)
                try:
                    case = line.recv()
                except (EOFError, OSError):
                    process.join(5)
                    again = (name, first) not in self._died  # a machine may be that slow: once more
                    self._died.add((name, first))
                    if not again:
                        said = f"the process ended ({process.exitcode}): too long at it, or killed"
                        yield Case(name, first, "", "found", said, SECONDS)
                        first, count = first + 1, count - 1
                    left += [(name, first, count)] if count else []
                    continue
                if case is None:
                    idle.append((process, line))
                else:
                    yield case
                    done = case.seed + 1 - first
                    busy[line] = process, (name, first + done, count - done)
        for process, line in idle:
            line.close()
            process.join(5)

    def _start(self) -> tuple[Any, Any]:
        here, there = self._context.Pipe()
        self._started += 1
        place = self._place / f"worker-{self._started}"
        process = self._context.Process(target=_work, args=(there, self._clean, place), daemon=True)
        process.start()
        there.close()
        return process, here


def prepare() -> None:
    """Warnings are errors, one thread."""
    import torch

    torch.set_num_threads(1)
    with suppress(ImportError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_module("torch_geometric.data")  # which writes files of its own when it is loaded
    warnings.simplefilter("error")


def _work(line: Connection, clean: Path, place: Path) -> None:
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # what a dying process says is no result
    prepare()
    known = {target.name: target for target in TARGETS}
    answers: dict[str, Any] = {}
    while True:
        try:
            name, first, count = line.recv()
        except EOFError:
            return
        target = known[name]
        if name not in answers:
            answers[name] = target.read(copied(clean / name, place / "answers" / name))
        _limit()
        for seed in range(first, first + count):
            faulthandler.dump_traceback_later(6 * SECONDS, exit=True)  # one that waits takes none
            try:
                case = run_case(target, seed, clean / name, place / "case", answers[name])
            except Exception:
                said = f"the fuzzer itself: {traceback.format_exc()}"
                case = Case(name, seed, "", "found", said, 0.0)
            faulthandler.cancel_dump_traceback_later()
            line.send(case)
        line.send(None)


def _limit() -> None:
    """Not much more memory from here on: what is taken is measured, what is only asked for is not.

    Libraries ask for room for the stacks and heaps of many threads that they never fill.
    """
    text = Path("/proc/self/statm").read_text(encoding="ascii")
    used = int(text.split()[0]) * os.sysconf("SC_PAGE_SIZE")
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (used + 4 * BYTES, hard))
