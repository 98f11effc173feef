"""The page of a learner in headless Chromium: wide and narrow, light and dark."""

from pathlib import Path

import pytest

from tests.reporting.test_learner_page import month, page_of
from undrift import LearnerFolder

INSIDE = """[...document.querySelectorAll('.box th, .plot text, .plot circle')]
.filter((e) => e.checkVisibility()).every((e) => { const r = e.getBoundingClientRect();
return r.left >= -1 && r.right <= document.documentElement.clientWidth + 1; })"""


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    at = tmp_path_factory.mktemp("learner")
    folder = LearnerFolder.new(at / "desk", settings={"hops": 1})
    for number, kinds in enumerate([[0, 1, 2], [0, 1], [1, 2, 3]]):
        nodes, edges = month(number, kinds)
        moved = {f"x{j}": nodes[f"x{j}"] + 3 * number for j in range(6)}
        folder.observe((nodes | moved, edges))
    page = at / "page.html"
    page.write_text(page_of(folder), encoding="utf-8")
    return page


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, False), (390, True)])
def test_it_fits_and_asks_for_nothing(open_page, path, width, dark) -> None:
    page = open_page(path, width=width, dark=dark)
    assert page.complaints() == []
    assert page.requests() == [path.as_uri()]
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.run(INSIDE)  # so no head of the table lies beyond the edge of its box
    heads = (
        "[...document.querySelectorAll('.box th[scope=col]')].filter((e) => e.checkVisibility())"
    )
    shown = page.run(f"{heads}.map((e) => e.textContent)")
    assert {"Step", "Verb", "Unknown", "Moved more than chance", "Right before"} <= set(shown)
    assert ("Nodes" in shown) == (width > 640)
    names = page.run("[...document.querySelectorAll('.plot text')].map((e) => e.textContent)")
    assert any(name.endswith("…") for name in names)  # the long name of a class that moved
    background = page.run("getComputedStyle(document.body).backgroundColor.match(/\\d+/g)")
    assert (sum(map(int, background)) < 300) == dark
