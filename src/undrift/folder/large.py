"""Observing, forgetting and predicting a graph in a folder, larger than memory, in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from undrift.errors import InputError
from undrift.folder.changes import take_settings
from undrift.folder.draft import Draft, Step, drafting, loaded
from undrift.folder.large_batch import LargeBatch
from undrift.folder.predictions import check_out
from undrift.folder.small import replaced
from undrift.learners.small_classes import SmallClasses
from undrift.scale.graph_folder import GraphFolder
from undrift.scale.learning import Tell, forget, observe, predict
from undrift.scale.plan import BlockPlan, Engine, clear_done
from undrift.typing import Progress, silent


def observe_large(
    folder: str | Path,
    graph: str | Path,
    engine: Engine,
    *,
    aliases: Mapping[str, str] | None = None,
    small_classes: SmallClasses | None = None,
    tell: Tell | None = None,
    progress: Progress = silent,
) -> Step:
    """Have the learner of a folder learn a graph folder; killed, it goes on with the same call.

    Nodes of known classes are not predicted beforehand, as they are in memory: that would take
    the time of another step.
    """
    with drafting(Path(folder)) as draft:
        take_settings(draft, {}, aliases, small_classes)
        batch = LargeBatch.of(graph, draft.record)
        with _tidied(batch.graph):
            batch = replaced(batch, draft.add(batch).instead)
        given = _given(draft, batch)
        plans = observe(draft.learner, batch.graph, given, engine, tell=tell, progress=progress)
        step = _committed(draft, "observe", plans, progress)
    for plan in plans:
        plan.clear()
    return step


def forget_large(
    folder: str | Path,
    graph: str | Path,
    engine: Engine,
    *,
    tell: Tell | None = None,
    progress: Progress = silent,
) -> Step:
    """Be as if a graph folder had never been observed, also one that was observed as tables.

    The cost and the way to go on are those of `observe_large`.
    """
    with drafting(Path(folder)) as draft:
        batch = LargeBatch.of(graph, draft.record)
        with _tidied(batch.graph):
            held = draft.held(batch)
        batch = replaced(batch, held.instead)
        given = _given(draft, batch)
        plans = forget(draft.learner, batch.graph, given, engine, tell=tell, progress=progress)
        draft.remove(held)
        step = _committed(draft, "forget", plans, progress)
    for plan in plans:
        plan.clear()
    return step


def _given(draft: Draft, batch: LargeBatch) -> dict[str, int]:
    """The id of every class of a graph folder."""
    ids = draft.number(batch)
    return {told: ids[name] for told, name in batch.named().items()}


def _committed(draft: Draft, verb: str, plans: list[BlockPlan], progress: Progress) -> Step:
    for plan in plans:
        plan.set_aside()
    return draft.commit(verb, progress)


@contextmanager
def _tidied(graph: GraphFolder) -> Iterator[None]:
    """Where a batch is refused, most likely as known: no rows of its nodes stay behind."""
    try:
        yield
    except InputError:
        clear_done(graph)
        raise


def predict_large(
    folder: str | Path,
    graph: str | Path,
    out: str | Path,
    engine: Engine,
    *,
    probabilities: bool = False,
    tell: Tell | None = None,
    progress: Progress = silent,
) -> int:
    """Write the class of every node of a graph folder; how many there are.

    `probabilities`: as in `Predictions.write`.
    """
    check_out(Path(out))
    draft = loaded(Path(folder))
    batch = LargeBatch.of(graph, draft.record)
    names = {c: name for name, c in draft.record.classes.items()}
    columns = [names[c] for c in draft.learner.classes_]
    return predict(
        draft.learner,
        batch.graph,
        columns,
        out,
        engine,
        probabilities=probabilities,
        tell=tell,
        progress=progress,
    )
