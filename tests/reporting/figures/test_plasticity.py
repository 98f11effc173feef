from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

import pytest

from undrift.errors import InputError
from undrift.reporting.figures.plasticity import _broken, plasticity_figure
from undrift.reporting.figures.style import style_of

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[figures]'")


def bars(axes: Any) -> list[Any]:
    return list(axes.patches)


def test_bars_are_the_mean_of_a_l_in_the_colours_of_their_methods(fakes: Any) -> None:
    from matplotlib.colors import to_hex

    groups = fakes.groups()
    axes = plasticity_figure(groups).axes[0]
    assert len(bars(axes)) == 16
    found = sorted(bars(axes), key=lambda bar: bar.get_x())[:4]
    for bar, method in zip(found, ("adr", "acil", "ds-al", "bare"), strict=True):
        values = [run.metrics.by_class.a_l for run in groups["cs-cl"][method]]
        assert bar.get_height() == pytest.approx(fmean(values))
        assert to_hex(bar.get_facecolor()).upper() == style_of(method)["color"]


def test_the_legend_has_the_colours_of_the_bars(fakes: Any) -> None:
    from matplotlib.colors import to_hex

    legend = plasticity_figure(fakes.groups()).legends[0]
    shown = {
        text.get_text(): to_hex(patch.get_facecolor()).upper()
        for text, patch in zip(legend.get_texts(), legend.get_patches(), strict=True)
    }
    assert shown == {"ADR": "#D55E00", "ACIL": "#0072B2", "DS-AL": "#56B4E9", "Bare": "#8C8C8C"}


def test_whiskers_are_one_deviation_and_absent_with_one_seed(fakes: Any) -> None:
    groups = {"cs-cl": {"adr": fakes.groups()["cs-cl"]["adr"]}}
    whisker = plasticity_figure(groups).axes[0].collections[0].get_segments()[0]
    values = [run.metrics.by_class.a_l for run in groups["cs-cl"]["adr"]]
    assert whisker[1][1] - whisker[0][1] == pytest.approx(2 * stdev(values))
    one = {"cs-cl": {"adr": [fakes.result()]}}
    assert not plasticity_figure(one).axes[0].collections


def test_a_method_that_was_not_run_says_so(fakes: Any) -> None:
    groups = fakes.groups()
    del groups["cs-cl"]["acil"]
    texts = [text.get_text() for text in plasticity_figure(groups).axes[0].texts]
    assert texts.count("not run") == 1
    assert len(texts) == 16


def test_a_low_bar_has_its_number_above_it(fakes: Any) -> None:
    low = fakes.result()
    metrics = low.metrics.model_copy(
        update={"by_class": low.metrics.by_class.model_copy(update={"a_l": 5.0})}
    )
    groups = {"cs-cl": {"adr": [low.model_copy(update={"metrics": metrics})]}}
    text = plasticity_figure(groups).axes[0].texts[0]
    assert text.get_text() == "5.0"
    assert text.get_position()[1] > 5.0


@pytest.mark.parametrize("width", [85.0, 178.0])
def test_it_can_be_read_in_print(width: float, fakes: Any, in_print: Any) -> None:
    in_print.check(plasticity_figure(fakes.groups(), width=width), width)


def test_many_streams_go_to_a_next_row(fakes: Any, in_print: Any) -> None:
    many = {f"{stream}-{k}": found for k in range(3) for stream, found in fakes.groups().items()}
    figure = plasticity_figure(many)
    assert len(figure.axes) == 3
    in_print.check(figure)


def test_without_runs_it_says_which(fakes: Any) -> None:
    with pytest.raises(InputError, match="plasticity needs runs of adr, acil, ds-al, bare"):
        plasticity_figure({"cs-cl": {"ewc": [fakes.result(method="ewc")]}})


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("CS-CL", "CS-CL"),
        ("Computers-CL@thin", "Computers-CL\n@thin"),
        ("Arxiv-CL stand-in", "Arxiv-CL\nstand-in"),
        ("mine (stand-in)", "mine\n(stand-in)"),
    ],
)
def test_long_names_stand_on_two_lines(title: str, shown: str) -> None:
    assert _broken(title) == shown
