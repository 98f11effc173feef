from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from undrift.errors import InputError
from undrift.experiments.result import Graded, Metrics, Result
from undrift.learners.registry import METHODS
from undrift.reporting.figures import files as figures
from undrift.reporting.figures.files import (
    accuracy_matrix_figure,
    learning_curves,
    spread_apart,
    style_of,
)

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[figures]'")


def result(method: str = "adr", seed: int = 0, fall: float = 5.0, **changes: Any) -> Result:
    rows = [[95.0 - seed - fall * (t - i) for i in range(t + 1)] for t in range(4)]
    zero = Metrics(a_avg=0, a_f=0, a_l=0, forgetting=0)
    data: dict[str, Any] = {
        "spec": {"stream": "cs-cl", "method": method, "seed": seed},
        "matrix": {"class": rows, "node": rows},
        "metrics": Graded[Metrics](by_class=zero, by_node=zero),
        "validation": None,
        "drift": [],
        "cost": {"seconds": {"total": 1}, "peak_memory_mb": 1, "state_mb": 1, "threads": 1},
        "versions": {},
        "provenance": {"stand_in": True},
    }
    return Result.model_validate(data | changes)


class Drawn:
    """Keeps the figure that would be written, to look into it."""

    def __call__(self, figure: Any, path: object) -> None:
        self.figure = figure
        self.axes = figure.axes[0]
        self.texts = [text.get_text() for text in self.axes.texts]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    keeper = Drawn()
    monkeypatch.setattr(figures, "write_figure", keeper)
    return keeper


@pytest.mark.parametrize(
    ("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")]
)
def test_the_suffix_decides_the_format(tmp_path: Path, suffix: str, start: bytes) -> None:
    learning_curves({"adr": [result()]}, tmp_path / f"curves{suffix}")
    accuracy_matrix_figure(result(), tmp_path / f"matrix{suffix}")
    for name in ("curves", "matrix"):
        assert (tmp_path / f"{name}{suffix}").read_bytes().startswith(start)
    assert len(list(tmp_path.iterdir())) == 2


def test_the_same_results_give_the_same_svg(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        learning_curves({"adr": [result()]}, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_an_unknown_format_prints_the_list(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown kind of figure '.bmp'.*\.pdf, \.png, \.svg"):
        learning_curves({"adr": [result()]}, tmp_path / "x.bmp")
    assert list(tmp_path.iterdir()) == []


def test_a_line_is_the_mean_over_seeds_with_a_band(drawn: Drawn) -> None:
    learning_curves({"adr": [result(seed=0), result(seed=2)], "bare": [result("bare")]}, "x.png")
    line = drawn.axes.lines[0]
    assert line.get_ydata()[0] == pytest.approx(94.0)
    assert len(drawn.axes.collections) == 1  # one seed has no deviation to show
    band = drawn.axes.collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx(94.0 + 2**0.5)


def test_lines_are_named_in_their_colour(drawn: Drawn) -> None:
    learning_curves({"adr": [result()], "bare": [result("bare", fall=20.0)]}, "x.png")
    names = {text.get_text(): text.get_color() for text in drawn.axes.texts}
    assert names == {"ADR": style_of("adr")["color"], "Bare": style_of("bare")["color"]}


def test_the_title_says_stream_protocol_stand_in_and_seeds(drawn: Drawn) -> None:
    learning_curves({"adr": [result(seed=0), result(seed=1)]}, "x.png")
    title = drawn.axes.get_title(loc="left")
    assert "cs-cl (stand-in), global protocol" in title
    assert "over 2 seeds" in title
    learning_curves({"adr": [result(provenance={"stand_in": False})]}, "x.png")
    assert "stand-in" not in drawn.axes.get_title(loc="left")


def test_names_at_the_ends_do_not_overlap(drawn: Drawn) -> None:
    near = {name: [result(fall=5.0 + 0.01 * k)] for k, name in enumerate("abcdefgh")}
    learning_curves(near, "x.png")
    drawn.figure.canvas.draw()
    boxes = sorted((t.get_window_extent() for t in drawn.axes.texts), key=lambda box: box.y0)
    assert len(boxes) == 8
    assert all(low.y1 <= high.y0 for low, high in pairwise(boxes))


def test_noise_is_not_blown_up(drawn: Drawn) -> None:
    learning_curves({"adr": [result(fall=0.01)]}, "x.png")
    low, high = drawn.axes.get_ylim()
    assert high - low == pytest.approx(10.0)
    assert high <= 101.0


def test_curves_of_two_streams_are_rejected(tmp_path: Path) -> None:
    other = result(spec={"stream": "synthetic"})
    with pytest.raises(InputError, match="one figure shows one stream, not 2"):
        learning_curves({"adr": [result(), other]}, tmp_path / "x.png")


@pytest.mark.parametrize("results", [{}, {"adr": []}])
def test_curves_need_results(results: dict[str, list[Result]], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least one result"):
        learning_curves(results, tmp_path / "x.png")


def test_a_matrix_shows_every_number_and_no_other(drawn: Drawn) -> None:
    accuracy_matrix_figure(result(), "x.png")
    assert drawn.texts[:-1] == [
        *["95.0"],
        *["90.0", "95.0"],
        *["85.0", "90.0", "95.0"],
        *["80.0", "85.0", "90.0", "95.0"],
    ]
    means = drawn.axes.child_axes[0].get_yticklabels()
    assert [label.get_text() for label in means] == ["95.0", "92.5", "90.0", "87.5"]
    assert "ADR, seed 0" in drawn.axes.get_title(loc="left")


def test_styles_tell_methods_apart_and_do_not_move() -> None:
    styles = [tuple(style_of(name).values()) for name in METHODS]
    assert len(set(styles)) == len(METHODS)
    assert style_of("adr")["color"] == "#D55E00"
    outside = {tuple(style_of("new", k).values()) for k in range(5)}
    assert len(outside) == 5


@pytest.mark.parametrize(
    ("places", "moved"),
    [
        ([], []),
        ([3.0], [3.0]),
        ([1.0, 5.0], [1.0, 5.0]),
        ([4.0, 4.0], [3.5, 4.5]),
        ([0.0, 0.0], [0.0, 1.0]),
        ([9.9, 10.0], [9.0, 10.0]),
        ([4.0, 4.0, 4.9], [3.3, 4.3, 5.3]),
    ],
)
def test_labels_move_as_little_as_needed(places: list[float], moved: list[float]) -> None:
    assert spread_apart(places, gap=1.0, low=0.0, high=10.0) == pytest.approx(moved)


def test_without_matplotlib_the_way_out_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"pip install 'undrift\[figures\]'"):
        accuracy_matrix_figure(result(), tmp_path / "x.png")


def test_neither_matplotlib_nor_pyplot_is_imported_early(tmp_path: Path) -> None:
    code = (
        "import sys, undrift.reporting.figures.files as f; assert 'matplotlib' not in sys.modules\n"
        "f.canvas('x.png', width=1, height=1); sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
