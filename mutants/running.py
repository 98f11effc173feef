"""Which tests a mutant meets, and a process that lets it meet them."""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mutants.changes import Mutant, mutants_of

ROOT = Path(__file__).parent.parent
# what mistakes are made in, and which tests notice beside those of a package's own folder
BESIDE: dict[str, tuple[str, ...]] = {
    "analytic": (
        *("learners/test_closed_form.py", "learners/test_exactness.py", "test_ranks.py"),
        "propagation/test_propagation.py",
    ),
    "graphs": ("learners/test_adr.py", "learners/test_forgetting_nodes.py"),
    "merging": ("learners/test_adr.py", "paper/merging"),
    "propagation": (
        *("analytic/test_novelty.py", "learners/test_exactness.py", "scale/test_learning.py"),
    ),
    "learners.additive": (
        *("learners/test_exactness.py", "learners/test_forgetting_nodes.py"),
        *("learners/test_living.py", "learners/test_closed_form.py", "learners/test_inventory.py"),
        *("analytic/test_novelty.py", "analytic/test_class_drift.py", "learners/test_carried.py"),
        *("learners/test_loading.py", "learners/test_fields.py", "scale/test_learning.py"),
        *("propagation/test_propagation.py", "propagation/test_plan.py", "learners/test_ledger.py"),
    ),
    "learners.novelty": (
        *("analytic/test_novelty.py", "analytic/test_class_drift.py", "learners/test_carried.py"),
        *("learners/test_living.py", "folder/test_notice.py"),
    ),
    "learners.reading": ("analytic/test_novelty.py", "learners/test_fields.py"),
    "storage": ("folder/test_damage.py", "harness/test_found.py", "harness/test_faults.py"),
    "folder": ("cli/test_learner.py", "scale/test_learning.py", "harness/test_found.py"),
}
LONGEST = 40.0  # seconds of a processor: a mutant that takes more hangs, which is noticed too
_PATIENCE = 20  # times that, where it waits and takes none
_PAUSE = 0.02
Known = tuple[str, int, str]  # a module, a line, and what is wrong there


@dataclass(frozen=True)
class Outcome:
    """A mutant and who noticed it: the first tests, those of the package, or nobody."""

    module: str
    number: int
    line: int
    what: str
    outcome: str
    seconds: float


def chosen(
    sample: int, seed: int, known: AbstractSet[Known] = frozenset(), only: Sequence[str] = ("",)
) -> list[Mutant]:
    """So many mutants of all packages, drawn by a seed; 0: every one.

    `known`: those that were drawn before and are left out. `only`: modules whose names start so.
    """
    source = ROOT / "src"
    places = [source / "undrift" / name.replace(".", "/") for name in BESIDE]
    files = [f for p in places for f in (sorted(p.rglob("*.py")) or [p.with_suffix(".py")])]
    every = [mutant for file in files for mutant in mutants_of(file, source)]
    starts = tuple(f"undrift.{name}" for name in only)
    every = [m for m in every if m.module.startswith(starts)]
    every = [mutant for mutant in every if (mutant.module, mutant.line, mutant.what) not in known]
    if not sample or sample >= len(every):
        return every
    return random.Random(seed).sample(every, sample)


def tests_of(module: str) -> tuple[list[str], list[str]]:
    """The tests of a module, and all that its package has.

    Those of a module are its examples, and the files of its package's tests that have its name or
    import it.
    """
    _, package, *names = module.split(".")
    name = names[-1] if names else package
    imported = re.compile(rf"\b{re.escape(module)}\b|from {module.rpartition('.')[0]} .*\b{name}\b")
    files = sorted((ROOT / "tests" / package).rglob("test_*.py"))
    own = [f for f in files if f.stem == f"test_{name}" or imported.search(f.read_text("utf-8"))]
    itself = ROOT / "src" / f"{module.replace('.', '/')}.py"
    own += [itself] if itself.is_file() and ">>>" in itself.read_text("utf-8") else []
    single = f"{package}.{name}" in BESIDE
    beside = BESIDE[f"{package}.{name}"] if single else (package, *BESIDE[package])
    rest = [ROOT / "tests" / path for path in beside]
    assert all(path.exists() for path in rest), f"no such tests: {beside}"
    return [str(file) for file in own], [str(path) for path in rest]


def warm() -> None:
    """Load what every mutant needs and none changes."""
    import hypothesis
    import pydantic
    import pytest
    import scipy.sparse
    import torch

    assert pytest
    assert hypothesis
    assert pydantic
    assert scipy.sparse
    torch.set_num_threads(1)
    found = importlib.util.find_spec("undrift")
    assert found is not None
    assert str(found.origin).startswith(str(ROOT)), f"tests would meet {found.origin}"
    loaded = [name for name in sys.modules if name.partition(".")[0] == "undrift"]
    assert not loaded, f"loaded already, so that no mutant would take their place: {loaded}"


def meet(mutant: Mutant | None, tests: Sequence[str], longest: float = LONGEST) -> str:
    """What tests say of a mutant, in a fork of this process: passed, failed or hung."""
    if not tests:
        return "passed"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os._exit(_tried(mutant, tests))
    for _ in range(round(_PATIENCE * longest / _PAUSE)):  # looks, no clock: it may all be paused
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return "passed" if os.waitstatus_to_exitcode(status) == 0 else "failed"
        if _seconds_of(child) > longest:
            break
        time.sleep(_PAUSE)
    for kill in (os.killpg, os.kill):
        try:
            kill(child, signal.SIGKILL)
        except OSError:
            continue
    os.waitpid(child, 0)
    return "hung"


def _seconds_of(process: int) -> float:
    """What a process and its children that have ended took of a processor."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def outcome_of(mutant: Mutant, *, own: bool = False) -> Outcome:
    """Meet the first tests, then the rest, unless `own`: then it is only asked about the first."""
    began = time.monotonic()
    first, rest = tests_of(mutant.module)
    said = meet(mutant, first)
    outcome = f"killed by its tests ({said})"
    if said == "passed":
        said = "passed" if own else meet(mutant, rest, 5 * LONGEST)
        outcome = "survived" if said == "passed" else f"killed by its package ({said})"
    fields = {name: value for name, value in asdict(mutant).items() if name != "path"}
    return Outcome(**fields, outcome=outcome, seconds=round(time.monotonic() - began, 2))


def _tried(mutant: Mutant | None, tests: Sequence[str]) -> int:
    import pytest

    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    limit = 6 << 30
    with tempfile.TemporaryDirectory() as place:
        os.environ |= {"HYPOTHESIS_STORAGE_DIRECTORY": place, "TMPDIR": place}
        tempfile.tempdir = place
        text = Path("/proc/self/statm").read_text(encoding="ascii")
        used = int(text.split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + limit, used + limit))
        if mutant is not None:
            sys.meta_path.insert(0, _Finder(mutant))
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header"]
        options += ["--assert=plain"]  # else pytest would load a module with examples itself
        try:
            return int(pytest.main([*options, *tests]))
        except BaseException:
            return 99


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Serves the mutant in the place of its module."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._mutant.module:
            return None
        real = importlib.machinery.PathFinder.find_spec(name, path)
        assert real is not None
        assert real.origin is not None
        where = real.submodule_search_locations
        return importlib.util.spec_from_file_location(
            name, real.origin, loader=self, submodule_search_locations=where
        )

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        code = compile(self._mutant.source, str(module.__file__), "exec")
        exec(code, module.__dict__)
