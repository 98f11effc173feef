"""`undrift run`: one method over one stream."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

from undrift.cli.options import Flag, Settings, Whole, Words, check_threads
from undrift.learners.registry import DEFAULT
from undrift.streams.arrival import BY_CLASS, parse_arrival

if TYPE_CHECKING:
    from rich.console import Console

    from undrift.evaluation.loop import Evaluation
    from undrift.experiments.result import Result


def run(
    *,
    stream: str = "synthetic",
    arrive: str = BY_CLASS,
    method: str = DEFAULT,
    seed: Whole = 0,
    settings: Settings = (),
    protocol: Literal["global", "local"] = "global",
    open_world: Flag = False,
    device: str = "cpu",
    threads: Whole | None = None,
    out: Path = Path("runs"),
    track: Words = (),
) -> None:
    """Run one method over one stream and grade it after every task.

    Ends with the accuracy matrix, its metrics and what it cost, and writes all of it to
    OUT/ID/result.json, where ID is a hash of what was run. The same run again overwrites it.
    OUT/ID/split.npz beside it holds the classes of every task and the split of the nodes, and
    OUT/ID/embedding.npz a picture of how far the base task's embeddings moved.

    For example:

        undrift run
        undrift run --stream cs-cl --method bare --seed 1
        undrift run --stream cs-cl --arrive blurry  classes come back
        undrift run --stream papers/stream.toml     a graph of your own
        undrift run --set gamma=0.1 --set alpha=4 --set hidden=64,64
        undrift run --protocol local --threads 4 --out /tmp/runs
        undrift run --track tensorboard --track mlflow

    :param stream: What to learn from: a name ("undrift streams" lists them), package.module:NAME or
        the path of a stream.toml.
    :param arrive: How its nodes arrive: classes (task by task, no class returns), or so that
        classes come back: blurry, domain, online or time, with options as in
        blurry:disjoint=0.5,blurry=0.1.
    :param method: What to learn with: a name ("undrift methods" lists them) or
        package.module:Class.
    :param seed: Decides the split of the nodes and the learner's randomness.
    :param settings: A hyperparameter, as name=value; repeat it for more.
    :param protocol: Grade on the graph of all tasks seen so far, or on each task's graph alone.
    :param open_world: Also grade on nodes of classes still to come: how well they are separated
        from known ones.
    :param device: Where to compute: cpu, cuda or cuda:1.
    :param threads: How many CPU threads to use; torch decides without it.
    :param out: The folder for results.
    :param track: Show the run in tensorboard or mlflow as well; repeat it for both.
    """
    from undrift.cli.console import output, progress_console, run_progress
    from undrift.experiments.result import result_path
    from undrift.experiments.spec import RunSpec, choose_readings, parse_settings
    from undrift.experiments.tracking import check_trackers
    from undrift.learners.registry import known_method
    from undrift.storage.files import writable_folder

    # everything that can be wrong is looked at before torch is loaded and time is spent
    check_stream_name(stream)
    parse_arrival(arrive)
    method = known_method(method)
    texts = parse_settings(settings)
    check_trackers(track)
    set_threads(threads)
    writable_folder(out)

    from undrift import ranks
    from undrift.experiments import run as experiment
    from undrift.experiments.tracking import trackers

    spec = RunSpec(
        stream=stream,
        arrive=arrive,
        method=method,
        seed=seed,
        protocol=protocol,
        params=choose_readings(method, texts),
        device=device,
        open_world=open_world,
    )
    console = progress_console()
    with console.status("loading the stream"):
        prepared = experiment.prepare(spec)
    ranks.join(device)
    if ranks.rank() > 0:  # it helps the first, which shows and writes what came of it
        with TemporaryDirectory() as nowhere:
            experiment.execute(prepared, Path(nowhere))
        ranks.leave()
        return
    tracking = trackers(track, out)

    def tell(t: int, so_far: Evaluation) -> None:
        shown.after_task(t, so_far)
        tracking.after_task(t, so_far)

    try:
        with tracking.following(prepared.spec):
            with run_progress(console, len(prepared.stream)) as shown:
                result = experiment.execute(prepared, out, progress=shown.report, after_task=tell)
            tracking.finish(result)
        ranks.leave()
    except experiment.UnsavedError as error:
        _show(output(), error.result)
        raise
    finally:
        for failure in tracking.failures:
            console.print(failure, markup=False)
    _show(output(), result, result_path(prepared.spec, out))


def check_stream_name(stream: str) -> None:
    """Refuse a stream that is neither a name in the list nor a readable file."""
    from undrift.streams.benchmarks import stream_info
    from undrift.streams.file import is_stream_file, read_stream_file

    (read_stream_file if is_stream_file(stream) else stream_info)(stream)


def set_threads(threads: int | None) -> None:
    """Let torch compute with so many threads; None leaves it to torch."""
    if threads is not None:
        check_threads(threads)
        import torch

        torch.set_num_threads(threads)


def _show(console: Console, result: Result, path: Path | None = None) -> None:
    """All that a run came to, and where it lies; without a path the file itself as a line."""
    from undrift.cli.console import say
    from undrift.datasets.catalogue import marked
    from undrift.reporting.terminal import cost_table, matrix_table, metrics_table, series_table

    spec = result.spec
    stream = marked(spec.place, result.stand_in)
    console.print(f"\n{spec.method} on {stream}, seed {spec.seed}, {spec.protocol} protocol\n")
    title, back = "Accuracy by class, percent", result.returning
    if back is not None and len(back.graded) < back.batches:
        title += f"; graded after {len(back.graded)} of {back.batches} batches"
    if result.matrix.by_class:
        matrix = matrix_table(result.by_class, title=title, width=console.width, returning=back)
        console.print(matrix, "", metrics_table(result), "")
    if result.series:
        console.print(series_table(result), "")
    console.print(cost_table(result), "")
    for what in ("repairs", "periods", "scale"):
        if what in result.provenance:
            say(f"{what}: {result.provenance[what]}", console)
    say(f"result: {path or result.model_dump_json(by_alias=True)}", console)
