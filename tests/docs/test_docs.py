"""The pages say what is so: links lead somewhere, examples run, commands and names exist."""

from __future__ import annotations

import re
import runpy
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import undrift
from tests.docs.pages import FENCE, commands_in
from undrift.cli.app import make_app, start
from undrift.experiments.plans import PARTS, PLANS, PlanFile, read_plan
from undrift.learners.registry import METHODS
from undrift.streams.benchmarks import stream_info
from undrift.streams.file import is_stream_file

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GUIDE = ("index.md", "getting-started.md", "experiments.md", "api.md")
MORE = "command-line your-own-graph protocols arrivals first-year larger-than-memory data-stewards"
WITH_COMMANDS = (*GUIDE, *(f"{name}.md" for name in MORE.split()))
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_NUMBER = re.compile(r"-?\d+\.\d+")
Captured = pytest.CaptureFixture[str]


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def fences(page: str) -> list[tuple[str, str]]:
    """Language and content of every block of code."""
    return FENCE.findall(text_of(page))


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    heads = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


# links ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for link in _LINK.findall(FENCE.sub("", text)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.exists(), f"{page.name} links to {link}, which is not there"
        if anchor:
            known = anchors(target.read_text(encoding="utf-8"))
            assert anchor in known, f"{page.name} links to {link}; {path} has {sorted(known)}"


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_page(method: str) -> None:
    page = DOCS / "methods" / f"{method}.md"
    assert page.is_file(), f"write {page.relative_to(ROOT)}"
    assert page.read_text(encoding="utf-8").startswith("# ")


SECTIONS = ["When to take it", "Equations", "Settings", "Scores", "Cost"]
THEN = ["Where it departs from public code", "What it gives away"]


