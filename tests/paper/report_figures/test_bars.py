"""Bars: accuracies just after learning, and how uneven the classes of a task are."""

from math import inf
from statistics import fmean, stdev
from typing import Any

import pytest

from paper.report_figures.bars import imbalance_figure, plasticity_figure
from undrift.reporting.figures.style import style_of

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[figures]'")

METHODS = ("adr", "acil", "ds-al", "bare")
WIDE = [98.5, 2.1, 4.4, 151.2, 8.8, 233.6, 1.7, 3.3, 89.0, 5.5, 12.4]
NARROW = [4.1, 1.4, 2.2, 6.2, 3.1, 1.1]


def test_bars_are_the_mean_of_a_l_in_the_colours_of_their_methods(fakes: Any) -> None:
    from matplotlib.colors import to_hex

    groups = fakes.groups()
    figure = plasticity_figure(groups, METHODS)
    axes, legend = figure.axes[0], figure.legends[0]
    assert len(axes.patches) == 16
    found = sorted(axes.patches, key=lambda bar: bar.get_x())[:4]
    marks = legend.get_patches()
    for bar, mark, method in zip(found, marks, METHODS, strict=True):
        values = [run.metrics.by_class.a_l for run in groups["cs-cl"][method]]
        assert bar.get_height() == pytest.approx(fmean(values))
        for part in (bar, mark):
            assert to_hex(part.get_facecolor()).upper() == style_of(method)["color"]
    assert [text.get_text() for text in legend.get_texts()] == ["ADR", "ACIL", "DS-AL", "Bare"]


def test_whiskers_are_one_deviation_and_absent_with_one_seed(fakes: Any) -> None:
    groups = {"cs-cl": {"adr": fakes.groups()["cs-cl"]["adr"]}}
    whisker = plasticity_figure(groups, METHODS).axes[0].collections[0].get_segments()[0]
    values = [run.metrics.by_class.a_l for run in groups["cs-cl"]["adr"]]
    assert whisker[1][1] - whisker[0][1] == pytest.approx(2 * stdev(values))
    one = {"cs-cl": {"adr": [fakes.result()]}}
    assert not plasticity_figure(one, METHODS).axes[0].collections


def test_a_method_that_was_not_run_says_so(fakes: Any) -> None:
    groups = fakes.groups()
    del groups["cs-cl"]["acil"]
    texts = [text.get_text() for text in plasticity_figure(groups, METHODS).axes[0].texts]
    assert texts.count("not run") == 1
    assert len(texts) == 16


def tops(axes: Any) -> list[float]:
    return [bar.get_y() + bar.get_height() for bar in axes.patches]


def test_bars_go_from_balance_to_rho_on_a_scale_that_suits(in_print: Any) -> None:
    long = [1 + (t * 7 % 11) * 1.3 for t in range(21)]
    figure = imbalance_figure([("A", NARROW), ("B", WIDE), ("C", long), ("D", [1.0])])
    narrow, wide, *_ = figure.axes
    assert tops(narrow) == pytest.approx(NARROW)
    assert {bar.get_y() for bar in narrow.patches} == {1}
    assert narrow.get_ylim()[0] == 1
    assert (narrow.get_yscale(), wide.get_yscale()) == ("linear", "log")
    texts = [text.get_text() for text in wide.texts]
    assert texts[:6] == ["98.5", "2.1", "4.4", "151", "8.8", "234"]
    in_print.check(figure)


def test_an_empty_class_has_a_hatched_bar() -> None:
    axes = imbalance_figure([("CS-CL", [3.0, inf])]).axes[0]
    assert [bar.get_hatch() for bar in axes.patches] == [None, "////"]
    assert tops(axes)[1] == pytest.approx(axes.get_ylim()[1])
    assert axes.texts[1].get_text() == "∞"
