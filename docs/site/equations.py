"""Equations as MathML, made when the site is built: a browser sets them, no script does.

TeX that the converter does not know ends up in its output as text; that is a warning here, and so
an error of the build.
"""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import convert
from sphinx.util import logging

_FUNCTION = re.compile(r"\\(log|exp|tanh|cos) (?=[a-zA-Z]|\\operatorname)")  # "log p" needs a gap
_NAME = re.compile("<mo>(?!max|min)([A-Za-z]{2,})</mo>")  # softmax is a name, and has no gaps
_BETTER = (
    ("<mo>&#x0005E;</mo>", "<mo>&#x002C6;</mo>"),  # these accents sit on their letter
    ('<mo stretchy="false">&#x0007E;</mo>', "<mo>&#x002DC;</mo>"),
    ('<mo stretchy="false">&#x0007C;</mo>', '<mo stretchy="false" lspace="0" rspace="0">|</mo>'),
)


def mathml(tex: str, *, display: bool) -> str:
    """One equation; a `ValueError` where the converter does not know the TeX."""
    try:
        spaced = _FUNCTION.sub(r"\\\1\\,", " ".join(tex.split()))
        made = convert(spaced, display="block" if display else "inline")
        ElementTree.fromstring(made)  # noqa: S314  # made here, and "&" or "<" within would show
    except Exception as error:
        raise ValueError(f"no MathML for {tex}") from error
    if "\\" in made:
        raise ValueError(f"no MathML for {tex}")
    for before, after in _BETTER:
        made = made.replace(before, after)
    return _NAME.sub(r"<mi>\1</mi>", made)


def _visit(display: bool) -> Any:
    def visit(self: Any, node: Any) -> None:
        from docutils.nodes import SkipNode

        try:
            made = mathml(node.astext(), display=display)
        except ValueError as error:
            logging.getLogger(__name__).warning("%s", error, location=node)
            made = ""
        self.body.append(f'<div class="equation">{made}</div>\n' if display else made)
        raise SkipNode

    return visit


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (_visit(False), None), (_visit(True), None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
