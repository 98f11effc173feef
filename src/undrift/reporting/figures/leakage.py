"""The leakage study of a stream and a method as a file, and the figure of several of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from undrift.errors import InputError
from undrift.evaluation.leakage import Attack, Leakage, Lift
from undrift.evaluation.protocols import Protocol
from undrift.experiments.record import validation_message
from undrift.learners.registry import METHODS
from undrift.reporting.figures.files import canvas, write_figure
from undrift.storage.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LeakageStudy", "leakage_figure", "load_studies", "load_study", "save_study"]

# Okabe and Ito's vermilion and blue: told apart with any colour vision
_COLOURS: dict[Protocol, str] = {"local": "#D55E00", "global": "#0072B2"}
_ORDER: tuple[Protocol, ...] = ("local", "global")
_BARS: tuple[tuple[Attack, Protocol], ...] = (
    ("graph", "local"),
    ("graph", "global"),
    ("node", "local"),
    ("node", "global"),
)
_MARKS: dict[str, dict[str, Any]] = {
    "oracle": {"marker": "|", "markersize": 11, "markeredgewidth": 2},
    "plain": {"marker": "o", "markersize": 7, "markerfacecolor": "none"},
    "graph": {"marker": "D", "markersize": 4.5},
    "node": {"marker": "^", "markersize": 5, "markerfacecolor": "white"},
}
_TOLD = {
    "oracle": "told the true task",
    "plain": "told nothing",
    "graph": "told by the graph attack",
    "node": "told by the node attack",
}


class LeakageStudy(BaseModel):
    """What `undrift leakage` writes: one stream, one method, one seed.

    `params` are the hyperparameters that were set, `provenance` is that of the stream.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    stream: str
    method: str
    seed: int
    params: dict[str, Any]
    stand_in: bool
    leakage: Leakage
    lift: dict[Protocol, Lift]
    provenance: dict[str, str]
    versions: dict[str, str]

    @property
    def file(self) -> str:
        """The name of its file; what a file name cannot have in a stream's name becomes `_`."""
        stream = re.sub(r"[^\w.-]", "_", self.stream)
        return f"leakage-{stream}-{self.method}-{self.seed}.json"


def save_study(study: LeakageStudy, folder: str | Path) -> Path:
    """Write a study into a folder and say where; one of the same name is replaced."""
    path = Path(folder) / study.file
    write_atomically(path, study.model_dump_json(indent=1).encode() + b"\n")
    return path


def load_study(path: str | Path) -> LeakageStudy:
    """Read a study; a damaged or foreign file is an `InputError`."""
    try:
        return LeakageStudy.model_validate_json(Path(path).read_bytes())
    except OSError as error:
        raise InputError(
            f"cannot read {path} ({error.strerror or error}); check the path"
        ) from error
    except ValidationError as error:
        raise InputError(
            f"{path} is damaged or not a leakage study ({validation_message(error)}); run undrift "
            "leakage again"
        ) from error


def load_studies(folder: str | Path) -> list[LeakageStudy]:
    """Every study in a folder, in the order of the file names."""
    return [load_study(path) for path in sorted(Path(folder).glob("leakage-*.json"))]


def leakage_figure(studies: Sequence[LeakageStudy], path: str | Path) -> None:
    """Left: the task-id accuracy of both attackers under both protocols, per stream, and chance.
    Right: what a task id is worth to each method, from no task id to the true one.

    Values are those after the last task, the mean over the seeds among the studies. Streams and
    methods stand in the order in which they first come.
    """
    if not studies:
        raise InputError("a leakage figure needs at least one study; run undrift leakage first")
    settings = sorted({f"{s.leakage.hops} {s.leakage.normalisation}" for s in studies})
    if len(settings) > 1:
        raise InputError(
            f"one figure shows one attack, not {len(settings)} ({', '.join(settings)} hops); put "
            "the studies into folders of their own"
        )
    rows = list(dict.fromkeys((study.stream, study.method) for study in studies))
    streams = list(dict.fromkeys(stream for stream, _ in rows))
    rows.sort(key=lambda row: streams.index(row[0]))  # keeps the order of the methods
    figure, axes = canvas(path, width=7.4, height=max(3.4, 1.7 + 0.42 * len(rows)))
    figure.delaxes(axes)
    left, right = figure.subplots(1, 2)
    _bars(left, studies, streams)
    _lifts(right, studies, rows)
    for panel in (left, right):
        handles, labels = panel.get_legend_handles_labels()
        order = sorted(range(len(labels)), key=labels.__getitem__)
        panel.legend(
            [handles[k] for k in order],
            [labels[k] for k in order],
            loc="upper center",
            bbox_to_anchor=(0.5, -0.14),
            ncols=2,
            fontsize=7.5,
            frameon=False,
            handlelength=1.6,
        )
    write_figure(figure, path)


