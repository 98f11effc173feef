from __future__ import annotations

from statistics import fmean
from typing import Any

import pytest

from undrift.errors import InputError
from undrift.learners.registry import METHODS
from undrift.reporting.figures.curves import curves_figure
from undrift.reporting.figures.style import display, ink, style_of

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[figures]'")


def test_a_panel_per_stream_and_a_line_per_method(fakes: Any) -> None:
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


def test_every_line_is_named_beside_its_marker(fakes: Any) -> None:
    axes = curves_figure({"cs-cl": fakes.groups(seeds=1)["cs-cl"]}).axes[0]
    names = {text.get_text(): text for text in axes.texts}
    marks = {line.get_ydata()[0]: line for line in axes.lines if len(line.get_xdata()) == 1}
    for method in METHODS:
        text = names[display(method)]
        assert text.get_color() == ink(style_of(method)["color"])
        assert marks[text.get_position()[1]].get_marker() == style_of(method)["marker"]


def test_a_shorter_run_ends_its_line_early(fakes: Any) -> None:
    whole, cut = fakes.result(seed=0), fakes.result(seed=1)
    rows = cut.matrix.by_class[:3]
    cut = cut.model_copy(update={"matrix": cut.matrix.model_copy(update={"by_class": rows})})
    axes = curves_figure({"cs-cl": {"adr": [whole, cut]}}).axes[0]
    assert len(axes.lines[0].get_xdata()) == 3


@pytest.mark.parametrize("width", [85.0, 178.0])
def test_it_can_be_read_in_print(width: float, fakes: Any, in_print: Any) -> None:
    in_print.check(curves_figure(fakes.groups(seeds=2), width=width), width)


def test_methods_to_come_have_room_too(fakes: Any, in_print: Any) -> None:
    found = fakes.groups(seeds=1)["arxiv-cl"]
    for name in ("propagation", "adr-plus", "hybrid", "my-own-method"):
        found[name] = found["adr"]
    in_print.check(curves_figure({"arxiv-cl": found}))


def test_a_single_task_and_a_single_run_are_drawn(fakes: Any, in_print: Any) -> None:
    one = fakes.result()
    matrix = one.matrix.model_copy(update={"by_class": [[50.0]]})
    in_print.check(curves_figure({"cs-cl": {"adr": [one.model_copy(update={"matrix": matrix})]}}))


@pytest.mark.parametrize("groups", [{}, {"cs-cl": {}}, {"cs-cl": {"adr": []}}])
def test_curves_need_results(groups: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="at least one result"):
        curves_figure(groups)
