"""`undrift demo`: the paper's method task by task, then four methods side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from undrift.cli.options import Whole
from undrift.formatting import percent, size

if TYPE_CHECKING:
    from undrift.experiments.result import Result
    from undrift.experiments.run import PreparedRun

METHODS = ("adr", "bare", "propagation", "joint")
"""The paper's method first, then the floor, the default and the bound."""


def demo(*, stream: str = "synthetic", seed: Whole = 0, out: Path = Path("runs")) -> None:
    """Show the paper's method at work, then compare four methods; under 20 seconds.

    ADR is compared with Bare, the default and joint training. The four runs are written to OUT as
    by "undrift run". The last line is the path of a figure: accuracy after every task, one curve
    per method.

    For example:

        undrift demo
        undrift demo --stream cs-cl --out /tmp/runs

    :param stream: What to learn from; "undrift streams" lists the names.
    :param seed: Decides the split of the nodes and the learners' randomness.
    :param out: The folder for results and the figure.
    """
    from undrift.cli.console import output, progress_console, run_progress
    from undrift.cli.run import check_stream_name
    from undrift.experiments import run as experiment
    from undrift.experiments.spec import RunSpec
    from undrift.reporting.figures.curves import curves_figure
    from undrift.reporting.figures.sheet import write_figure
    from undrift.reporting.terminal import matrix_table, plain_table
    from undrift.storage.files import writable_folder

    check_stream_name(stream)
    writable_folder(out)
    console, shown = progress_console(), output()
    results: dict[str, Result] = {}
    rows = []
    for method in METHODS:
        prepared = experiment.prepare(RunSpec(stream=stream, method=method, seed=seed))
        console.print(f"{prepared.learner.display} learns {stream}, task by task")
        with run_progress(console, len(prepared.stream)) as bar:
            made = experiment.execute(prepared, out, progress=bar.report, after_task=bar.after_task)
        results[method] = made
        rows.append(_row(prepared, made))
        if method == METHODS[0]:
            title = f"{prepared.learner.display} on {stream}: accuracy by class, percent"
            shown.print("", matrix_table(made.by_class, title=title, width=shown.width), "")
            moved = ", ".join("undefined" if d is None else f"{d:.1%}" for d in made.drift)
            shown.print(f"drift of task 0's embeddings after every task: {moved}\n")
    heads = ("A_avg", "A_f", "forgetting", "drift", "seconds", "kept", "nodes kept")
    columns = {"method": "name", **dict.fromkeys(heads, "number")}
    shown.print(plain_table("Four methods on the same stream", columns, rows), "")
    path = out / "demo.svg"
    groups = {stream: {method: [result] for method, result in results.items()}}
    write_figure(curves_figure(groups), path)
    shown.print(f"figure: {path}", markup=False, soft_wrap=True)


def _row(prepared: PreparedRun, result: Result) -> list[str]:
    learner, metrics = prepared.learner, result.metrics.by_class.model_dump()
    numbers = [f"{metrics[key]:.1f}" for key in ("a_avg", "a_f", "forgetting")]
    drift = result.drift[-1] if result.drift else None
    spent = sum(t for phase, t in result.cost.seconds.items() if phase not in ("total", "evaluate"))
    graph = getattr(learner.learned_, "graph", None)  # of a method that keeps nodes
    kept = "0" if graph is None else f"{graph.num_nodes:,}"
    cells = ["-" if drift is None else percent(drift, 1), f"{spent:.1f}"]
    return [learner.display, *numbers, *cells, size(1e6 * result.cost.state_mb), kept]