def _bars(axes: Axes, studies: Sequence[LeakageStudy], streams: Sequence[str]) -> None:
    """Four bars per stream: filled for the graph attack, hatched for the node attack."""
    width = 0.21
    for at, stream in enumerate(streams):
        mine = [study for study in studies if study.stream == stream]
        for k, (attack, protocol) in enumerate(_BARS):
            height = fmean(s.leakage.accuracy[protocol][attack].by_node[-1] for s in mine)
            place, colour = at + (k - 1.5) * width, _COLOURS[protocol]
            filled: dict[str, Any] = (
                {"color": colour} if attack == "graph" else {"color": "white", "hatch": "////"}
            )
            label = f"{attack} attack, {protocol}" if at == 0 else None
            axes.bar(place, height, width * 0.9, edgecolor=colour, label=label, **filled)
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}  # over the chance line
            axes.text(place, height + 2, f"{height:.0f}", ha="center", fontsize=7, bbox=box)
        chance = fmean(study.leakage.chance[-1] for study in mine)
        ends = [at - 2.15 * width, at + 2.15 * width]
        label = "chance (largest task)" if at == 0 else None
        axes.plot(ends, [chance] * 2, color="black", linestyle=(0, (2, 1)), label=label)
    axes.set_xticks(range(len(streams)), [_named(studies, stream) for stream in streams])
    axes.set_xlim(-0.6, len(streams) - 0.4)
    axes.set_ylim(0, 108)
    axes.set_yticks(range(0, 101, 25))
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("test nodes whose task is named (%)", fontsize=8.5)
    _finish(axes, "y", "Can the task id be read off?")


def _lifts(axes: Axes, studies: Sequence[LeakageStudy], rows: Sequence[tuple[str, str]]) -> None:
    """A line per stream, method and protocol, from no task id to the true one."""
    names: list[tuple[float, str]] = []
    place = 0.0
    for k, (stream, method) in enumerate(rows):
        place += 0.0 if k == 0 else 0.5 if stream == rows[k - 1][0] else 1.1
        mine = [s for s in studies if (s.stream, s.method) == (stream, method)]
        for protocol in _ORDER:
            found = {how: fmean(getattr(s.lift[protocol], how) for s in mine) for how in _MARKS}
            line: dict[str, Any] = {"color": _COLOURS[protocol], "zorder": 2}
            axes.plot([found["plain"], found["oracle"]], [place] * 2, alpha=0.35, **line)
            for how, style in _MARKS.items():
                axes.plot(found[how], place, linestyle="none", **(line | style))
            place += 1
        names.append((place - 1.5, f"{_display(method)}, {_named(studies, stream)}"))
    axes.set_yticks([y for y, _ in names], [name for _, name in names])
    axes.set_ylim(place - 0.3, -0.7)  # the first row on top
    axes.set_xlim(0, 100)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("accuracy $A_f$ by class (%)", fontsize=8.5)
    _finish(axes, "x", "What is it worth to a method?")
    for how, style in _MARKS.items():  # in black: colour says the protocol
        axes.plot([], [], linestyle="none", color="black", label=_TOLD[how], **style)
    for protocol in _ORDER:
        axes.plot([], [], color=_COLOURS[protocol], alpha=0.5, label=f"{protocol} testing")


def _finish(axes: Axes, grid: Literal["x", "y"], title: str) -> None:
    axes.set_axisbelow(True)
    axes.grid(axis=grid, color="#E3E3E3", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    axes.set_title(title, loc="left", fontsize=9.5)


def _named(studies: Sequence[LeakageStudy], stream: str) -> str:
    stand_in = any(study.stand_in for study in studies if study.stream == stream)
    return stream + ("\n(stand-in)" if stand_in else "")


def _display(method: str) -> str:
    return METHODS[method].display if method in METHODS else method
