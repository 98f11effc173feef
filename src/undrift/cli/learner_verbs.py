"""The verbs of `undrift learner`: what changes a learner, and what it predicts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from undrift.checks import field_types
from undrift.cli import options
from undrift.cli.console import progress_console, say, working
from undrift.cli.options import AS_LAST, Columns, Flag, LearnerPath, Several, Whole, Words, Workers
from undrift.errors import InputError
from undrift.formatting import counted
from undrift.learners.registry import DEFAULT, method_class
from undrift.learners.small_classes import SmallClasses

if TYPE_CHECKING:
    from undrift.folder.step import Step

ERASING = {"erased": 0, "never here": 4, "not in this batch": 5, "waiting": 6, "unsure": 7}
"""The exit codes of `forget --node` and its like, by what came of it."""


def new(
    folder: Path,
    /,
    *,
    method: str = DEFAULT,
    settings: options.Settings = (),
    like: Path | None = None,
    plan: Path | None = None,
    keep: Whole = 0,
    remember_nodes: Flag = False,
    small_classes: SmallClasses | None = None,
    least_rows: Whole | None = None,
    scale: str | None = None,
    seed: Whole = 0,
    device: str = "cpu",
) -> None:
    """Make a folder with a learner that has observed nothing.

    :param folder: The folder to make.
    :param method: What to learn with; "undrift methods" lists them and which of them forget and
        merge. Those of the family recommend learn from clicks and recommend items.
    :param settings: A hyperparameter, as name=value; repeat it for more.
    :param like: Merge with this folder later: copies its method, settings, plan, columns, scale
        and key, but no data. Make the new folder beside it, then carry it to the other site empty.
    :param plan: A plan.json of another folder: rows are made as there, and columns have the same
        names and units, whatever the first batch is. Folders of one plan can merge; only those
        made with --like notice a batch that is in both.
    :param keep: How many old states to keep. Two states show what came between them.
    :param remember_nodes: Keep keyed hashes of node ids, so that "forget --node" can say which
        batches hold a node; of clicks, of the names of sessions, users and items.
    :param small_classes: What to do with a new class of fewer training nodes than --least-rows:
        refuse the batch (default), leave the class out as context, pool such classes into one, or
        allow it. Later batches keep to it until one says otherwise.
    :param least_rows: Fewest training nodes that a new class must bring (default 5). Of clicks:
        fewest sessions behind an item or a pair that is exported.
    :param scale: How columns are scaled. robust: by the median and spread of each column, decided
        by the first batch and then fixed. none: not at all. A .json file: by public ranges, and by
        lists of categories for tables without edges, such as columns.json of another folder.
        Default: as in --plan; without one, robust for tables, and none for .npz and .pt files and
        with epsilon.
    :param seed: Decides the validation nodes and the learner's randomness.
    :param device: Where to compute: cpu, cuda or cuda:1.
    """
    from undrift.experiments.spec import choose_readings, parse_settings
    from undrift.folder import kinds

    kind = kinds.kind_for(method) if like is None else type(kinds.opened(like))
    if plan is not None and "plan" not in field_types(method_class(method)):
        raise InputError(
            f"{method} has no plan; leave out --plan, or take --method {DEFAULT}, which has one"
        )
    texts = parse_settings(settings)
    chosen: dict[str, Any] = choose_readings(method_class(method), texts) if texts else {}
    chosen |= {} if plan is None else {"plan": str(plan)}
    chosen |= {"seed": seed} if seed else {}
    chosen |= {"device": device} if device != "cpu" else {}
    how: dict[str, Any] = {"settings": chosen, "like": like, "keep": keep, "scale": scale}
    how |= {"remember_nodes": remember_nodes, "small_classes": small_classes}
    how |= {} if like is not None and method == DEFAULT else {"method": method}
    made = kind.new(folder, **how, least_rows=least_rows)
    say(f"{folder}: {made.show().method}, nothing observed yet")
    more = ", or one TABLE without edges, a .npz or .pt file, or a .zip of many graphs"
    say(f"next: undrift learner observe {folder} {made.files}{more * (' ' in made.files)}")


def observe(
    folder: LearnerPath,
    /,
    *files: Path,
    alias: Words = (),
    small_classes: SmallClasses | None = None,
    workers: Workers = options.HERE,
    columns: Columns = AS_LAST,
) -> None:
    """Learn a batch: tables of nodes and edges, one table, a .npz or .pt file, a graph folder.

    Rows of one table without edges are linked to the nearest rows (--neighbours); its columns may
    hold numbers and categories, with gaps.

    Columns are matched by name, classes too; new classes and known ones may come together. Nodes
    without a label are context. A recommender takes one table of clicks. What is said here of
    columns holds for later batches too. Keep the files of a batch that may have to be forgotten.

    :param files: NODES EDGES, as .csv, .tsv, .arff or .parquet; or one such table without edges; or
        one .npz or .pt file of both; or a graph folder of "undrift graph import", which may be
        larger than memory; or a .zip or folder of many graphs (TUDataset). Or CLICKS.
    :param alias: A class by another name that it has in files, as "other name=name"; repeat it for
        more.
    :param small_classes: What to do with new classes of few training nodes, from now on: refuse
        the batch, leave them out as context, pool them, or allow them. Default: as before.
    """
    renamed = options.aliases(alias)
    with working("learning") as progress, workers.of(opened(folder), files) as living:
        how: Any = {"aliases": renamed or None, "small_classes": small_classes}
        (given,) = options.batches(living, files, 1)
        step = living.observe(given, **how, progress=progress, **columns.given())
    tell(folder, step)


def predict(
    folder: LearnerPath,
    /,
    *files: Path,
    out: Path,
    nodes: Annotated[tuple[str, ...], Several] = (),
    unknown: float | None = None,
    groups: Flag = False,
    probabilities: Flag = False,
    workers: Workers = options.HERE,
    columns: Columns = AS_LAST,
) -> None:
    """Write the class of every node: its id, class, probability and runner-up.

    Says how many nodes look like no known class, where the method can tell.

    :param files: NODES EDGES, or one table, .npz or .pt file, or a graph folder; labels are not
        needed.
    :param out: The .csv or .parquet file to write.
    :param nodes: The ids of the nodes to predict; all without it.
    :param unknown: Share of known nodes that may be called unknown by mistake, such as 0.05. Nodes
        that look stranger get the class "unknown", and all nodes get a column of their novelty.
    :param groups: With --unknown: a column that says which unknown nodes belong together, for a
        person to name; several groups may be one class.
    :param probabilities: Write the probability of every class as well, in columns p_NAME.
    """
    from undrift.folder.notice import sentences
    from undrift.folder.predictions import Predictions, check_out

    check_out(out, files)
    how: Any = {"unknown": unknown, "groups": groups, **columns.given()}
    how |= {"probabilities": probabilities, "out": out if options.is_graph(files) else None}
    with working("predicting") as progress, workers.of(opened(folder, "predict"), files) as living:
        (given,) = options.batches(living, files, 1)
        found = living.predict(given, nodes or None, progress=progress, **how)
        if isinstance(found, Predictions):
            found.write(out, probabilities=probabilities)
    if isinstance(found, Predictions):
        if str(found.repairs):
            say(f"note: {found.repairs}{found.repairs.advice}", progress_console())
        for sentence in sentences(found.noticed, "nodes"):
            say(f"{folder}: {sentence}")
    count = len(found) if isinstance(found, Predictions) else found
    say(f"{counted(count, 'prediction')}: {out}")


def recommend(
    folder: LearnerPath,
    /,
    history: Path,
    *,
    k: Whole = 20,
    out: Path | None = None,
    exclude_history: Flag = False,
    columns: Columns = AS_LAST,
) -> None:
    """Recommend items for every session of a table of clicks: the best first, with scores.

    A history without an item that is known gets none.

    :param history: The table of clicks, as .csv, .tsv or .parquet.
    :param k: How many items for each.
    :param out: The .csv or .parquet file to write; without it they are printed.
    :param exclude_history: Leave out items that the history has.
    """
    with working("recommending"):
        living = opened(folder, "recommend")
        how: Any = {"exclude_history": exclude_history, "out": out, **columns.given()}
        found = living.recommend(history, k, **how)
    if out is None:
        for row in found:
            say(f"{row.session}  {row.rank}  {row.item}  {row.score:.4g}")
    sessions = counted(len({row.session for row in found}), "session")
    exact = f", relative residual {living.residual_:.0e}" if living.residual_ else ""
    say(f"{counted(len(found), 'item')} for {sessions}{exact}" + (f": {out}" if out else ""))


def forget(
    folder: LearnerPath,
    /,
    *files: Path,
    node: str | None = None,
    session: options.Clicks = None,
    user: options.Clicks = None,
    item: options.Clicks = None,
    batch: options.Paths = (),
    workers: Workers = options.HERE,
    columns: Columns = AS_LAST,
) -> None:
    """Be as if a batch, a node, a session, a user or an item had never been observed.

    A batch must be given as it was observed. A node may be in several batches, and its features
    reach its neighbours' rows in each: all must be seen again. Until then those rows stay in the
    sum. Without --batch, --node lists the batches that hold the node (a folder that was made with
    --remember-nodes can tell).

    Of clicks, --session, --user and --item do the same.

    Exit codes of --node, --session, --user and --item:

        0  erased: no batch holds it
        4  never here, or erased before
        5  not in the batches given
        6  other batches that hold it, or may, must be given too
        7  the batches given have no ids, so nobody can tell

    :param files: NODES EDGES of the batch to forget, or one .npz or .pt file, or a graph folder; or
        CLICKS.
    :param node: Forget the node of this id instead.
    :param session: Forget this session of a recommender instead.
    :param user: Forget all sessions of this user instead.
    :param item: Forget all clicks on this item instead.
    :param batch: NODES EDGES of a batch that holds the node, or one .npz or .pt file; repeat it for
        more. Of a graph folder, give the tables that it was imported from.
    """
    asked = {"session": session, "user": user, "item": item}
    who = [f"{kind} {name}" for kind, name in asked.items() if name is not None]
    who += [] if node is None else [node]
    if len(who) > 1 or bool(who) == bool(files) or (batch and not who):
        raise InputError(
            "forget takes NODES EDGES of a batch, or --node ID with --batch NODES EDGES for each "
            "batch that holds it; of clicks CLICKS, or one of --session, --user, --item"
        )
    found = None
    with working("forgetting") as progress, workers.of(opened(folder), files) as living:
        how: Any = {"progress": progress, **columns.given()}
        if who and (living.row == "node") != (node is not None):
            raise InputError(f"{folder} learns from {living.row}s; name one of them to forget")
        if who:
            found = living.forget_node(who[0], options.batches(living, batch), **how)
        step = found.step if found else living.forget(options.batches(living, files, 1)[0], **how)
    if step is not None:
        tell(folder, step)
    if found is not None:
        for sentence in found.sentences(str(folder)):
            say(sentence)
        raise SystemExit(ERASING[found.outcome])


def revise(
    folder: LearnerPath,
    /,
    *files: Path,
    alias: Words = (),
    small_classes: SmallClasses | None = None,
    columns: Columns = AS_LAST,
) -> None:
    """Put a corrected batch in the place of one that was observed.

    Only rows within reach of a change are computed again.

    :param files: OLD_NODES OLD_EDGES NEW_NODES NEW_EDGES, or two .npz or .pt files; or OLD_CLICKS
        NEW_CLICKS.
    :param alias: A class by another name that it has in the new files, as "other name=name".
    :param small_classes: What to do with new classes of few training nodes, from now on: refuse
        the batch, leave them out as context, pool them, or allow them. Default: as before.
    """
    living, renamed = opened(folder), options.aliases(alias)
    before, after = options.batches(living, files, 2)
    with working("revising") as progress:
        how: Any = {"aliases": renamed or None, "small_classes": small_classes}
        step = living.revise(before, after, **how, progress=progress, **columns.given())
    tell(folder, step)


def merge(folder: Path, /, *others: Path) -> None:
    """Add what other folders' learners know, as if all had been observed here.

    They must have been made --like one another, or with one plan. A folder that is
    not there is made, like the first of the others; they are not changed.

    :param folder: The folder that gets what all of them know.
    :param others: The folders to add.
    """
    from shutil import rmtree

    if not others:
        raise InputError("merge takes the folder to merge into and one or more folders to add")
    places = [other.resolve() for other in others]
    twice = next((each for each in others if places.count(each.resolve()) > 1), None)
    if twice is not None:
        raise InputError(f"{twice} is given twice, and would count twice; give each folder once")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give the folder to merge into first")
    with working("merging") as progress:
        there = folder.exists() and any(folder.iterdir())
        if not there:
            first = opened(others[0])
            first.new(folder, like=others[0], remember_nodes=first.show().record.remember_nodes)
        try:
            step = opened(folder).merge(*others, progress=progress)
        except InputError:
            if not there:
                rmtree(folder)  # made above, and empty
            raise
    tell(folder, step)


def opened(folder: Path, verb: str = "observe") -> Any:
    """The folder as its kind, which must have this verb; imported when a command runs."""
    from undrift.folder import kinds

    found = kinds.opened(folder)
    if not hasattr(found, verb):
        raise InputError(
            f"{folder} learns from {found.row}s and cannot {verb}; nodes are predicted (undrift "
            "learner predict), for sessions items are recommended (undrift learner recommend)"
        )
    return found


def tell(folder: Path, step: Step) -> None:
    """Say what a step did, and on stderr what its user should know."""
    from undrift.folder.notice import sentences

    line = step.line
    for note in step.notes:
        say(f"note: {note}", progress_console())
    what = [f"{line.labelled:,} labelled of {line.nodes:,} nodes"] if line.nodes else []
    if line.sessions:
        what.append(f"{counted(line.sessions, 'session')}, {counted(line.clicks, 'click')}")
    if line.rows_subtracted is not None:
        what.append(f"{counted(line.rows_subtracted, 'row')} subtracted, {line.rows_added:,} added")
    if line.tested:
        what.append(f"{line.right:,} of {line.tested:,} of known classes predicted right before")
    what.append(f"+{len(line.added)} -{len(line.removed)} batches")
    say(f"{folder}: step {line.step}, {line.verb}: {', '.join(what)}")
    for sentence in sentences(line.noticed):
        say(f"{folder}: {sentence}")