@pytest.mark.parametrize("page", sorted((DOCS / "methods").glob("*.md")), ids=lambda p: p.stem)
def test_every_page_of_a_method_has_the_same_sections(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    heads = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert heads == SECTIONS + [head for head in THEN if head in heads]
    assert text.index("<!-- drawing: made by the build -->") < text.index("\n## ")


@pytest.mark.parametrize("verb", ["returns", "forgets", "merges"])
def test_the_page_names_the_methods_that_can(verb: str) -> None:
    text = text_of("choosing-a-method.md")
    (cell,) = re.findall(rf"^\| {verb} \|.*\| (.+?) \|$", text, re.MULTILINE)
    told = set(METHODS) if cell == "every method" else set(re.findall(r"`([\w-]+)`", cell))
    assert told == {name for name, method in METHODS.items() if getattr(method, verb)}
    for name, method in METHODS.items():
        if method.verbs_need:
            assert f"`{name}` can all three with `{method.verbs_need}`" in text


# examples ------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", GUIDE)
def test_python_examples_run_and_print_what_the_page_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    if page == "experiments.md":
        quick = ["--method", "bare", "--set", "epochs=1", "--set", "hidden=4,4"]
        assert start(["run", *quick]) == 0
        capsys.readouterr()
    names: dict[str, Any] = {}
    blocks = fences(page)
    assert any(language == "python" for language, _ in blocks)
    for k, (language, code) in enumerate(blocks):
        if language == "python":
            exec(compile(code, page, "exec"), names)
            printed = capsys.readouterr().out
            if printed and blocks[k + 1 : k + 2] and blocks[k + 1][0] == "text":
                assert same(printed, blocks[k + 1][1]), f"{page} shows another output: {printed}"


def test_the_first_table_is_what_the_first_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """Closed-form learning: machines differ by rounding alone."""
    monkeypatch.chdir(tmp_path)
    assert start(["run"]) == 0
    printed = capsys.readouterr().out
    shown = next(block for language, block in fences("getting-started.md") if language == "text")
    table = printed[printed.index("after  ") : printed.index("Metrics")]
    assert same(table, shown, within=0.2)


def test_the_example_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (code,) = [block for language, block in fences("../README.md") if language == "python"]
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    predicted, score = capsys.readouterr().out.splitlines()
    assert predicted.startswith("tensor([")
    assert 0.9 < float(score) <= 1
    assert (tmp_path / "learner.safetensors").stat().st_size < 20e6


def same(printed: str, shown: str, within: float = 3) -> bool:
    """The same words; a number with a decimal point may differ as machines do, by 3 points."""
    if _NUMBER.sub("#", printed).split() != _NUMBER.sub("#", shown).split():
        return False
    pairs = zip(_NUMBER.findall(printed), _NUMBER.findall(shown), strict=True)
    return all(abs(float(a) - float(b)) <= within for a, b in pairs)


# commands ------------------------------------------------------------------------------------


def commands(page: str) -> Iterator[list[str]]:
    """The arguments of every `undrift ...` in the page's shell blocks."""
    for language, block in fences(page):
        if language == "sh":
            yield from commands_in(block)


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands_are_understood(page: str) -> None:
    app = make_app()
    for arguments in commands(page):
        _, bound, _ = app.parse_args(arguments, exit_on_error=False, print_error=False)
        given = bound.arguments
        assert given.get("method", "adr") in METHODS, arguments
        stream = given.get("stream") or given.get("show")
        if stream and not is_stream_file(stream):
            stream_info(stream)
        for plan in given.get("plans", ()):
            assert plan in (*PLANS, *PARTS) or plan.endswith(".toml"), arguments
    assert page in ("index.md", "api.md", "protocols.md") or any(commands(page))


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands_within_a_sentence_exist(page: str) -> None:
    known = {name for name in make_app() if not name.startswith("-")}
    text = FENCE.sub("", text_of(page))
    for word in re.findall(r"`undrift ([a-z][\w-]*)", text):
        assert word in known, f"{page} speaks of undrift {word}"


def test_the_page_of_the_command_line_is_that_of_the_commands() -> None:
    made = runpy.run_path(str(DOCS / "site" / "command_line.py"))["page"]()
    stands = text_of("command-line.md")
    assert stands == made, "run: python docs/site/command_line.py"


@pytest.mark.parametrize("command", ["run", "bench", "results", "report", "leakage"])
def test_the_page_has_every_option_that_help_prints(command: str, capsys: Captured) -> None:
    make_app()([command, "--help"], exit_on_error=False, result_action="return_value")
    printed = set(re.findall(r"^│ +(--[a-z-]+)", capsys.readouterr().out, re.MULTILINE))
    text = text_of("command-line.md")
    section = text.split(f"\n## undrift {command}\n")[1].split("\n## ")[0]
    told = set(re.findall(r"^\| `(--[a-z-]+)", section, re.MULTILINE))
    told |= set(re.findall(r", `(--no-[a-z-]+)`", section))
    assert told == printed
    assert told


# names ---------------------------------------------------------------------------------------


def test_the_python_page_has_every_public_name() -> None:
    text = text_of("api.md")
    missing = [name for name in undrift.__all__ if not re.search(rf"`\.?{name}\b", text)]
    assert missing == []


def test_the_reference_has_every_public_name_and_its_methods() -> None:
    made = runpy.run_path(str(DOCS / "site" / "api_reference.py"))["reference"]()
    heads = re.findall(r"^### (\w+)$", made, re.MULTILINE)
    assert set(undrift.__all__) <= set(heads)
    assert "Learner.forget(\n    batch: Any,\n    nodes: Nodes | None = None,\n" in made
    assert "Graph.from_arrays(" in made


@pytest.mark.parametrize("page", GUIDE)
def test_modules_that_pages_name_are_there(page: str) -> None:
    text = text_of(page)
    for name in set(re.findall(r"`(undrift(?:\.\w+)+)`", text)):
        import_module(name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_pages_name_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for folder, names, ending in re.findall(
        r"`((?:undrift|tests|docs)/[\w/.-]*?)(?:\{([\w,]+)\}([\w.]*))?`", text
    ):
        for name in names.split(","):
            path = ("src/" if folder.startswith("undrift/") else "") + folder + name + ending
            assert (ROOT / path).exists(), f"{page.name} speaks of {path}"


def test_the_plan_of_the_page_is_one(tmp_path: Path) -> None:
    (example,) = [block for language, block in fences("experiments.md") if language == "toml"]
    path = tmp_path / "mine.toml"
    path.write_text(example)
    plan = read_plan(path)
    assert [row.method for row in plan.rows] == ["bare", "acil", "adr"]
    assert dict(plan.rows[2].grid) == {"gamma": (0.1, 1.0), "alpha": (1, 8)}


def test_the_page_has_every_key_of_a_plan_and_every_plan() -> None:
    text = text_of("experiments.md")
    first = re.findall(r"^\| `([\w-]+)` \|", text, re.MULTILINE)
    assert {*PlanFile.model_fields, *PLANS, *PARTS} == set(first)


def test_the_page_has_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    table = text_of("getting-started.md").split("| extra |")[1].split("\n\n")[0]
    assert set(extras) == set(re.findall(r"`(\w+)`", table)) - {"results"}


def test_the_budget_rule_of_the_page_holds_for_every_grid() -> None:
    from math import prod

    from undrift.learners.registry import method_class

    text = text_of("experiments.md")
    most = int(re.search(r"at most (\d+) settings", text)[1])  # type: ignore[index]
    for method in METHODS:
        sizes = [len(values) for values in method_class(method).grid.values()]
        assert prod(sizes) <= most, method


# the site ------------------------------------------------------------------------------------


def test_what_a_browser_would_fetch_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))  # Sphinx's settings add to it
    fetched = runpy.run_path(str(DOCS / "conf.py"))["_FETCHED"]
    for bad in (
        '<script defer src="https://cdn.example/x.js">',
        "<img alt='' src='//example/x.png'>",
        '<link rel="stylesheet" href="https://fonts.example/css">',
        "@import url(https://fonts.example/css)",
    ):
        assert fetched.search(bad), bad
    good = '<a href="https://example.org"> <script src="_static/x.js"> <link href="s.css">'
    assert not fetched.search(good)
