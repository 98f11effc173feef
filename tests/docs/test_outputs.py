"""What a page shows under a command or a snippet is what it prints today."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import FENCE, commands_in
from undrift.cli.app import start
from undrift.streams.benchmarks import stream_info

DOCS = Path(__file__).parents[2] / "docs"
SNIPPETS = sorted(
    str(page.relative_to(DOCS))
    for page in [*DOCS.glob("examples/*.md"), DOCS / "arrivals.md", DOCS / "choosing-a-method.md"]
    if page.name != "index.md"
)
SHELL = ("getting-started.md", "experiments.md")
WITHIN = 3.0  # points: trainings differ between machines by less
_MASKS = (
    (re.compile(r"\b[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\babout [\d.]+ (?:s|min|h) with \d+ workers?\b"), "about TIME"),
    (re.compile("─+"), "RULE"),  # as wide as what is there
    (re.compile(r"\b\d+ jobs done, \d+ runs and \d+ searches to do"), "JOBS"),
)
_NUMBER = re.compile(r"-?\d+\.\d+")
Captured = pytest.CaptureFixture[str]


def shows(shown: str, printed: str) -> str | None:
    """The first line of `shown` that `printed` does not have, in this order; None if it has all."""
    lines = iter(printed.splitlines())
    for want in filter(str.strip, shown.splitlines()):
        if not any(_same(want, line) for line in lines):
            return want
    return None


def _same(want: str, line: str) -> bool:
    a, b = want.split(), line.split()
    if a and a[-1] == "...":  # the rest of a long line is left out
        a = a[:-1]
        b = b[: len(a)]
    one, two = " ".join(a), " ".join(b)
    for pattern, word in _MASKS:
        one, two = pattern.sub(word, one), pattern.sub(word, two)
    if _NUMBER.sub("#", one) != _NUMBER.sub("#", two):
        return False
    pairs = zip(_NUMBER.findall(one), _NUMBER.findall(two), strict=True)
    return all(abs(float(x) - float(y)) <= WITHIN for x, y in pairs)


def blocks(page: str) -> list[tuple[str, str]]:
    return FENCE.findall((DOCS / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", SNIPPETS)
def test_snippets_print_what_the_page_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "example"}
    printed = None
    for language, text in blocks(page):
        if language == "python":
            exec(compile(text, page, "exec", dont_inherit=True), names)
            printed = capsys.readouterr().out
        elif language == "text" and printed is not None:
            assert shows(text, printed) is None, printed
            printed = None


@pytest.mark.parametrize("page", [page for page in SNIPPETS if page.startswith("examples/")])
def test_an_example_is_short(page: str) -> None:
    lines = [text.count("\n") for language, text in blocks(page) if language == "python"]
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


@pytest.mark.parametrize("page", SHELL)
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
        if "cs-cl" in every[0] and not stream_info("cs-cl").on_disk():
            continue
        capfd.readouterr()
        for arguments in every[:1] if planned else every:
            start(arguments)
        found = capfd.readouterr()
        assert shows(shown, found.out + found.err) is None, found.out + found.err


def test_another_output_is_noticed() -> None:
    assert shows("id a_f\n0123456789ab 85.1\n", "id  a_f\nba9876543210  85.9\n") is None
    assert shows("T0 96.5\n", "T0 91.5\n") == "T0 96.5"
    assert shows("a\nb\n", "b\na\n") == "b"
    assert shows("choose one of: acil, ...", "choose one of: adr, acil") is not None
    assert shows("choose one of: ...", "choose one of: adr, acil") is None
