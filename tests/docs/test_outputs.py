"""What a page shows under a command or a snippet is what it prints today."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import DOCS, blocks, commands_in
from undrift.cli.app import start
from undrift.streams.benchmarks import stream_info

EXAMPLES = [f"examples/{page.stem}" for page in sorted(DOCS.glob("examples/[!i]*.md"))]
SNIPPETS = ["index", "getting-started", "experiments", "api", "arrivals", "choosing-a-method"]
SNIPPETS += ["recommendation", "anomalies", "disease", "novelty", "whole-graphs", "links"]
SNIPPETS += ["privacy/differential-privacy", "protocols", *EXAMPLES]
WITHIN = 3.0  # points: trainings differ between machines by less; of a share a hundredth of it
_MASKS = (
    (re.compile(r"\b[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\babout [\d.]+ (?:s|min|h) with \d+ workers?\b"), "about TIME"),
    (re.compile("─+"), "RULE"),  # as wide as what is there
    (re.compile(r"\b\d+ jobs done, \d+ runs and \d+ searches to do"), "JOBS"),
)
_NUMBER = re.compile(r"-?\d+\.\d+")
Captured = pytest.CaptureFixture[str]


def shows(shown: str, printed: str, within: float = WITHIN) -> str | None:
    """The first line of `shown` that `printed` does not have, in this order; None if it has all."""
    lines = iter(printed.splitlines())
    for want in filter(str.strip, shown.splitlines()):
        if not any(_same(want, line, within) for line in lines):
            return want
    return None


def _same(want: str, line: str, within: float) -> bool:
    a, b = want.split(), line.split()
    if a and a[-1] == "...":  # the rest of a long line is left out
        a, b = a[:-1], b[: len(a) - 1]
    one, two = " ".join(a), " ".join(b)
    for pattern, word in _MASKS:
        one, two = pattern.sub(word, one), pattern.sub(word, two)
    if _NUMBER.sub("#", one) != _NUMBER.sub("#", two):
        return False
    numbers = (map(float, _NUMBER.findall(line)) for line in (one, two))
    pairs = zip(*numbers, strict=True)
    return all(abs(x - y) <= within / (1 if abs(x) > 1 else 100) for x, y in pairs)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("page", SNIPPETS)
def test_snippets_print_what_the_page_shows(page: str, capsys: Captured) -> None:
    data = Path(os.environ.get("UNDRIFT_DATA", "/nowhere"))
    needed = ("soybean.arff", "dermatology.data") if page == "disease" else ()
    if not all((data / name).exists() for name in needed):
        pytest.skip("set UNDRIFT_DATA to the folder with soybean.arff and dermatology.data (UCI)")
    if page == "experiments":
        start(["run", "--method", "bare", "--set", "epochs=1", "--set", "hidden=4,4"])
    names: dict[str, Any] = {"__name__": "example"}
    before, printed = "", ""
    for language, text in blocks(f"{page}.md"):
        if language == "python":
            capsys.readouterr()
            exec(compile(text, page, "exec", dont_inherit=True), names)
            printed = capsys.readouterr().out
        elif language == "text" and before == "python":
            assert shows(text, printed) is None, printed
        before = language
    assert "python" in [language for language, _ in blocks(f"{page}.md")]


@pytest.mark.usefixtures("here")
def test_the_first_table_is_what_the_first_command_prints(capsys: Captured) -> None:
    """Closed-form learning: machines differ by rounding alone."""
    assert start(["run"]) == 0
    printed = capsys.readouterr().out
    shown = next(block for language, block in blocks("getting-started.md") if language == "text")
    assert shows(shown, printed, within=0.2) is None, printed


def test_the_example_of_the_readme_runs(here: Path, capsys: Captured) -> None:
    (code,) = [block for language, block in blocks("../README.md") if language == "python"]
    exec(compile(code, "README.md", "exec"), {})
    predicted, score = capsys.readouterr().out.splitlines()
    assert predicted.startswith("tensor([")
    assert 0.9 < float(score) <= 1
    assert (here / "learner.safetensors").stat().st_size < 20e6


@pytest.mark.parametrize("page", EXAMPLES)
def test_an_example_is_short(page: str) -> None:
    lines = [text.count("\n") for lang, text in blocks(f"{page}.md") if lang == "python"]
    assert 0 < sum(lines) < 40


@pytest.fixture(scope="module")
def after_smoke(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in which the smoke plan has been run, and a plan with a mistake."""
    folder = tmp_path_factory.mktemp("smoke")
    (folder / "mine.toml").write_text('title = "A"\nstreams = ["synthetic"]\nmethods = ["aci"]\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert start(["bench", "smoke"]) == 0
        yield folder


@pytest.mark.parametrize("page", ["getting-started.md", "experiments.md"])
def test_commands_print_what_the_page_shows(
    page: str, after_smoke: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    parts = blocks(page)
    pairs = [(a[1], b[1]) for a, b in pairwise(parts) if b[0] == "text" != a[0]]
    shell = [(a, b) for a, b in pairs if "undrift " in a and "import" not in a]
    assert shell
    for block, shown in shell:
        every = list(commands_in(block))
        # a plan of the paper is only planned here: its runs take an hour
        planned = any("--dry-run" in arguments for arguments in every)
        if not all(stream_info(word).on_disk() for word in every[0] if word.endswith("-cl")):
            continue
        capfd.readouterr()
        for arguments in every[:1] if planned else every:
            start(arguments)
        found = capfd.readouterr()
        assert shows(shown, found.out + found.err) is None, found.out + found.err


def test_another_output_is_noticed() -> None:
    assert shows("id a_f\n0123456789ab 85.1\n", "id  a_f\nba9876543210  85.9\n") is None
    assert shows("T0 96.5\n", "T0 91.5\n") == "T0 96.5"
    assert shows("share 0.91\n", "share 0.55\n") == "share 0.91"
    assert shows("a\nb\n", "b\na\n") == "b"
    assert shows("choose one of: acil, ...", "choose one of: adr, acil") is not None
    assert shows("choose one of: ...", "choose one of: adr, acil") is None
