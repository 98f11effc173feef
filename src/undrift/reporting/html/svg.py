"""Figures drawn elsewhere, made fit to stand together inside one HTML page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from markupsafe import Markup, escape

from undrift.errors import InputError

_LEFT_OUT = frozenset({"script", "style", "metadata", "foreignObject", "a", "title", "desc"})
_REFERENCE = re.compile(r"url\(\s*#([^)\s]+)\s*\)")
_DECIMALS = re.compile(r"-?\d+\.\d{4,}")
_COORDINATES = frozenset({"d", "points", "x", "y"})  # not transforms: glyphs are scaled by 0.0156
_WITH_TEXT = ("text", "tspan")


def inline_svg(text: str, *, prefix: str, label: str) -> Markup:
    """An SVG file as an element of an HTML page; `label` is what a screen reader says.

    Every id, and every reference to one, starts with `prefix`. What could act or reach outside
    is dropped: scripts, styles, handlers, links that leave the file. Coordinates keep three
    decimals, a thousandth of a point.

    >>> inline_svg('<svg viewBox="0 0 1 1"><g id="a" onclick="x()"/></svg>', prefix="f-", label="F")
    Markup('<svg viewBox="0 0 1 1" role="img" aria-label="F"><g id="f-a" /></svg>')
    """
    try:
        root = ElementTree.fromstring(text)  # noqa: S314  (we drew it; expat fetches nothing)
    except ElementTree.ParseError as error:
        raise InputError(f"the figure {label!r} is not an SVG ({error}); draw it again") from error
    _clean(root, prefix)
    root.attrib = {k: v for k, v in root.attrib.items() if k in ("viewBox", "id")}
    root.set("role", "img")
    inner = ElementTree.tostring(root, encoding="unicode")
    # the label is written by hand: ElementTree would leave a line break in it as one
    return Markup(inner.replace('role="img"', f'role="img" aria-label="{escape(label)}"', 1))  # noqa: S704


def _clean(element: ElementTree.Element, prefix: str) -> None:
    element.tag = _local(element.tag)
    element.attrib = dict(_attributes(element, prefix))
    for child in list(element):
        if not isinstance(child.tag, str) or _local(child.tag) in _LEFT_OUT:
            element.remove(child)
        else:
            _clean(child, prefix)
            if element.tag not in _WITH_TEXT:
                child.tail = None
    if element.tag not in _WITH_TEXT:
        element.text = None


def _attributes(element: ElementTree.Element, prefix: str) -> Iterator[tuple[str, str]]:
    for qualified, value in element.attrib.items():
        name = _local(qualified)
        if name == "href":
            if value.startswith("#"):
                yield name, f"#{prefix}{value[1:]}"
            elif value.startswith("data:image/png;"):
                yield name, value
        elif name == "id":
            yield name, prefix + value
        elif not name.startswith("on") and name not in ("base", "space"):
            own = _REFERENCE.sub(rf"url(#{prefix}\1)", value)
            if "url(" not in own.replace(f"url(#{prefix}", ""):
                yield name, _DECIMALS.sub(_shorter, own) if name in _COORDINATES else own


def _shorter(number: re.Match[str]) -> str:
    return f"{float(number[0]):.3f}".rstrip("0").rstrip(".")


def _local(name: str) -> str:
    return name.rpartition("}")[2]
