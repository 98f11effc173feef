"""The verbs of `undrift learner`: what changes a learner, and what it predicts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from undrift.cli.console import say, working
from undrift.cli.options import (
    AS_LAST,
    HERE,
    Columns,
    Flag,
    Folder,
    Many,
    Several,
    Traceback,
    Whole,
    Workers,
    aliases,
    batches,
)
from undrift.errors import InputError
from undrift.formatting import counted
from undrift.learners.registry import DEFAULT
from undrift.learners.small_classes import SmallClasses

if TYPE_CHECKING:
    from undrift.folder.draft import Step
    from undrift.folder.folder import LearnerFolder

ERASING = {"erased": 0, "never here": 4, "not in this batch": 5, "waiting": 6}
"""The exit codes of `forget --node`, by what came of it."""


def new(
    folder: Path,
    /,
    *,
    method: str = DEFAULT,
    settings: Annotated[tuple[str, ...], Many, Parameter(name="--set")] = (),
    like: Path | None = None,
    plan: Path | None = None,
    keep: Whole = 0,
    remember_nodes: Flag = False,
    small_classes: SmallClasses | None = None,
    least_rows: Whole | None = None,
    scale: str | None = None,
    seed: Whole = 0,
    device: str = "cpu",
    traceback: Traceback = False,
) -> None:
    """Make a folder with a learner that has observed nothing.

    :param folder: The folder to make.
    :param method: What to learn with; "undrift methods" lists them and which of them forget and
        merge.
    :param settings: A hyperparameter, as name=value; repeat it for more.
    :param like: A folder whose learner this one shall be able to merge with: it gets its method,
        settings, plan, columns, their scale and its key, and none of its sums. Make it where the
        other is, and carry it to the other site empty.
    :param plan: A plan.json of another folder: rows are made as there, whatever the first batch is.
        Folders of one plan and one scale merge; only those made with --like notice a batch that is
        in both.
    :param keep: How many old states to keep. Two states give away what came between them.
    :param remember_nodes: Keep keyed hashes of node ids, so that "forget --node" can say which
        batches hold a node.
    :param small_classes: A new class that comes with few training nodes: refuse the batch (as
        without it), leave the class out as context, pool such classes into one, or allow it.
    :param least_rows: How many training nodes are not few: 5 without it.
    :param scale: Put columns into units of their spread: robust (by the first batch, for good),
        none, or a .json file of public ranges. Without it tables are scaled, .npz and .pt files
        are not.
    :param seed: Decides the validation nodes and the learner's randomness.
    :param device: Where to compute: cpu, cuda or cuda:1.
    """
    from undrift.cli.values import choose_readings, parse_settings
    from undrift.folder.folder import LearnerFolder

    chosen: dict[str, Any] = choose_readings(method, parse_settings(settings))
    chosen |= {} if plan is None else {"plan": str(plan)}
    chosen |= {"seed": seed} if seed else {}
    chosen |= {"device": device} if device != "cpu" else {}
    made = LearnerFolder.new(
        folder,
        method,
        settings=chosen,
        like=like,
        keep=keep,
        remember_nodes=remember_nodes,
        small_classes=small_classes,
        least_rows=least_rows,
        scale=scale,
    )
    say(f"{folder}: {made.show().method}, nothing observed yet")
    say(f"next: undrift learner observe {folder} NODES EDGES")


def observe(
    folder: Folder,
    /,
    *files: Path,
    alias: Annotated[tuple[str, ...], Many] = (),
    small_classes: SmallClasses | None = None,
    workers: Workers = HERE,
    columns: Columns = AS_LAST,
    traceback: Traceback = False,
) -> None:
    """Learn a batch: a table of nodes and a table of edges, one .npz or .pt file, a graph folder.

    Columns are matched by name, classes too; new classes and known ones may come together. Nodes
    without a label are context. Keep the files of a batch that may have to be forgotten.

    :param files: NODES EDGES, as .csv, .tsv or .parquet; or one .npz or .pt file of both; or a
        graph folder of "undrift graph import", which may be larger than memory.
    :param alias: A class by another name that it has in files, as "other name=name"; repeat it for
        more.
    :param small_classes: Refuse new classes with few training nodes, leave them out as context,
        pool them, or allow them; remembered from now on.
    """
    graph, renamed = workers.graph(files), aliases(alias)
    with working("learning") as progress:
        how: Any = {"aliases": renamed, "small_classes": small_classes, "progress": progress}
        if graph is not None:
            step = workers.run("observe", folder, graph, **how)
        else:
            step = opened(folder).observe(batches(files, 1)[0], **how, **columns.given())
    tell(folder, step)


def predict(
    folder: Folder,
    /,
    *files: Path,
    out: Path,
    nodes: Annotated[tuple[str, ...], Several] = (),
    probabilities: Flag = False,
    workers: Workers = HERE,
    columns: Columns = AS_LAST,
    traceback: Traceback = False,
) -> None:
    """Write the class of every node: its id, class, probability and runner-up.

    :param files: NODES EDGES, or one .npz or .pt file, or a graph folder; labels are not needed.
    :param out: The .csv or .parquet file to write.
    :param nodes: The ids of the nodes to predict; all without it.
    :param probabilities: Write the probability of every class as well, in columns p_NAME.
    """
    from undrift.folder.predictions import check_out

    check_out(out)
    graph = workers.graph(files)
    if graph is not None and nodes:
        raise InputError("a graph folder is predicted whole; leave out --nodes")
    with working("predicting") as progress:
        if graph is not None:
            how: Any = {"probabilities": probabilities, "progress": progress}
            count = workers.run("predict", folder, graph, out, **how)
        else:
            (given,) = batches(files, 1)
            found = opened(folder).predict(given, nodes or None, **columns.given())
            found.write(out, probabilities=probabilities)
            count = len(found.classes)
    if graph is None and str(found.repairs):
        say(f"note: {found.repairs}{found.repairs.advice}", progress=True)
    say(f"{counted(count, 'prediction')}: {out}")


def forget(
    folder: Folder,
    /,
    *files: Path,
    node: str | None = None,
    batch: Annotated[tuple[Path, ...], Several] = (),
    workers: Workers = HERE,
    columns: Columns = AS_LAST,
    traceback: Traceback = False,
) -> None:
    """Be as if a batch, or a node, had never been observed.

    A batch must be given as it was observed. A node may be in several batches, and its features
    reach its neighbours' rows in each: all must be seen again. Until then those rows stay in the
    sum. Without --batch, --node lists the batches that hold the node (a folder that was made with
    --remember-nodes can tell).

    Exit codes of --node: 0 erased from every batch that is known to hold it, 4 it was never here
    or was erased before, 5 the batches given do not hold it, 6 other batches that hold it must be
    given too.

    :param files: NODES EDGES of the batch to forget, or one .npz or .pt file, or a graph folder.
    :param node: Forget the node of this id instead.
    :param batch: NODES EDGES of a batch that holds the node, or one .npz or .pt file; repeat it for
        more. Of a graph folder, give the tables that it was imported from.
    """
    if (node is None) == (not files) or (batch and node is None):
        raise InputError(
            "forget takes NODES EDGES of a batch, or --node ID with --batch NODES EDGES for each "
            "batch that holds it"
        )
    graph, found = workers.graph(files), None
    with working("forgetting") as progress:
        how: Any = {"progress": progress, **columns.given()}
        if graph is not None:
            step = workers.run("forget", folder, graph, progress=progress)
        elif node is None:
            step = opened(folder).forget(batches(files, 1)[0], **how)
        else:
            found = opened(folder).forget_node(node, batches(batch), **how)
            step = found.step
    if step is not None:
        tell(folder, step)
    if found is not None:
        for sentence in found.sentences(str(folder)):
            say(sentence)
        raise SystemExit(ERASING[found.outcome])


def revise(
    folder: Folder,
    /,
    *files: Path,
    alias: Annotated[tuple[str, ...], Many] = (),
    small_classes: SmallClasses | None = None,
    columns: Columns = AS_LAST,
    traceback: Traceback = False,
) -> None:
    """Put a corrected batch in the place of one that was observed.

    Only rows within reach of a change are computed again.

    :param files: OLD_NODES OLD_EDGES NEW_NODES NEW_EDGES, or two .npz or .pt files.
    :param alias: A class by another name that it has in the new files, as "other name=name".
    :param small_classes: Refuse new classes with few training nodes, leave them out as context,
        pool them, or allow them; remembered from now on.
    """
    (before, after), renamed = batches(files, 2), aliases(alias)
    with working("revising") as progress:
        how: Any = {"aliases": renamed, "small_classes": small_classes, "progress": progress}
        step = opened(folder).revise(before, after, **how, **columns.given())
    tell(folder, step)


def merge(folder: Path, /, *others: Path, traceback: Traceback = False) -> None:
    """Add what other folders' learners know, as if all had been observed here.

    They must have been made --like one another, or with one plan and one scale. A folder that is
    not there is made, like the first of the others; they are not changed.

    :param folder: The folder that gets what all of them know.
    :param others: The folders to add.
    """
    from shutil import rmtree

    from undrift.folder.folder import LearnerFolder

    if not others:
        raise InputError("merge takes the folder to merge into and one or more folders to add")
    with working("merging") as progress:
        there = folder.exists() and any(folder.iterdir())
        if not there:
            remember = opened(others[0]).show().record.remember_nodes
            LearnerFolder.new(folder, like=others[0], remember_nodes=remember)
        try:
            step = opened(folder).merge(*others, progress=progress)
        except InputError:
            if not there:
                rmtree(folder)  # made above, and empty
            raise
    tell(folder, step)


def opened(folder: Path) -> LearnerFolder:
    """The folder; its module is imported when a command runs."""
    from undrift.folder.folder import LearnerFolder

    return LearnerFolder(folder)


def tell(folder: Path, step: Step) -> None:
    """Say what a step did, and on stderr what its user should know."""
    from undrift.folder.notice import sentences

    line = step.line
    for note in step.notes:
        say(f"note: {note}", progress=True)
    what = [f"{line.labelled:,} labelled of {line.nodes:,} nodes"] if line.nodes else []
    if line.rows_subtracted is not None:
        subtracted = counted(line.rows_subtracted, "row")
        what.append(f"{subtracted} subtracted, {line.rows_added:,} added")
    if line.tested:
        what.append(f"{line.right:,} of {line.tested:,} of known classes predicted right before")
    what.append(f"+{len(line.added)} -{len(line.removed)} batches")
    say(f"{folder}: step {line.step}, {line.verb}: {', '.join(what)}")
    for sentence in sentences(line.noticed):
        say(f"{folder}: {sentence}")
