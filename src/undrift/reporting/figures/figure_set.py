"""All figures of a folder of results: which can be drawn, from which runs, and which cannot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from undrift.errors import InputError
from undrift.reporting.figures import drift, matrices, plasticity
from undrift.reporting.figures.curves import curves_figure
from undrift.reporting.figures.drift import DriftPanel, drift_figure, load_embedding
from undrift.reporting.figures.imbalance import imbalance_figure
from undrift.reporting.figures.matrices import matrices_figure
from undrift.reporting.figures.plasticity import plasticity_figure
from undrift.reporting.figures.sheet import COLUMN
from undrift.reporting.figures.shown_runs import Groups, runs_by_stream
from undrift.reporting.figures.style import display, safe_name, title_of
from undrift.reporting.figures.surface import surface_axes, surface_figure
from undrift.reporting.figures.trade_off import trade_off_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from undrift.experiments.manifest import Manifest
    from undrift.experiments.result import Result
    from undrift.experiments.search_record import Search

__all__ = ["FigureSet", "all_figures"]

_AT_ONCE = 4  # streams in a figure: as many panels as fill a page
_PAPER_AXES = ("alpha", "gamma")
_NOT_RUN = "there is no finished run of"


@dataclass(frozen=True)
class FigureSet:
    """Figures by name, drawn when called; a caption for each; and what was left out, and why.

    Names are lower case, without spaces, and stay the same when runs are added.
    """

    makers: dict[str, Callable[[], Figure]] = field(default_factory=dict)
    captions: dict[str, str] = field(default_factory=dict)
    left_out: list[tuple[str, str]] = field(default_factory=list)

    def add(self, name: str, caption: str, make: Callable[[], Figure]) -> None:
        """Put a figure in."""
        self.makers[name] = make
        self.captions[name] = caption

    def leave_out(self, name: str, why: str) -> None:
        """Say that a figure is not there."""
        self.left_out.append((name, why))


def all_figures(
    results: Mapping[str, Result],
    manifests: Iterable[Manifest],
    searches: Iterable[Search],
    folder: str | Path,
    *,
    imbalance: Mapping[str, Mapping[int, float]] | None = None,
    width: float = COLUMN,
) -> FigureSet:
    """Every figure of the paper and those beyond it, as far as there are runs for them.

    `results` are by the id of their run, whose folder under `folder` has its embedding.npz.
    `imbalance` is rho by task for every stream: it is counted from the data, which results do
    not hold. With `width=PAGE` panels of streams stand side by side. More than four streams go
    to further figures, `learning-curves-2` and so on. Nothing is drawn before it is asked for.
    """
    groups = runs_by_stream(results, manifests)
    stand_ins = frozenset(result.spec.stream for result in results.values() if result.stand_in)
    figures = FigureSet()
    _plasticity(figures, groups, width)
    _drift(figures, groups, Path(folder), width)
    _surfaces(figures, searches, stand_ins, width)
    _curves(figures, groups, width)
    _matrices(figures, groups, width)
    _imbalance(figures, imbalance or {}, stand_ins, width)
    _trade_offs(figures, groups, width)
    return figures


def _some(groups: Groups, methods: Sequence[str] | None = None) -> Groups:
    """The streams that have at least one of these methods, and only those methods."""
    kept = {
        stream: {m: found[m] for m in methods or found if m in found}
        for stream, found in groups.items()
    }
    return {stream: found for stream, found in kept.items() if found}


def _pages(name: str, streams: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    for k, start in enumerate(range(0, len(streams), _AT_ONCE), 1):
        yield (name if k == 1 else f"{name}-{k}"), streams[start : start + _AT_ONCE]


def _named(groups: Groups) -> str:
    return ", ".join(title_of(next(iter(found.values()))[0]) for found in groups.values())


def _none_of(methods: Sequence[str]) -> str:
    return f"{_NOT_RUN} {', '.join(display(method) for method in methods)}"


def _plasticity(figures: FigureSet, groups: Groups, width: float) -> None:
    methods = plasticity.METHODS_SHOWN
    shown = _some(groups, methods)
    if not shown:
        figures.leave_out("plasticity", _none_of(methods))
        return
    caption = (
        f"Plasticity: learning accuracy A_l, each task just after it was learned, on "
        f"{_named(shown)}; mean over seeds, whiskers one standard deviation. Bare, which only "
        "fits the newest task, is the upper bound."
    )
    figures.add("plasticity", caption, partial(plasticity_figure, shown, width=width))


def _drift(figures: FigureSet, groups: Groups, folder: Path, width: float) -> None:
    methods = drift.METHODS_SHOWN
    shown = _some(groups, methods)
    panels: dict[str, list[DriftPanel]] = defaultdict(list)
    absent = []
    for stream, found in shown.items():
        for runs in found.values():
            run = runs[0]  # the lowest seed: a picture is of one run
            what = f"{display(run.spec.method)} on {title_of(run)}"
            try:
                path = folder / run.spec.id / "embedding.npz"
                if not path.exists():
                    absent.append(what)
                    continue
                panels[stream].append(DriftPanel(run, load_embedding(path)))
            except InputError as error:
                figures.leave_out("drift", f"{what}: {error}")
    if not shown:
        figures.leave_out("drift", _none_of(methods))
    elif absent:
        figures.leave_out("drift", f"there is no embedding.npz of {', '.join(absent)}")
    for name, streams in _pages("drift", [stream for stream in panels if panels[stream]]):
        shown_here = [panel for stream in streams for panel in panels[stream]]
        titles = dict.fromkeys(title_of(panel.result) for panel in shown_here)
        caption = (
            f"Feature drift on {', '.join(titles)}: principal components of the base task's "
            "embeddings under the first encoder (light circles) and the last (dark triangles), "
            "coloured by class, a line from the old mean of a class to the new; one seed. The "
            "percentage is measured on all embeddings: how far they moved over how long they were."
        )
        figures.add(name, caption, partial(drift_figure, shown_here, width=width))


def _surfaces(
    figures: FigureSet, searches: Iterable[Search], stand_ins: frozenset[str], width: float
) -> None:
    """A figure per method and what its trials share; a grid of one parameter has no surface."""
    drawable: dict[tuple[str, str, tuple[str, str]], dict[str, list[Search]]] = defaultdict(
        lambda: defaultdict(list)
    )
    whys = []
    for search in searches:
        base = search.spec.base
        shared = " ".join(f"{name}={value}" for name, value in sorted(base.params.items()))
        try:
            drawable[base.method, shared, surface_axes(search)][base.stream].append(search)
        except InputError as error:
            whys += [str(error)] if base.method == "adr" else []
    for (method, shared, axes), found in sorted(drawable.items()):
        whole = f"surface-{method} {shared}" + ("" if axes == _PAPER_AXES else f" {axes}")
        for name, streams in _pages(safe_name(whole), list(found)):
            chosen = [search for stream in streams for search in found[stream]]
            with_these = f" with {shared}" if shared else ""
            caption = (
                f"Grid search of {display(method)}{with_these} over {axes[0]} and {axes[1]}: "
                "average accuracy A_avg on validation nodes. The chosen setting is framed; "
                "hatched ones failed or were not tried."
            )
            make = partial(surface_figure, chosen, stand_ins=stand_ins, width=width)
            figures.add(name, caption, make)
    if not any(method == "adr" for method, _, _ in drawable):
        figures.leave_out("surface-adr", (whys or ["there is no finished search of ADR"])[0])


def _curves(figures: FigureSet, groups: Groups, width: float) -> None:
    if not groups:
        figures.leave_out("learning-curves", f"{_NOT_RUN} any method")
    for name, streams in _pages("learning-curves", list(groups)):
        shown = {stream: groups[stream] for stream in streams}
        caption = (
            f"Learning curves on {_named(shown)}: A_t, the mean accuracy over the tasks seen, "
            "after each task; mean over seeds, bands one standard deviation. Hollow marks keep "
            "examples."
        )
        figures.add(name, caption, partial(curves_figure, shown, width=width))


def _matrices(figures: FigureSet, groups: Groups, width: float) -> None:
    methods = matrices.METHODS_SHOWN
    shown = _some(groups, methods)
    if not shown:
        figures.leave_out("matrices", _none_of(methods))
    for stream, found in shown.items():
        title = title_of(next(iter(found.values()))[0])
        caption = (
            f"Performance matrices on {title}: the accuracy on task i after learning task t, "
            "mean over seeds, under one colour scale."
        )
        figures.add(
            f"matrices-{safe_name(stream)}", caption, partial(matrices_figure, found, width=width)
        )


def _imbalance(
    figures: FigureSet,
    imbalance: Mapping[str, Mapping[int, float]],
    stand_ins: frozenset[str],
    width: float,
) -> None:
    if not imbalance:
        figures.leave_out("imbalance", "no stream's data is at hand to count its classes")
    for name, streams in _pages("imbalance", list(imbalance)):
        shown = {stream: imbalance[stream] for stream in streams}
        caption = "Class imbalance rho_t: nodes of a task's largest class over its smallest."
        make = partial(imbalance_figure, shown, stand_ins=stand_ins, width=width)
        figures.add(name, caption, make)


def _trade_offs(figures: FigureSet, groups: Groups, width: float) -> None:
    for against, what in (("bytes", "the bytes kept"), ("seconds", "the seconds of a run")):
        base = f"accuracy-{against}"
        if not groups:
            figures.leave_out(base, f"{_NOT_RUN} any method")
        for name, streams in _pages(base, list(groups)):
            shown = {stream: groups[stream] for stream in streams}
            caption = (
                f"Average accuracy A_avg against {what} on {_named(shown)}; mean over seeds. "
                "Hollow marks keep examples; grey steps join the methods that no other beats in "
                "both, bounds left out."
            )
            figures.add(name, caption, partial(trade_off_figure, shown, against, width=width))  # type: ignore[arg-type]
