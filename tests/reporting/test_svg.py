from __future__ import annotations

import re

import pytest

from undrift.errors import InputError
from undrift.reporting.html.page import inline_svg

FILE = """<?xml version="1.0"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg xmlns:xlink="http://www.w3.org/1999/xlink" xmlns="http://www.w3.org/2000/svg"
     width="10pt" height="10pt" viewBox="0 0 10 10" version="1.1" onload="alert(1)">
 <metadata><rdf>made today</rdf></metadata>
 <defs><style type="text/css">*{stroke: red}</style>
  <clipPath id="p1"><rect x="1.123456" y="2" width="3" height="4"/></clipPath>
  <path id="glyph" d="M 1.00004 -2.123456 z" transform="scale(0.015625)"/></defs>
 <!-- <script>alert(1)</script> -->
 <g id="a" clip-path="url(#p1)" style="fill: url( #p1 )"><use xlink:href="#glyph" x="5"/></g>
 <script>alert(1)</script>
 <a xlink:href="javascript:alert(1)"><text>x</text></a>
 <image xlink:href="https://example.org/x.png"/><image xlink:href="data:image/png;base64,AA=="/>
 <rect fill="url(https://example.org/#p)" onclick="alert(1)"/>
 <text>A <tspan>b</tspan> &lt;c&gt;</text>
</svg>"""


def test_ids_and_references_get_the_prefix() -> None:
    svg = inline_svg(FILE, prefix="f7-", label="F")
    assert set(re.findall(r'id="([^"]+)"', svg)) == {"f7-p1", "f7-glyph", "f7-a"}
    assert 'clip-path="url(#f7-p1)"' in svg
    assert "fill: url(#f7-p1)" in svg
    assert 'href="#f7-glyph"' in svg


def test_nothing_acts_or_reaches_outside() -> None:
    svg = inline_svg(FILE, prefix="f-", label="F")
    for bad in ("script", "alert", "example.org", "javascript", "onload", "onclick", "style type"):
        assert bad not in svg
    assert "data:image/png;base64,AA==" in svg
    assert "made today" not in svg
    assert "DOCTYPE" not in svg


def test_it_scales_with_the_page_and_keeps_its_text() -> None:
    svg = inline_svg(FILE, prefix="f-", label='say "F" <b>')
    head = svg[: svg.index(">")]
    assert 'viewBox="0 0 10 10"' in head
    assert "width" not in head
    assert 'role="img" aria-label="say &#34;F&#34; &lt;b&gt;"' in svg
    assert "<text>A <tspan>b</tspan> &lt;c&gt;</text>" in svg


def test_coordinates_are_rounded_but_scales_are_not() -> None:
    svg = inline_svg(FILE, prefix="f-", label="F")
    assert 'd="M 1 -2.123 z"' in svg
    assert 'x="1.123"' in svg
    assert "scale(0.015625)" in svg


def test_what_is_no_svg_is_refused() -> None:
    with pytest.raises(InputError, match="the figure 'F' is not an SVG"):
        inline_svg("<svg", prefix="f-", label="F")
