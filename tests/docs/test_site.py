"""What the build of the site makes: equations, drawings, tables of scores, the front picture."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from undrift.learners.registry import METHODS

SITE = Path(__file__).parents[2] / "docs" / "site"
PAGES = {page.stem for page in (SITE.parent / "methods").glob("*.md")}
drawings = runpy.run_path(str(SITE / "drawings.py"))
scores = runpy.run_path(str(SITE / "scores.py"))


@pytest.fixture(scope="module")
def mathml() -> Callable[..., str]:
    pytest.importorskip("sphinx")
    pytest.importorskip("latex2mathml")
    made: Any = runpy.run_path(str(SITE / "equations.py"))["mathml"]
    return made  # type: ignore[no-any-return]


def test_an_equation_is_mathml(mathml: Callable[..., str]) -> None:
    tree = ElementTree.fromstring(mathml(r"\hat{H} = \sum_i x_i", display=True))
    assert tree.attrib["display"] == "block"
    assert "".join(tree.itertext()).startswith("H\u02c6=\u2211")


@pytest.mark.parametrize(
    "tex", [r"\nonsense{x}", r"\begin{aligned} a &= b \end{aligned}", r"\left( x"]
)
def test_tex_that_cannot_be_converted_is_refused(tex: str, mathml: Callable[..., str]) -> None:
    with pytest.raises(ValueError, match="no MathML for"):
        mathml(tex, display=True)


def test_every_page_of_a_method_has_a_drawing() -> None:
    assert set(drawings["DRAWINGS"]) == PAGES
    for method, what in drawings["DRAWINGS"].items():
        words = "".join(ElementTree.fromstring(drawings["drawing"](method)).itertext())
        assert all(box.title.split("_")[0] in words for box in what.boxes)


@pytest.mark.parametrize("method", [name for name in METHODS if name in PAGES])
def test_a_drawing_says_whether_nodes_are_kept(method: str) -> None:
    kinds = {store.kind for store in drawings["DRAWINGS"][method].stores}
    assert ("examples" in kinds) == METHODS[method].keeps_examples


def test_scores_are_those_of_the_recorded_runs() -> None:
    page = (SITE.parent / "results.md").read_text(encoding="utf-8")
    assert "| A\\_f | 88.6 ± 1.0 |" in scores["scores"]("adr")
    assert "**88.62 ± 0.98**" in page
    for method in PAGES:
        assert scores["scores"](method).count("\n|") >= 8


def test_the_picture_has_a_line_per_method_and_a_dot_per_stream() -> None:
    tree = ElementTree.fromstring(scores["picture"]())
    lines = [div for div in tree.iter("div") if div.attrib["class"] != "axis"]
    names = [a.text for line in lines for a in line.iter("a")]
    assert set(names) == {METHODS[method].display for method in METHODS if method in PAGES}
    assert names[:2] == ["Hybrid", "Propagation"]
    assert all(len(list(line.iter("i"))) == 7 for line in lines)
