"""Bars: accuracies just after learning, and how uneven the classes of a task are."""

from math import inf
from statistics import fmean, stdev

import pytest

from paper.report_figures.bars import imbalance_figure, plasticity_figure
from undrift.reporting.figures.style import style_of

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[figures]'")

METHODS = ("adr", "acil", "ds-al", "bare")


def test_bars_are_the_mean_of_a_l_in_the_colours_of_their_methods(fakes) -> None:
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
    whisker = axes.collections[0].get_segments()[0]  # one deviation
    values = [run.metrics.by_class.a_l for run in groups["cs-cl"]["adr"]]
    assert whisker[1][1] - whisker[0][1] == pytest.approx(2 * stdev(values))
    del groups["cs-cl"]["acil"]
    texts = plasticity_figure(groups, METHODS).axes[0].texts
    assert [text.get_text() for text in texts].count("not run") == 1


def test_bars_go_from_balance_to_rho_on_a_scale_that_suits(in_print) -> None:
    even, skewed = [4.1, 1.4, 2.2, 6.2, 3.1, 1.1], [98.5, 2.1, 151.2, 233.6, 1.7]
    long = [1 + (t * 7 % 11) * 1.3 for t in range(21)]
    figure = imbalance_figure([("A", even), ("B", skewed), ("C", long), ("D", [3.0, inf])])
    narrow, wide, _, empty = figure.axes
    tops = [[bar.get_y() + bar.get_height() for bar in axes.patches] for axes in figure.axes]
    assert tops[0] == pytest.approx(even)
    assert {bar.get_y() for bar in narrow.patches} == {1}
    assert narrow.get_ylim()[0] == 1
    assert (narrow.get_yscale(), wide.get_yscale()) == ("linear", "log")
    assert [t.get_text() for t in wide.texts][:5] == ["98.5", "2.1", "151", "234", "1.7"]
    assert [bar.get_hatch() for bar in empty.patches] == [None, "////"]  # a class without nodes
    assert tops[3][1] == pytest.approx(empty.get_ylim()[1])
    assert empty.texts[1].get_text() == "∞"
    in_print.check(figure)
