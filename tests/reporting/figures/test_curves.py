"""Learning curves: a panel per stream, a named line per method."""

from statistics import fmean
from typing import Any

import pytest

from undrift.learners.registry import METHODS
from undrift.reporting.figures.curves import curves_figure
from undrift.reporting.figures.style import display, ink, style_of

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[figures]'")


def test_a_panel_per_stream_and_a_line_per_method(fakes) -> None:
    groups = fakes.groups(seeds=2)
    figure = curves_figure(groups)
    assert len(figure.axes) == 4
    for axes, (stream, found) in zip(figure.axes, groups.items(), strict=True):
        lines = [line for line in axes.lines if len(line.get_xdata()) == fakes.streams[stream][0]]
        assert len(lines) == len(METHODS)
        assert len(axes.collections) == len(METHODS)  # the bands
        for line, (method, runs) in zip(lines, found.items(), strict=True):
            assert line.get_ydata()[-1] == pytest.approx(fmean(r.by_class.a_t[-1] for r in runs))
            assert line.get_color() == style_of(method)["color"]
            assert line.get_linestyle() == style_of(method)["linestyle"]
            assert line.get_linewidth() == (1.5 if method == "adr" else 0.9)  # the proposed one


def test_every_line_is_named_beside_its_marker(fakes, in_print) -> None:
    found = fakes.groups(seeds=1)["arxiv-cl"]
    found["my-own-method"] = found["adr"]
    figure = curves_figure({"arxiv-cl": found}, width=120.0)
    axes = figure.axes[0]
    names = {text.get_text(): text for text in axes.texts}
    marks = {line.get_ydata()[0]: line for line in axes.lines if len(line.get_xdata()) == 1}
    for method in found:
        text = names[display(method)]
        assert text.get_color() == ink(style_of(method)["color"])
        assert marks[text.get_position()[1]].get_marker() == style_of(method)["marker"]
    in_print.check(figure, 120.0)


def test_a_shorter_run_ends_its_line_early_and_one_task_is_drawn(fakes, in_print) -> None:
    def cut(rows: Any) -> Any:
        run = fakes.result(seed=1)
        matrix = run.matrix.model_copy(update={"by_class": rows})
        return run.model_copy(update={"matrix": matrix})

    short = cut(fakes.result(seed=1).matrix.by_class[:3])
    axes = curves_figure({"cs-cl": {"adr": [fakes.result(seed=0), short]}}).axes[0]
    assert len(axes.lines[0].get_xdata()) == 3
    in_print.check(curves_figure({"cs-cl": {"adr": [cut([[50.0]])]}}))
