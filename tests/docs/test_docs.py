"""The pages say what is so: links lead somewhere, commands and names exist."""

import re
import runpy
import sys
import tomllib
from importlib import import_module
from math import prod
from pathlib import Path

import pytest

import undrift
from tests.docs.pages import ALL, DOCS, FENCE, ROOT, SHELL, blocks, commands_in
from undrift.cli.app import make_app
from undrift.experiments.plans import PARTS, PLANS, PlanFile, read_plan
from undrift.learners.registry import METHODS, RECOMMENDERS, method_class
from undrift.streams.benchmarks import stream_info
from undrift.streams.file import is_stream_file

GUIDE = ("index.md", "getting-started.md", "experiments.md", "api.md")
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]

_LINK = re.compile(r"\]\(([^)\s]+)\)")


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    heads = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


LINKS = [(p, at) for p in PAGES for at in _LINK.findall(FENCE.sub("", p.read_text("utf-8")))]


def test_links_lead_somewhere() -> None:
    for page, link in LINKS:
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.exists(), f"{page.name} links to {link}, which is not there"
        if anchor:
            known = anchors(target.read_text(encoding="utf-8"))
            assert anchor in known, f"{page.name} links to {link}; {path} has {sorted(known)}"


METHOD_PAGES = sorted((DOCS / "methods").glob("*.md"))
SECTIONS = ["When to take it", "Equations", "Settings", "Scores", "Cost"]
THEN = ["Where it departs from public code", "What it gives away"]


def test_every_method_has_a_page() -> None:
    assert set(METHODS) <= {page.stem for page in METHOD_PAGES}


@pytest.mark.parametrize("page", METHOD_PAGES, ids=lambda page: page.stem)
def test_every_page_of_a_method_has_the_same_sections(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    heads = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert heads == SECTIONS + [head for head in THEN if head in heads]
    assert text.index("<!-- drawing: made by the build -->") < text.index("\n## ")


@pytest.mark.parametrize("verb", ["returns", "forgets", "merges"])
def test_the_page_names_the_methods_that_can(verb: str) -> None:
    text = text_of("choosing-a-method.md")
    (cell,) = re.findall(rf"^\| {verb} \|.*\| (.+?) \|$", text, re.MULTILINE)
    named = set(METHODS) if cell == "every method" else set(re.findall(r"`([\w-]+)`", cell))
    assert named == {name for name, method in METHODS.items() if getattr(method, verb)}
    for name, method in METHODS.items():
        if method.verbs_need:
            assert f"`{name}` can all three with `{method.verbs_need}`" in text


def test_commands_are_understood() -> None:
    app, every = make_app(), [*ALL, "../README.md", "../CONTRIBUTING.md"]
    shell = (block for page in every for language, block in blocks(page) if language in SHELL)
    commands = [arguments for block in shell for arguments in commands_in(block)]
    for arguments in commands:
        _, bound, _ = app.parse_args(arguments, exit_on_error=False, print_error=False)
        given = bound.arguments
        assert given.get("method", "adr") in (*METHODS, *RECOMMENDERS.names()), arguments
        stream = given.get("stream") or given.get("show")
        if stream and not is_stream_file(stream):
            stream_info(stream)
        for plan in given.get("plans", ()):
            assert plan in (*PLANS, *PARTS) or plan.endswith(".toml"), arguments
    for page in every:
        for word in re.findall(r"`undrift ([a-z][\w-]*)", FENCE.sub("", text_of(page))):
            assert word in {*app}, f"{page} speaks of undrift {word}"


def test_the_page_of_the_command_line_is_that_of_the_commands() -> None:
    made = runpy.run_path(str(DOCS / "site" / "command_line.py"))["page"]()
    stands = text_of("command-line.md")
    assert stands == made, "run: python docs/site/command_line.py"


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


def test_files_and_modules_that_pages_name_are_there() -> None:
    paths = r"`((?:undrift|tests|docs)/[\w/.-]*?)(?:\{([\w,]+)\}([\w.]*))?`"
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for name in re.findall(r"`(undrift(?:\.\w+)+)`", text) if page.name in GUIDE else ():
            import_module(name)
        for folder, names, ending in re.findall(paths, text):
            for name in names.split(","):
                path = ("src/" if folder.startswith("undrift/") else "") + folder + name + ending
                assert (ROOT / path).exists(), f"{page.name} speaks of {path}"


def test_the_plan_of_the_page_is_one(tmp_path) -> None:
    (example,) = [block for language, block in blocks("experiments.md") if language == "toml"]
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
    table = text_of("install.md").split("| extra |")[1].split("\n\n")[0]
    assert set(extras) == set(re.findall(r"`(\w+)`", table)) - {"results"}


def test_the_budget_rule_of_the_page_holds_for_every_grid() -> None:
    text = text_of("experiments.md")
    most = int(re.search(r"at most (\d+) settings", text)[1])  # type: ignore[index]
    for name in METHODS:
        assert prod(len(values) for values in method_class(name).grid.values()) <= most, name


def test_what_a_browser_would_fetch_is_noticed(monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))  # Sphinx's settings add to it
    fetched = runpy.run_path(str(DOCS / "conf.py"))["_FETCHED"]
    assert fetched.search('<script defer src="https://cdn.example/x.js">')
    assert fetched.search("<img alt='' src='//example/x.png'>")
    assert fetched.search("@import url(https://fonts.example/css)")
    good = '<a href="https://example.org"> <script src="_static/x.js"> <link href="s.css">'
    assert not fetched.search(good)


@pytest.mark.parametrize("front", [ROOT / "README.md", DOCS / "index.md"], ids=lambda p: p.name)
def test_the_tasks_of_five_people_are_a_click_away(front: Path) -> None:
    tasks = ("install", "your-own-graph", "experiments", "data-stewards", "deploy")
    text = front.read_text(encoding="utf-8")
    assert [task for task in tasks if f"{task}.md)" not in text] == []
