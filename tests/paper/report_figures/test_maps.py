"""Maps of colours: performance matrices, and the surfaces of searches."""

from statistics import fmean
from typing import Any

import numpy as np
import pytest

from paper.report_figures import maps
from paper.report_figures.maps import matrices_figure
from undrift.reporting.search_grids import search_grids

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[figures]'")


def trio(fakes: Any, stream: str) -> dict[str, Any]:
    return {m: [fakes.result(stream, m, seed) for seed in (0, 1)] for m in ("acil", "ds-al", "adr")}


def name_of(axes: Any) -> Any:
    return next(text for text in axes.texts if "ACIL" in text.get_text())


def test_matrices_are_means_over_seeds_under_one_scale(fakes: Any) -> None:
    found = trio(fakes, "arxiv-cl")
    *panels, bar = matrices_figure(found).axes
    assert len(panels) == 3
    for axes, runs in zip(panels, found.values(), strict=True):
        image = axes.images[0]
        assert image.get_clim() == (0, 100)
        shown = image.get_array()
        assert shown[7, 2] == pytest.approx(fmean(run.by_class.rows[7][2] for run in runs))
        assert np.ma.getmaskarray(shown)[2, 7]  # nothing above the diagonal
    assert [tick.get_text() for tick in bar.get_yticklabels()] == ["0", "25", "50", "75", "100"]
    average = fmean(run.metrics.by_class.a_avg for run in found["acil"])
    assert name_of(panels[0]).get_text().startswith("ACIL\n")
    assert name_of(panels[0]).get_text().endswith(f"{average:.1f}")


def test_numbers_are_written_where_they_fit(fakes: Any, in_print: Any) -> None:
    many = matrices_figure(trio(fakes, "arxiv-cl"))
    one = matrices_figure({"adr": [fakes.result("arxiv-cl")]})
    few = matrices_figure(trio(fakes, "cs-cl"))
    digits = [sum(t.get_text().isdigit() for t in f.axes[0].texts) for f in (many, one, few)]
    assert digits == [0, 66, 21]
    for figure in (many, one, few):
        in_print.check(figure)


def surface_figure(*searches: Any) -> Any:
    return maps.surface_figure(search_grids(searches), stand_ins=frozenset({"cs-cl"}))


def numbers(axes: Any) -> dict[tuple[int, int], str]:
    """The text of every cell; a heading's place is not a cell's."""
    return {text.get_position(): text.get_text() for text in axes.texts[:-2]}


def frames(axes: Any) -> set[tuple[int, int]]:
    return {
        (round(patch.get_x() + 0.45), round(patch.get_y() + 0.43))
        for patch in axes.patches
        if not patch.get_fill()
    }


def hatched(axes: Any) -> int:
    return sum(patch.get_hatch() is not None for patch in axes.patches)


def test_a_cell_has_its_validation_accuracy_and_the_chosen_one_a_frame(fakes: Any) -> None:
    axes = surface_figure(fakes.search()).axes[0]
    ticks = [label.get_text() for label in axes.get_xticklabels()]
    assert ticks == ["1", "2", "4", "8", "16", "32", "64"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0.001", "0.01", "0.1", "1"]
    shown = numbers(axes)
    assert len(shown) == 28
    assert (shown[0, 0], shown[6, 3], shown[2, 1]) == ("80.0", "91.7", "83.9")
    assert frames(axes) == {(6, 3)}
    assert axes.texts[-2].get_text() == "CS-CL (stand-in), ADR"


def test_seeds_are_averaged_and_every_choice_is_framed(fakes: Any) -> None:
    other = fakes.search(seed=1)
    other = other.model_copy(update={"chosen": {"alpha": 2, "gamma": 0.001}})
    (axes,) = surface_figure(fakes.search(), other).axes
    assert numbers(axes)[0, 0] == "80.5"
    assert frames(axes) == {(6, 3), (1, 0)}
    assert "2 seeds" in axes.texts[-1].get_text()


def test_settings_that_failed_or_were_not_tried_are_hatched(fakes: Any) -> None:
    search = fakes.search()
    failed = [t.model_copy(update={"validation": None, "failed": "no"}) for t in search.trials]
    mixed = [
        f if f.params["alpha"] == 64 else t for t, f in zip(search.trials, failed, strict=True)
    ]
    update = {"trials": mixed[1:], "chosen": {"alpha": 32, "gamma": 1.0}}
    axes = surface_figure(search.model_copy(update=update)).axes[0]
    assert hatched(axes) == 5
    assert len(numbers(axes)) == 23
    assert hatched(surface_figure(search.model_copy(update={"trials": failed})).axes[0]) == 28


def test_any_two_parameters_do(fakes: Any, in_print: Any) -> None:
    search = fakes.search(
        method="ewc", hidden=((64, 64), (256, 256)), strength=(1, 10.0, 100), epochs=(200,)
    )
    assert search_grids([search])[0].varied == ["strength", "hidden"]
    read = type(search).model_validate_json(search.model_dump_json(by_alias=True))
    figure = surface_figure(read)  # lists in place of tuples, as in a file
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["64×64", "256×256"]
    assert len(numbers(axes)) == 6
    in_print.check(figure)
