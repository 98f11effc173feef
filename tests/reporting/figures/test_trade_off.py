"""Accuracy against cost: the points, the steps, and the places of names."""

from statistics import fmean
from typing import Any, Literal

import numpy as np
import pytest

from extras.trade_off import trade_off_figure
from undrift.learners.registry import METHODS
from undrift.reporting.figures.style import display, style_of

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[figures]'")

Against = Literal["bytes", "seconds"]
AGAINST: tuple[Against, ...] = ("bytes", "seconds")


def marks(axes: Any) -> dict[tuple[float, float], Any]:
    found = [line for line in axes.lines if len(line.get_xdata()) == 1]
    return {(line.get_xdata()[0], line.get_ydata()[0]): line for line in found}


def costing(fakes: Any, method: str, score: float, **cost: Any) -> list[Any]:
    run = fakes.result(method=method)
    by_class = run.metrics.by_class.model_copy(update={"a_avg": score})
    metrics = run.metrics.model_copy(update={"by_class": by_class})
    return [run.model_copy(update={"metrics": metrics, "cost": run.cost.model_copy(update=cost)})]


@pytest.mark.parametrize("against", AGAINST)
def test_points_are_means_over_seeds(against: Against, fakes) -> None:
    groups = fakes.groups()
    axes = trade_off_figure(groups, against).axes[1]
    assert axes.get_xscale() == "log"
    assert len(marks(axes)) == len(METHODS)
    runs = groups["corafull-cl"]["adr"]
    costs = [run.cost for run in runs]
    x = fmean(c.state_bytes[-1] if against == "bytes" else c.seconds["total"] for c in costs)
    found = marks(axes)[x, fmean(run.metrics.by_class.a_avg for run in runs)]
    assert (found.get_marker(), found.get_color()) == ("o", style_of("adr")["color"])
    hollow = [m for m in marks(axes).values() if m.get_markerfacecolor() == "white"]
    assert len(hollow) == sum(method.keeps_examples for method in METHODS.values())


def test_the_steps_join_what_no_other_method_beats(fakes) -> None:
    found = {
        "joint": costing(fakes, "joint", 99.0, state_bytes=[10]),  # a bound
        "lwf": costing(fakes, "lwf", 50.0, state_bytes=[1000]),
        "ewc": costing(fakes, "ewc", 40.0, state_bytes=[2000]),
        "adr": costing(fakes, "adr", 80.0, state_bytes=[10_000]),
    }
    axes = trade_off_figure({"cs-cl": found}, "bytes").axes[0]
    steps = next(line for line in axes.lines if line.get_drawstyle() == "steps-post")
    assert list(steps.get_xdata())[:2] == [1000, 10_000]
    assert list(steps.get_ydata()) == [50.0, 80.0, 80.0]


@pytest.mark.parametrize("against", AGAINST)
def test_nothing_kept_is_drawn_on_a_log_scale(against: Against, fakes, in_print) -> None:
    runs = costing(fakes, "adr", 80.0, state_bytes=[0], seconds={"total": 0.0})
    in_print.check(trade_off_figure({"cs-cl": {"adr": runs}}, against))


@pytest.mark.parametrize(("last", "words"), [(1, "(1 thread)"), (4, "(1 to 4 threads)")])
def test_seconds_say_on_how_many_threads(last: int, words: str, fakes) -> None:
    counts = {"adr": 1, "bare": last}
    found = {method: costing(fakes, method, 80.0, threads=n) for method, n in counts.items()}
    axes = trade_off_figure({"cs-cl": found}, "seconds").axes[0]
    assert axes.get_xlabel().endswith(words)


def test_every_point_is_named_near_it(fakes) -> None:
    axes = trade_off_figure({"cs-cl": fakes.groups()["cs-cl"]}, "bytes").axes[0]
    names = {text.get_text(): text for text in axes.texts}
    assert {display(method) for method in METHODS} <= set(names)
    runs = fakes.groups()["cs-cl"]["adr"]
    point = runs[0].cost.state_bytes[-1], fmean(run.metrics.by_class.a_avg for run in runs)
    place = axes.transData.transform([point, names["ADR"].get_position()])
    assert np.linalg.norm(place[1] - place[0]) < 0.15 * axes.get_window_extent().width
