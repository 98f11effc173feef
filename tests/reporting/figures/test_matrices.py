from __future__ import annotations

from statistics import fmean
from typing import Any

import numpy as np
import pytest

from undrift.errors import InputError
from undrift.reporting.figures.matrices import matrices_figure

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[figures]'")


def trio(fakes: Any, stream: str) -> dict[str, Any]:
    return {m: [fakes.result(stream, m, seed) for seed in (0, 1)] for m in ("acil", "ds-al", "adr")}


def test_matrices_are_means_over_seeds_under_one_scale(fakes: Any) -> None:
    found = trio(fakes, "arxiv-cl")
    figure = matrices_figure(found)
    *panels, bar = figure.axes
    assert len(panels) == 3
    for axes, runs in zip(panels, found.values(), strict=True):
        image = axes.images[0]
        assert image.get_clim() == (0, 100)
        shown = image.get_array()
        assert shown[7, 2] == pytest.approx(fmean(run.by_class.rows[7][2] for run in runs))
        assert np.ma.getmaskarray(shown)[2, 7]  # nothing above the diagonal
    assert [tick.get_text() for tick in bar.get_yticklabels()] == ["0", "25", "50", "75", "100"]


def test_numbers_are_written_where_they_fit(fakes: Any) -> None:
    small = matrices_figure(trio(fakes, "arxiv-cl"), width=85.0).axes[0]
    large = matrices_figure(trio(fakes, "arxiv-cl"), width=178.0).axes[0]
    assert not [text for text in small.texts if text.get_text().isdigit()]
    assert len([text for text in large.texts if text.get_text().isdigit()]) == 66


def test_panels_say_their_method_and_average(fakes: Any) -> None:
    found = trio(fakes, "arxiv-cl")
    name = next(
        text.get_text()
        for text in matrices_figure(found).axes[0].texts
        if "ACIL" in text.get_text()
    )
    average = fmean(run.metrics.by_class.a_avg for run in found["acil"])
    assert name.startswith("ACIL\n")
    assert name.endswith(f"{average:.1f}")


@pytest.mark.parametrize("stream", ["cs-cl", "corafull-cl", "reddit-cl-stand-in"])
@pytest.mark.parametrize("width", [85.0, 178.0])
def test_it_can_be_read_in_print(stream: str, width: float, fakes: Any, in_print: Any) -> None:
    in_print.check(matrices_figure(trio(fakes, stream), width=width), width)


def test_all_methods_fill_rows(fakes: Any, in_print: Any) -> None:
    figure = matrices_figure(fakes.groups(seeds=1)["cs-cl"])
    in_print.check(figure)
    lefts = {round(axes.get_position().x0, 3) for axes in figure.axes[:-1]}
    assert len(lefts) == 3


def test_names_stay_clear_of_a_matrix_of_few_tasks(fakes: Any, in_print: Any) -> None:
    found = trio(fakes, "cs-cl")
    for method, runs in found.items():
        short = [
            run.matrix.model_copy(update={"by_class": run.matrix.by_class[:3]}) for run in runs
        ]
        found[method] = [
            run.model_copy(update={"matrix": matrix})
            for run, matrix in zip(runs, short, strict=True)
        ]
    figure = matrices_figure(found)
    in_print.check(figure)
    name = next(text for text in figure.axes[0].texts if "ACIL" in text.get_text())
    assert name.get_window_extent().y0 >= figure.axes[0].get_window_extent().y1


def test_one_matrix_is_drawn(fakes: Any, in_print: Any) -> None:
    in_print.check(matrices_figure({"adr": [fakes.result("corafull-cl")]}))


def test_matrices_are_of_one_stream(fakes: Any) -> None:
    two = {"adr": [fakes.result("cs-cl")], "bare": [fakes.result("arxiv-cl", "bare")]}
    with pytest.raises(InputError, match=r"one stream, not 2 \(arxiv-cl, cs-cl\)"):
        matrices_figure(two)
    with pytest.raises(InputError, match="there are no runs"):
        matrices_figure({"adr": []})
