import sys
from typing import Any

import pytest

from undrift.errors import InputError
from undrift.reporting.figures import sheet
from undrift.reporting.figures.sheet import blank, house_style, write_figure

matplotlib = pytest.importorskip("matplotlib", reason="needs pip install 'undrift[figures]'")


def test_the_users_settings_do_not_change_a_figure_and_come_back() -> None:
    @house_style
    def size() -> Any:
        return matplotlib.rcParams["font.size"], matplotlib.rcParams["lines.linewidth"]

    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9}):
        assert size() == (sheet.PLAIN, 1.5)
        assert matplotlib.rcParams["font.size"] == 30


def test_without_matplotlib_the_way_out_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for call in (lambda: blank(85, 30), house_style(lambda: blank(85, 30))):
        with pytest.raises(InputError, match=r"pip install 'undrift\[figures\]'"):
            call()


@pytest.mark.parametrize(
    ("places", "moved"),
    [
        ([3.0], [3.0]),
        ([1.0, 5.0], [1.0, 5.0]),
        ([4.0, 4.0], [3.5, 4.5]),
        ([0.0, 0.0], [0.0, 1.0]),
        ([9.9, 10.0], [9.0, 10.0]),
        ([4.0, 4.0, 4.9], [3.3, 4.3, 5.3]),
    ],
)
def test_labels_move_as_little_as_needed(places: list[float], moved: list[float]) -> None:
    assert sheet.place_apart(places, gap=1.0, low=0.0, high=10.0) == pytest.approx(moved)


def test_the_suffix_decides_the_format(tmp_path) -> None:
    for suffix, start in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        write_figure(blank(20, 20), tmp_path / f"x.{suffix}")
        assert (tmp_path / f"x.{suffix}").read_bytes().startswith(start)


def test_noise_is_not_blown_up() -> None:
    assert sheet.limits(89.9, 90.0) == pytest.approx((84.95, 94.95))
    assert sheet.limits(99.9, 100.0) == pytest.approx((91.0, 101.0))
