"""A graph folder where a command of `undrift learner` takes a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from undrift.errors import InputError
from undrift.typing import Progress

if TYPE_CHECKING:
    from undrift.folder.draft import Step
    from undrift.learners.small_classes import SmallClasses
    from undrift.scale.plan import MemoryEstimate


@dataclass(frozen=True)
class Workers:
    """Where the tasks of a graph folder run, and what predictions were asked for."""

    count: int | None
    dask: str | None
    nodes: tuple[str, ...] = ()
    probabilities: bool = False

    def refuse(self) -> None:
        """Where the batch is no graph folder."""
        if self.count is not None or self.dask is not None:
            raise InputError(
                "--workers and --dask are for graph folders; make one with: undrift graph import "
                "NODES EDGES --out FOLDER"
            )


def is_folder(files: Sequence[Path]) -> bool:
    """Whether the batch is a graph folder."""
    return len(files) == 1 and files[0].is_dir()


def observe_folder(
    folder: Path,
    graph: Path,
    workers: Workers,
    progress: Progress,
    *,
    aliases: Mapping[str, str],
    small_classes: SmallClasses | None,
) -> Step:
    """`undrift learner observe` of a graph folder."""
    from undrift.folder.large import observe_large
    from undrift.scale.engine import engine_of

    with engine_of(workers.count, workers.dask) as engine:
        return observe_large(
            folder,
            graph,
            engine,
            aliases=aliases,
            small_classes=small_classes,
            tell=_expect,
            progress=progress,
        )


def forget_folder(folder: Path, graph: Path, workers: Workers, progress: Progress) -> Step:
    """`undrift learner forget` of a graph folder."""
    from undrift.folder.large import forget_large
    from undrift.scale.engine import engine_of

    with engine_of(workers.count, workers.dask) as engine:
        return forget_large(folder, graph, engine, tell=_expect, progress=progress)


def predict_folder(
    folder: Path, graph: Path, out: Path, workers: Workers, progress: Progress
) -> int:
    """`undrift learner predict` of a graph folder: how many nodes."""
    from undrift.folder.large import predict_large
    from undrift.scale.engine import engine_of

    if workers.nodes:
        raise InputError("a graph folder is predicted whole; leave out --nodes")
    with engine_of(workers.count, workers.dask) as engine:
        return predict_large(
            folder,
            graph,
            out,
            engine,
            probabilities=workers.probabilities,
            tell=_expect,
            progress=progress,
        )


def _expect(estimate: MemoryEstimate) -> None:
    from undrift.cli.console import progress_console

    progress_console().print(f"this will take {estimate}", markup=False)
