"""`undrift run`: one method over one stream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from rich.console import Console

    from undrift.experiments.result import Result

__all__ = ["run"]


def run(
    *,
    stream: str = "synthetic",
    method: str = "adr",
    seed: int = 0,
    settings: Annotated[
        tuple[str, ...], Parameter(name="--set", negative="", show_default=False)
    ] = (),
    protocol: Literal["global", "local"] = "global",
    device: str = "cpu",
    threads: int | None = None,
    out: Path = Path("runs"),
    traceback: Annotated[bool, Parameter(negative="", show_default=False)] = False,
) -> None:
    """Run one method over one stream and grade it after every task.

    Ends with the accuracy matrix, its metrics and what it cost, and writes all of it to
    OUT/ID/result.json, where ID is a hash of what was run. The same run again overwrites it.

    Parameters
    ----------
    stream
        What to learn from; "undrift streams" lists them.
    method
        What to learn with; "undrift methods" lists them.
    seed
        Decides the split of the nodes and the learner's randomness.
    settings
        A hyperparameter, as name=value; repeat it for more.
    protocol
        Grade on the graph of all tasks seen so far, or on each task's graph alone.
    device
        Where to compute: cpu, cuda or cuda:1.
    threads
        How many CPU threads to use; torch decides without it.
    out
        The folder for results.
    traceback
        When the run fails, print where.
    """
    from undrift.cli.console import output, progress_console
    from undrift.cli.progress import run_progress
    from undrift.cli.values import parse_settings
    from undrift.errors import unknown_name
    from undrift.experiments.result import save_result
    from undrift.experiments.spec import RunSpec
    from undrift.learners.registry import METHODS
    from undrift.storage.files import make_folder
    from undrift.streams.benchmarks import STREAMS

    # everything that can be wrong is looked at before torch is loaded and time is spent
    for kind, name, known in (("stream", stream, list(STREAMS)), ("method", method, list(METHODS))):
        if name not in known:
            raise unknown_name(kind, name, known)
    texts = parse_settings(settings)
    _set_threads(threads)
    make_folder(out)

    from undrift.experiments import run as experiment
    from undrift.experiments.params import choose_readings

    spec = RunSpec(
        stream=stream,
        method=method,
        seed=seed,
        protocol=protocol,
        params=choose_readings(method, texts),
        device=device,
    )
    with run_progress(progress_console(), STREAMS[stream].tasks) as shown:
        result = experiment.run(spec, progress=shown.report, after_task=shown.after_task)
    path = save_result(result, out)
    _show(output(), result, path)


def _set_threads(threads: int | None) -> None:
    if threads is None:
        return
    from undrift.errors import InputError

    if threads < 1:
        raise InputError(f"--threads must be 1 or more, not {threads}")
    import torch

    torch.set_num_threads(threads)


def _show(console: Console, result: Result, path: Path) -> None:
    from undrift.reporting.tables import cost_table, matrix_table, metrics_table

    spec = result.spec
    stream = spec.stream + (" (stand-in)" if result.stand_in else "")
    console.print(f"\n{spec.method} on {stream}, seed {spec.seed}, {spec.protocol} protocol\n")
    title = "Accuracy by class, percent"
    console.print(matrix_table(result.by_class, title=title, width=console.width), "")
    console.print(metrics_table(result), "")
    console.print(cost_table(result), "")
    console.print(f"result: {path}", soft_wrap=True)
