from itertools import combinations
from typing import Any

import numpy as np
import pytest

from undrift.learners.registry import METHODS
from undrift.reporting.figures.style import display, drawn_title, ink, style_of, title_of

KNOWN = list(METHODS)

# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB
VISIONS = {
    "all cones": "1 0 0 0 1 0 0 0 1",
    "no red": "0.152286 1.052583 -0.204868 0.114503 0.786281 0.099216 -0.003882 -0.048116 1.051998",
    "no green": "0.367322 0.860646 -0.227968 0.280085 0.672501 0.047413 -0.01182 0.04294 0.968881",
    "no blue": "1.255528 -0.076749 -0.178779 -0.078411 0.930809 0.147602 0.004733 0.691367 0.3039",
}


def linear(colour: str) -> Any:
    rgb = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(colour: str, vision: str) -> Any:
    rows = "0.4124 0.3576 0.1805", "0.2126 0.7152 0.0722", "0.0193 0.1192 0.9505"
    to_xyz = np.array([row.split() for row in rows], dtype=float)
    seen = np.clip(np.array(vision.split(), dtype=float).reshape(3, 3) @ linear(colour), 0, 1)
    xyz = to_xyz @ seen / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_no_two_methods_share_a_marker_or_a_line() -> None:
    styles = [style_of(name) for name in KNOWN]
    assert len({(style["color"], style["linestyle"]) for style in styles}) == len(KNOWN)
    markers = {(style["marker"], style["markerfacecolor"] == "white") for style in styles}
    assert len(markers) == len(KNOWN)


def test_methods_of_others_look_like_none_of_ours_and_mostly_differ() -> None:
    looks = {tuple(style_of(name).values()) for name in KNOWN}
    names = ["nearest-mean", "my-method", "graph-x", "replay", "unified", "a:B", "z", "Ünder"]
    others = [tuple(style_of(name).values()) for name in names]
    assert len(set(others)) == len(names)
    assert not looks & set(others)


@pytest.mark.parametrize("name", KNOWN)
def test_names_are_dark_enough_to_read(name: str) -> None:
    luminance = float(np.array([0.2126, 0.7152, 0.0722]) @ linear(ink(style_of(name)["color"])))
    assert 1.05 / (luminance + 0.05) >= 4.5


def test_names_are_safe_to_draw(fakes) -> None:
    assert display("ds-al") == "DS-AL"
    assert display("my $x$ method") == "my x method"
    assert title_of(fakes.result("reddit-cl-stand-in")) == "Reddit-CL stand-in"
    assert drawn_title("a/b/stream.toml", stand_in=True) == "b/stream.toml (stand-in)"


@pytest.mark.parametrize("vision", VISIONS)
def test_lines_of_the_same_dash_differ_in_colour_for_everyone(vision: str) -> None:
    styles = [style_of(name) for name in KNOWN]
    for (a, one), (b, two) in combinations(zip(KNOWN, styles, strict=True), 2):
        if one["linestyle"] == two["linestyle"]:
            seen = [lab(style["color"], VISIONS[vision]) for style in (one, two)]
            assert np.linalg.norm(seen[0] - seen[1]) > 12, (a, b)
