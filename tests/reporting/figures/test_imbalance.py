from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from undrift.errors import InputError
from undrift.reporting.figures.imbalance import imbalance_figure

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[figures]'")

WIDE = dict(enumerate([98.5, 2.1, 4.4, 151.2, 8.8, 233.6, 1.7, 3.3, 89.0, 5.5, 12.4]))
NARROW = dict(enumerate([4.1, 1.4, 2.2, 6.2, 3.1, 1.1]))


def tops(axes: Any) -> list[float]:
    return [bar.get_y() + bar.get_height() for bar in axes.patches]


def test_bars_go_from_balance_to_rho() -> None:
    axes = imbalance_figure({"cs-cl": NARROW}).axes[0]
    assert tops(axes) == pytest.approx(list(NARROW.values()))
    assert {bar.get_y() for bar in axes.patches} == {1}
    assert axes.get_ylim()[0] == 1


def test_a_wide_range_gets_a_log_scale() -> None:
    figure = imbalance_figure({"arxiv-cl": WIDE, "cs-cl": NARROW})
    assert [axes.get_yscale() for axes in figure.axes] == ["log", "linear"]


def test_every_bar_has_its_number() -> None:
    texts = [text.get_text() for text in imbalance_figure({"arxiv-cl": WIDE}).axes[0].texts]
    assert texts[:6] == ["98.5", "2.1", "4.4", "151", "8.8", "234"]


def test_an_empty_class_has_a_hatched_bar() -> None:
    axes = imbalance_figure({"cs-cl": {0: 3.0, 1: inf}}).axes[0]
    assert [bar.get_hatch() for bar in axes.patches] == [None, "////"]
    assert tops(axes)[1] == pytest.approx(axes.get_ylim()[1])
    assert axes.texts[1].get_text() == "∞"


@pytest.mark.parametrize("width", [85.0, 178.0])
def test_it_can_be_read_in_print(width: float, in_print: Any) -> None:
    long = {t: 1 + (t * 7 % 11) * 1.3 for t in range(21)}
    shown = {"arxiv-cl": WIDE, "cs-cl": NARROW, "corafull-cl": long, "reddit-cl": {0: 1.0}}
    figure = imbalance_figure(shown, stand_ins=frozenset({"reddit-cl"}), width=width)
    in_print.check(figure, width)
    assert "Reddit-CL (stand-in)" in [text for text, _, _ in in_print.texts(figure)]


@pytest.mark.parametrize("rho", [0.5, nan, -inf])
def test_what_is_no_ratio_is_named(rho: float) -> None:
    with pytest.raises(InputError, match=f"rho of task 3 of cs-cl is {rho}"):
        imbalance_figure({"cs-cl": {3: rho}})


@pytest.mark.parametrize("imbalance", [{}, {"cs-cl": {}}])
def test_imbalance_needs_a_task(imbalance: dict[str, dict[int, float]]) -> None:
    with pytest.raises(InputError, match="at least one task"):
        imbalance_figure(imbalance)
