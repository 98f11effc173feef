"""`undrift leakage`: can the task of a test node be read off, and what is that worth?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from undrift.cli.options import Settings, Whole
from undrift.learners.registry import DEFAULT

if TYPE_CHECKING:
    from rich.console import Console

    from paper.leakage.measure import Attack
    from paper.leakage.study import LeakageStudy
    from undrift.experiments.spec import RunSpec


def leakage(
    *,
    stream: str = "synthetic",
    method: str = DEFAULT,
    seed: Whole = 0,
    hops: Whole = 2,
    settings: Settings = (),
    threads: Whole | None = None,
    out: Path = Path("runs"),
    figure: Path | None = None,
) -> None:
    """Show what local testing gives away: attack the task ids, and use them.

    Two attackers name the task of every test node by matching task prototypes, under local and
    under global testing. Then the method learns the stream and is graded with all classes to
    choose from, with those of the task each attacker named, and with those of the true task.
    All of it is written to OUT/leakage-STREAM-METHOD-SEED.json.

    For example:

        undrift leakage --method bare
        undrift leakage --stream cs-cl --method adr --threads 4
        undrift leakage --stream cs-cl --method bare --figure leakage.svg

    :param stream: What to learn from: a name ("undrift streams" lists them), package.module:NAME or
        the path of a stream.toml.
    :param method: What to learn with; "undrift methods" lists them.
    :param seed: Decides the split of the nodes and the learner's randomness.
    :param hops: How many hops the attackers propagate the features.
    :param settings: A hyperparameter of the method, as name=value; repeat it for more.
    :param threads: How many CPU threads to use; torch decides without it.
    :param out: The folder for results.
    :param figure: Draw all leakage results in OUT, this one among them, into this file (svg, pdf,
        png).
    """
    from undrift.cli.console import output
    from undrift.cli.run import check_stream_name, set_threads
    from undrift.errors import InputError
    from undrift.experiments.spec import RunSpec, choose_readings, parse_settings
    from undrift.learners.registry import known_method
    from undrift.storage.files import writable_folder

    # everything that can be wrong is looked at before torch is loaded and time is spent
    check_stream_name(stream)
    method = known_method(method)
    if hops < 0:
        raise InputError(f"--hops must be 0 or more, not {hops}")
    texts = parse_settings(settings)
    set_threads(threads)
    writable_folder(out)
    if figure is not None:
        from paper.leakage.figure import check_suffix
        from undrift.reporting.figures import sheet

        check_suffix(figure)
        sheet.blank(1, 1)  # complains if matplotlib is missing

    from paper.leakage.figure import leakage_figure
    from paper.leakage.study import load_studies, save_study

    params = choose_readings(method, texts)
    study = _study(RunSpec(stream=stream, method=method, seed=seed, params=params), hops)
    path = save_study(study, out)
    _show(output(), study)
    output().print(f"result: {path}", soft_wrap=True)
    if figure is not None:
        leakage_figure(load_studies(out), figure)
        output().print(f"figure: {figure}", soft_wrap=True)


def _study(spec: RunSpec, hops: int) -> LeakageStudy:
    """Attack the stream, learn it, and grade the learner with and without task ids."""
    from importlib.metadata import version

    from paper.leakage import measure
    from paper.leakage.study import LeakageStudy
    from undrift.cli.console import progress_console, run_progress
    from undrift.evaluation.loop import evaluate
    from undrift.evaluation.protocols import Protocol
    from undrift.experiments.run import prepare

    ready = prepare(spec)
    stream, learner = ready.stream, ready.learner
    protocols: tuple[Protocol, ...] = ("local", "global")
    with run_progress(progress_console(), len(stream)) as shown:
        attacked = measure.leakage(stream, hops=hops, progress=shown.report)
        evaluate(learner, stream, progress=shown.report, after_task=shown.after_task)
        lift = {p: measure.oracle_lift(learner, stream, p, hops=hops) for p in protocols}
    return LeakageStudy(
        stream=stream.name,
        method=spec.method,
        seed=spec.seed,
        params=spec.params,
        stand_in=stream.stand_in,
        leakage=attacked,
        lift=lift,
        provenance=dict(stream.provenance),
        versions={name: version(name) for name in ("undrift", "torch")},
    )


def _show(console: Console, study: LeakageStudy) -> None:
    from undrift.datasets.catalogue import marked
    from undrift.reporting.terminal import plain_table

    stream = marked(study.stream, study.stand_in)
    console.print(f"\n{study.method} on {stream}, seed {study.seed}\n")
    found = study.leakage
    table = plain_table(f"Test nodes whose task is named, percent ({found.hops} hops)")
    for name in ("attack", "local", "global", "how"):
        table.add_column(name, justify="right" if name in study.lift else "left")
    how: dict[Attack, str] = {"graph": "one task per test graph", "node": "one task per node"}
    for attack, words in how.items():
        shares = (found.accuracy[p][attack].by_node[-1] for p in ("local", "global"))
        table.add_row(attack, *(f"{share:.2f}" for share in shares), words)
    chance = f"{found.chance[-1]:.2f}"
    table.add_row("none", chance, chance, "always the largest task: chance")
    lifts = plain_table(f"A_f of {study.method} by class, percent")
    for name in ("protocol", "told nothing", "graph attack", "node attack", "true task"):
        lifts.add_column(name, justify="left" if name == "protocol" else "right")
    for protocol, lift in study.lift.items():
        values = (lift.plain, lift.graph, lift.node, lift.oracle)
        lifts.add_row(protocol, *(f"{value:.2f}" for value in values))
    console.print(table, "", lifts, "")
