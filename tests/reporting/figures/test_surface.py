from __future__ import annotations

from typing import Any

import pytest

from undrift.errors import InputError
from undrift.reporting.figures import surface
from undrift.reporting.search_grids import search_grids

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[figures]'")


def surface_figure(searches: list[Any], **options: Any) -> Any:
    return surface.surface_figure(search_grids(searches), **options)


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
    axes = surface_figure([fakes.search()]).axes[0]
    ticks = [label.get_text() for label in axes.get_xticklabels()]
    assert ticks == ["1", "2", "4", "8", "16", "32", "64"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0.001", "0.01", "0.1", "1"]
    shown = numbers(axes)
    assert len(shown) == 28
    assert (shown[0, 0], shown[6, 3], shown[2, 1]) == ("80.0", "91.7", "83.9")
    assert frames(axes) == {(6, 3)}


def test_seeds_are_averaged_and_every_choice_is_framed(fakes: Any) -> None:
    other = fakes.search(seed=1)
    other = other.model_copy(update={"chosen": {"alpha": 2, "gamma": 0.001}})
    figure = surface_figure([fakes.search(), other])
    assert len(figure.axes) == 1
    assert numbers(figure.axes[0])[0, 0] == "80.5"
    assert frames(figure.axes[0]) == {(6, 3), (1, 0)}
    assert "2 seeds" in figure.axes[0].texts[-1].get_text()


def test_settings_that_failed_or_were_not_tried_are_hatched(fakes: Any) -> None:
    search = fakes.search()
    trials = [
        trial.model_copy(update={"validation": None, "failed": "out of memory"})
        if trial.params["alpha"] == 64
        else trial
        for trial in search.trials[1:]
    ]
    chosen = {"alpha": 32, "gamma": 1.0}
    search = search.model_copy(update={"trials": trials, "chosen": chosen})
    axes = surface_figure([search]).axes[0]
    assert hatched(axes) == 5
    assert len(numbers(axes)) == 23


def test_a_search_in_which_everything_failed_is_drawn(fakes: Any) -> None:
    search = fakes.search()
    failed = [t.model_copy(update={"validation": None, "failed": "no"}) for t in search.trials]
    assert hatched(surface_figure([search.model_copy(update={"trials": failed})]).axes[0]) == 28


def test_any_two_parameters_do(fakes: Any, in_print: Any) -> None:
    search = fakes.search(
        method="ewc", hidden=((64, 64), (256, 256)), strength=(1, 10.0, 100), epochs=(200,)
    )
    assert search_grids([search])[0].varied == ["strength", "hidden"]
    read = type(search).model_validate_json(search.model_dump_json(by_alias=True))
    figure = surface_figure([read])  # lists in place of tuples, as in a file
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["64×64", "256×256"]
    assert len(numbers(axes)) == 6
    in_print.check(figure)


def test_other_settings_are_another_map(fakes: Any) -> None:
    search = fakes.search()
    base = search.spec.base.model_copy(update={"params": {"merging": "average"}})
    other = search.model_copy(update={"spec": search.spec.model_copy(update={"base": base})})
    assert len(surface_figure([search, other]).axes) == 2


def test_noise_is_not_blown_up(fakes: Any) -> None:
    flat = fakes.search(alpha=(1, 2), gamma=(0.1, 0.2))
    axes = surface_figure([flat]).axes[0]  # from 80.0 to 82.6
    cells = [patch for patch in axes.patches if patch.get_fill()]
    brightness = [sum(patch.get_facecolor()[:3]) for patch in cells]
    assert min(brightness) > 1.0  # the lowest of them is not the darkest colour


@pytest.mark.parametrize("width", [85.0, 178.0])
def test_it_can_be_read_in_print(width: float, fakes: Any, in_print: Any) -> None:
    searches = [fakes.search(stream) for stream in fakes.streams]
    figure = surface_figure(searches, stand_ins=frozenset({"cs-cl"}), width=width)
    in_print.check(figure, width)
    words = [text for text, _, _ in in_print.texts(figure)]
    assert "CS-CL (stand-in), ADR" in words
    assert "Reddit-CL stand-in, ADR" in words


@pytest.mark.parametrize(
    ("grid", "varied"),
    [
        ({"gamma": (0.1, 1.0)}, "gamma"),
        ({"a": (1, 2), "b": (1, 2), "c": (1, 2)}, "a, b, c"),
        ({"a": (1,)}, "nothing"),
    ],
)
def test_a_grid_of_other_than_two_has_no_surface(
    grid: dict[str, Any], varied: str, fakes: Any
) -> None:
    with pytest.raises(InputError, match=f"adr on cs-cl varies {varied}; .*exactly two"):
        surface_figure([fakes.search(**grid)])


def test_a_surface_needs_a_search() -> None:
    with pytest.raises(InputError, match="at least one search"):
        surface_figure([])
