"""What the repository adds to undrift joins from a clone, and the wheel has none of it."""

import os
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any
from zipfile import ZipFile

import pytest

from paper.plans import PLANS as PAPER_PLANS
from undrift import InputError, make_learner, plugins
from undrift.cli.app import COMMANDS, start
from undrift.experiments.plans import PLANS, named_plan
from undrift.learners.registry import load, method_class
from undrift.merging import merging_rule
from undrift.plugins import IN_A_CLONE
from undrift.streams.benchmarks import STREAMS, stream_info
from undrift.testing import tiny_stream

ROOT = Path(__file__).parents[2]
ENTRIES: dict[str, set[str]] = {}
for package in ("paper", "extras"):
    about = tomllib.loads((ROOT / package / "pyproject.toml").read_text())["project"]
    for group, brought in about["entry-points"].items():
        ENTRIES.setdefault(group, set()).update(brought)
FORMS: dict[str, dict[str, Any]] = {
    "dpcr": {"projector": "last"},
    "ewc": {"batch_fisher": True},
    "joint": {"recipe": "isolated"},
    "lwf": {"overlapping": True},
    "mas": {"batch_importance": True, "outputs": 6},
    "twp": {"faithful": True},
    "adr": {"merging": "undrift.merging.fisher:FlooredFisher"},  # as 0.2.0 has it
}

# one process: every name that a clone brings is refused by the package alone, in one sentence
ALONE = """
import sys
from undrift.cli.app import start
from undrift.streams.benchmarks import STREAMS
import undrift
assert undrift.__file__.startswith(sys.argv[1]), undrift.__file__
assert not [name for name in STREAMS if "stand-in" in name]
lines = [
    ["run", "--stream", "reddit-cl-stand-in@0.01"],
    ["streams", "--show", "photo-cl@thin"],
    ["bench", "paper-table1", "--dry-run"],
    ["bench", "paper"],
    ["leakage", "--stream", "synthetic"],
    ["results"],
    ["run", "--track", "mlflow"],
]
for line in lines:
    assert start(line) == 2, line
assert start(["bench", "smoke", "--dry-run"]) == 0
"""


def test_the_names_of_a_clone_are_those_of_its_package() -> None:
    named = {group: names for group, names in ENTRIES.items() if group != "undrift.published"}
    assert {group: set(names) for group, names in IN_A_CLONE.items()} == named


def test_from_a_clone_all_of_it_is_there() -> None:
    assert set(IN_A_CLONE["undrift.streams"]) < set(STREAMS)
    assert list(PLANS)[:2] == ["smoke", "paper-table1"]
    assert COMMANDS.summary("leakage").startswith("Show what local testing gives away")
    assert COMMANDS.origin("leakage") == "undrift-paper"


@pytest.mark.parametrize("name", FORMS)
def test_a_form_of_public_code_is_found_by_its_option(name: str, tmp_path) -> None:
    learner = make_learner(name, epochs=2, hidden=(4, 4), **FORMS[name])
    learner.observe(tiny_stream().task(0)).save(tmp_path / "form", least_rows=1)
    again = load(tmp_path / "form").observe(tiny_stream().task(1))
    assert type(again) is type(learner)
    assert again.state().method == name
    if name != "adr":
        with pytest.raises(InputError, match=r"take undrift\.make_learner"):
            method_class(name)(**FORMS[name])


def test_without_the_clone_names_say_so(monkeypatch, capsys) -> None:
    monkeypatch.setattr(plugins, "_outside", lambda group: {})
    asked = [(stream_info, name) for name in [*IN_A_CLONE["undrift.streams"], "photo-cl@thin"]]
    others = [name for name in FORMS if name != "adr"]
    asked += [(lambda name: make_learner(name, **FORMS[name]), name) for name in others]
    asked += [
        (ask, "regmean") for ask in (merging_rule, lambda rule: make_learner("adr", merging=rule))
    ]
    for ask, name in [*asked, *((named_plan, name) for name in PAPER_PLANS)]:
        brought = name.rpartition("@")[2]
        with pytest.raises(InputError, match=f"{brought}'.* comes? with a clone .* make install"):
            ask(name)
    assert start(["leakage"]) == 2
    assert "'leakage' comes with a clone" in capsys.readouterr().err


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    copytree(ROOT / "src", source / "src", ignore=ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    for name in ("paper", "extras", "tests", "benchmarks", "mutants"):  # as in a clone
        (source / name).mkdir()
        (source / name / "__init__.py").write_bytes(b"")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps"]
    build += ["--no-build-isolation", "--disable-pip-version-check", "-w", str(folder)]
    subprocess.run([*build, str(source)], check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_has_what_users_import_and_nothing_else(wheel: Path) -> None:
    files = ZipFile(wheel).namelist()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert {name.split("/")[0] for name in files} == {"undrift", f"undrift-{version}.dist-info"}
    kept = {Path(n).name for n in files if n.startswith("undrift/testing/")}
    checks = {f"check_{part}.py" for part in ("learner", "living", "state")}
    assert kept == {"__init__.py", "graphs.py", *checks}
    parts = ("fuzz", "torture", "references", "stand_ins", "leakage", "published", "streams/thin")
    assert not [name for name in files for part in parts if part in name]


def test_the_wheel_alone_says_what_comes_with_a_clone(wheel: Path, tmp_path) -> None:
    """In an environment without the clone: other packages are linked, those of ours are not."""
    site = tmp_path / "site"
    site.mkdir()
    ZipFile(wheel).extractall(site)
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "undrift" not in path.name:
            (site / path.name).symlink_to(path)
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-S", "-c", ALONE, str(site)],
        cwd=tmp_path,
        env={**inherited, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()
    assert len(said) == 7
    assert all("with a clone of the repository, not with the" in line for line in said)
