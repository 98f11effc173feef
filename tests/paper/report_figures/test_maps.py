"""Maps of colours: performance matrices, and the surfaces of searches."""

from statistics import fmean
from typing import Any

import numpy as np
import pytest

from paper.report_figures.maps import matrices_figure, surface_figure, varied
from undrift.reporting.search_grids import search_grids

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[figures]'")


def trio(fakes: Any, stream: str) -> dict[str, Any]:
    return {m: [fakes.result(stream, m, seed) for seed in (0, 1)] for m in ("acil", "ds-al", "adr")}


def test_matrices_are_means_over_seeds_under_one_scale(fakes) -> None:
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
    (heading,) = [text.get_text() for text in panels[0].texts if "ACIL" in text.get_text()]
    assert heading.startswith("ACIL\n")
    assert heading.endswith(f"{average:.1f}")


def test_numbers_are_written_where_they_fit(fakes, in_print) -> None:
    many = matrices_figure(trio(fakes, "arxiv-cl"))
    one = matrices_figure({"adr": [fakes.result("arxiv-cl")]})
    few = matrices_figure(trio(fakes, "cs-cl"))
    digits = [sum(t.get_text().isdigit() for t in f.axes[0].texts) for f in (many, one, few)]
    assert digits == [0, 66, 21]
    for figure in (many, one, few):
        in_print.check(figure)


class Surface:
    """The map of some searches, by what stands in its cells."""

    def __init__(self, *searches: Any) -> None:
        self.figure = surface_figure(search_grids(searches), stand_ins=frozenset({"cs-cl"}))
        axes = self.figure.axes[0]
        self.columns = [label.get_text() for label in axes.get_xticklabels()]
        self.rows = [label.get_text() for label in axes.get_yticklabels()]
        *cells, heading, below = axes.texts
        self.numbers = {text.get_position(): text.get_text() for text in cells}
        self.words = heading.get_text(), below.get_text()
        self.hatched = sum(patch.get_hatch() is not None for patch in axes.patches)
        self.frames = {
            (round(patch.get_x() + 0.45), round(patch.get_y() + 0.43))
            for patch in axes.patches
            if not patch.get_fill()
        }


def test_a_cell_has_its_validation_accuracy_and_the_chosen_one_a_frame(fakes) -> None:
    surface = Surface(fakes.search())
    assert surface.columns == ["1", "2", "4", "8", "16", "32", "64"]
    assert surface.rows == ["0.001", "0.01", "0.1", "1"]
    assert len(surface.numbers) == 28
    assert [surface.numbers[k] for k in ((0, 0), (6, 3), (2, 1))] == ["80.0", "91.7", "83.9"]
    assert surface.frames == {(6, 3)}
    assert surface.words[0] == "CS-CL (stand-in), ADR"


def test_seeds_are_averaged_and_every_choice_is_framed(fakes) -> None:
    other = fakes.search(seed=1).model_copy(update={"chosen": {"alpha": 2, "gamma": 0.001}})
    surface = Surface(fakes.search(), other)
    assert surface.numbers[0, 0] == "80.5"
    assert surface.frames == {(6, 3), (1, 0)}
    assert "2 seeds" in surface.words[1]


def test_settings_that_failed_or_were_not_tried_are_hatched(fakes) -> None:
    search, failure = fakes.search(), {"validation": None, "failed": "no"}
    _, *tried = search.trials
    failed = [t.model_copy(update=failure) if t.params["alpha"] == 64 else t for t in tried]
    update = {"trials": failed, "chosen": {"alpha": 32, "gamma": 1.0}}
    surface = Surface(search.model_copy(update=update))
    assert surface.hatched == 5
    assert len(surface.numbers) == 23


def test_any_two_parameters_do(fakes: Any, in_print: Any) -> None:
    grid = {"hidden": ((64, 64), (256, 256)), "strength": (1, 10.0, 100), "epochs": (200,)}
    search = fakes.search(method="ewc", **grid)
    assert varied(search_grids([search])[0]) == ["strength", "hidden"]
    read = type(search).model_validate_json(search.model_dump_json(by_alias=True))
    surface = Surface(read)  # lists in place of tuples, as in a file
    assert surface.rows == ["64×64", "256×256"]
    assert len(surface.numbers) == 6
    in_print.check(surface.figure)
