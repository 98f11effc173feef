"""The verbs of `undrift learner`: what changes a learner, and what it predicts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from undrift.cli.batches import Columns, Many, aliases, batches, one_batch
from undrift.cli.large import Workers, forget_folder, is_folder, observe_folder, predict_folder
from undrift.cli.whole import Whole
from undrift.formatting import counted
from undrift.learners.registry import DEFAULT
from undrift.learners.small_classes import SmallClasses

if TYPE_CHECKING:
    from undrift.folder.draft import Step
    from undrift.folder.folder import LearnerFolder

ERASING = {"erased": 0, "never here": 4, "not in this batch": 5, "waiting": 6}
"""The exit codes of `forget --node`, by what came of it."""

Flag = Annotated[bool, Parameter(negative="", show_default=False)]


_AsLast = Columns()


def new(
    folder: Path,
    /,
    *,
    method: str = DEFAULT,
    settings: Annotated[
        tuple[str, ...], Parameter(name="--set", negative="", show_default=False)
    ] = (),
    like: Path | None = None,
    plan: Path | None = None,
    keep: Whole = 0,
    remember_nodes: Flag = False,
    small_classes: SmallClasses | None = None,
    least_rows: Whole | None = None,
    scale: str | None = None,
    seed: Whole = 0,
    device: str = "cpu",
    traceback: Flag = False,
) -> None:
    """Make a folder with a learner that has observed nothing.

    Parameters
    ----------
    folder
        The folder to make.
    method
        What to learn with; "undrift methods" lists them and which of them forget and merge.
    settings
        A hyperparameter, as name=value; repeat it for more.
    like
        A folder whose learner this one shall be able to merge with: it gets its feature map, its
        columns and its key. Make it where the other is, and carry it to the other site empty.
    plan
        A plan.json of another folder: rows are made as there, whatever the first batch is. To merge
        two folders, --like is needed: they also share columns and a key.
    keep
        How many old states to keep. Two states give away what came between them.
    remember_nodes
        Keep keyed hashes of node ids, so that "forget --node" can say which batches hold a node.
    small_classes
        A new class that comes with few training nodes: refuse the batch (as without it), leave the
        class out as context, pool such classes into one, or allow it.
    least_rows
        How many training nodes are not few: 5 without it.
    scale
        Put columns into units of their spread: robust (by the first batch, for good), none, or a
        .json file of public ranges. Without it tables are scaled, .npz and .pt files are not.
    seed
        Decides the validation nodes and the learner's randomness.
    device
        Where to compute: cpu, cuda or cuda:1.
    traceback
        When it fails, print where.
    """
    from undrift.cli.values import choose_readings, parse_settings

    chosen: dict[str, Any] = choose_readings(method, parse_settings(settings))
    chosen |= {} if plan is None else {"plan": str(plan)}
    chosen |= {"seed": seed} if seed else {}
    chosen |= {"device": device} if device != "cpu" else {}
    made = folders().new(
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
    found = made.show()
    say(f"{folder}: {found.method}, nothing observed yet")
    say(f"next: undrift learner observe {folder} NODES EDGES")


def observe(
    folder: Path,
    /,
    *files: Path,
    alias: Annotated[tuple[str, ...], Many] = (),
    small_classes: SmallClasses | None = None,
    workers: Whole | None = None,
    dask: str | None = None,
    columns: Columns = _AsLast,
    traceback: Flag = False,
) -> None:
    """Learn a batch: a table of nodes and a table of edges, one .npz or .pt file, a graph folder.

    Columns are matched by name, classes too; new classes and known ones may come together. Nodes
    without a label are context. Keep the files of a batch that may have to be forgotten.

    Parameters
    ----------
    folder
        The learner's folder.
    files
        NODES EDGES, as .csv, .tsv or .parquet; or one .npz or .pt file of both; or a graph folder
        of "undrift graph import", which may be larger than memory.
    alias
        A class by another name that it has in files, as "other name=name"; repeat it for more.
    small_classes
        Refuse new classes with few training nodes, leave them out as context, pool them, or allow
        them; remembered from now on.
    workers
        For a graph folder: so many processes on this machine.
    dask
        For a graph folder: the address of a Dask cluster, such as tcp://host:8786.
    columns
        How tables are read.
    traceback
        When it fails, print where.
    """
    with working("learning") as progress:
        if is_folder(files):
            step = observe_folder(
                folder,
                files[0],
                Workers(workers, dask),
                progress,
                aliases=aliases(alias),
                small_classes=small_classes,
            )
        else:
            Workers(workers, dask).refuse()
            step = folders()(folder).observe(
                one_batch(files),
                aliases=aliases(alias),
                small_classes=small_classes,
                progress=progress,
                **columns.given(),
            )
    tell(folder, step)


def predict(
    folder: Path,
    /,
    *files: Path,
    out: Path,
    nodes: Annotated[
        tuple[str, ...], Parameter(negative="", show_default=False, consume_multiple=True)
    ] = (),
    probabilities: Flag = False,
    workers: Whole | None = None,
    dask: str | None = None,
    columns: Columns = _AsLast,
    traceback: Flag = False,
) -> None:
    """Write the class of every node: its id, class, probability and runner-up.

    Parameters
    ----------
    folder
        The learner's folder.
    files
        NODES EDGES, or one .npz or .pt file, or a graph folder; labels are not needed.
    out
        The .csv or .parquet file to write.
    nodes
        The ids of the nodes to predict; all without it.
    probabilities
        Write the probability of every class as well, in columns p_NAME.
    workers
        For a graph folder: so many processes on this machine.
    dask
        For a graph folder: the address of a Dask cluster, such as tcp://host:8786.
    columns
        How tables are read.
    traceback
        When it fails, print where.
    """
    from undrift.folder.predictions import check_out

    check_out(out)
    if is_folder(files):
        with working("predicting") as progress:
            how = Workers(workers, dask, nodes, probabilities)
            count = predict_folder(folder, files[0], out, how, progress)
    else:
        Workers(workers, dask).refuse()
        with working("predicting"):
            found = folders()(folder).predict(one_batch(files), nodes or None, **columns.given())
        found.write(out, probabilities=probabilities)
        if str(found.repairs):
            say(f"note: {found.repairs}{found.repairs.advice}", progress=True)
        count = len(found.classes)
    say(f"{count:,} prediction{'s' * (count != 1)}: {out}")


def forget(
    folder: Path,
    /,
    *files: Path,
    node: str | None = None,
    batch: Annotated[
        tuple[Path, ...], Parameter(negative="", show_default=False, consume_multiple=True)
    ] = (),
    workers: Whole | None = None,
    dask: str | None = None,
    columns: Columns = _AsLast,
    traceback: Flag = False,
) -> None:
    """Be as if a batch, or a node, had never been observed.

    A batch must be given as it was observed. A node may be in several batches, and its features
    reach its neighbours' rows in each: all must be seen again. Until then those rows stay in the
    sum. Without --batch, --node lists the batches that hold the node (a folder that was made with
    --remember-nodes can tell).

    Exit codes of --node: 0 erased from every batch that is known to hold it, 4 it was never here
    or was erased before, 5 the batches given do not hold it, 6 other batches that hold it must be
    given too.

    Parameters
    ----------
    folder
        The learner's folder.
    files
        NODES EDGES of the batch to forget, or one .npz or .pt file, or a graph folder.
    node
        Forget the node of this id instead.
    batch
        NODES EDGES of a batch that holds the node, or one .npz or .pt file; repeat it for more. Of
        a graph folder, give the tables that it was imported from.
    workers
        For a graph folder: so many processes on this machine.
    dask
        For a graph folder: the address of a Dask cluster, such as tcp://host:8786.
    columns
        How tables are read.
    traceback
        When it fails, print where.
    """
    from undrift.errors import InputError

    if (node is None) == (not files) or (batch and node is None):
        raise InputError(
            "forget takes NODES EDGES of a batch, or --node ID with --batch NODES EDGES for each "
            "batch that holds it"
        )
    if is_folder(files):
        with working("forgetting") as progress:
            step = forget_folder(folder, files[0], Workers(workers, dask), progress)
        tell(folder, step)
        return
    Workers(workers, dask).refuse()
    opened = folders()(folder)
    with working("forgetting") as progress:
        if node is None:
            tell(folder, opened.forget(one_batch(files), progress=progress, **columns.given()))
            return
        found = opened.forget_node(node, batches(batch), progress=progress, **columns.given())
    if found.step is not None:
        tell(folder, found.step)
    for sentence in found.sentences(str(folder)):
        say(sentence)
    if ERASING[found.outcome]:
        raise SystemExit(ERASING[found.outcome])


def revise(
    folder: Path,
    /,
    *files: Path,
    alias: Annotated[tuple[str, ...], Many] = (),
    small_classes: SmallClasses | None = None,
    columns: Columns = _AsLast,
    traceback: Flag = False,
) -> None:
    """Put a corrected batch in the place of one that was observed.

    Only rows within reach of a change are computed again.

    Parameters
    ----------
    folder
        The learner's folder.
    files
        OLD_NODES OLD_EDGES NEW_NODES NEW_EDGES, or two .npz or .pt files.
    alias
        A class by another name that it has in the new files, as "other name=name".
    small_classes
        Refuse new classes with few training nodes, leave them out as context, pool them, or allow
        them; remembered from now on.
    columns
        How tables are read.
    traceback
        When it fails, print where.
    """
    before, after = batches(files, 2)
    with working("revising") as progress:
        step = folders()(folder).revise(
            before,
            after,
            aliases=aliases(alias),
            small_classes=small_classes,
            progress=progress,
            **columns.given(),
        )
    tell(folder, step)


def merge(folder: Path, /, *others: Path, traceback: Flag = False) -> None:
    """Add what other folders' learners know, as if all had been observed here.

    They must have been made --like one another. A folder that is not there is made, like the
    first of the others; they are not changed.

    Parameters
    ----------
    folder
        The folder that gets what all of them know.
    others
        The folders to add.
    traceback
        When it fails, print where.
    """
    from shutil import rmtree

    from undrift.errors import InputError

    if not others:
        raise InputError("merge takes the folder to merge into and one or more folders to add")
    kind = folders()
    with working("merging") as progress:
        there = folder.exists() and any(folder.iterdir())
        first = kind(others[0])
        remember = first.show().record.remember_nodes
        target = kind(folder) if there else kind.new(folder, like=first, remember_nodes=remember)
        try:
            step = target.merge(*others, progress=progress)
        except InputError:
            if not there:
                rmtree(folder)  # made above, and empty
            raise
    tell(folder, step)


# what they share -------------------------------------------------------------------------


def folders() -> type[LearnerFolder]:
    """The class of folders, imported when a command runs."""
    from undrift.folder.folder import LearnerFolder

    return LearnerFolder


def tell(folder: Path, step: Step) -> None:
    """Say what a step did, and on stderr what its user should know."""
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


def say(text: str, *, progress: bool = False) -> None:
    """A line of text as it is."""
    from undrift.cli.console import output, progress_console

    console = progress_console() if progress else output()
    console.print(text, markup=False, soft_wrap=True)


def working(what: str) -> Any:
    """Progress while a block runs."""
    from undrift.cli.console import phases, progress_console

    return phases(progress_console(), what)
