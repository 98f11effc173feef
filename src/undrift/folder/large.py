"""Observing, forgetting and predicting a graph in a folder, larger than memory, in pieces."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from undrift.errors import InputError
from undrift.folder.batch import LargeBatch
from undrift.folder.classes import replaced
from undrift.folder.draft import Step, drafting, loaded
from undrift.folder.predictions import check_out
from undrift.learners.small_classes import SmallClasses
from undrift.scale.learning import Tell, forget, observe, predict
from undrift.scale.plan import Engine, clear_done
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
    settings = aliases, small_classes
    return _step(folder, graph, "observe", engine, settings, tell=tell, progress=progress)


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
    return _step(folder, graph, "forget", engine, tell=tell, progress=progress)


def _step(
    folder: str | Path,
    graph: str | Path,
    verb: Literal["observe", "forget"],
    engine: Engine,
    settings: tuple[Mapping[str, str] | None, SmallClasses | None] = (None, None),
    *,
    tell: Tell | None,
    progress: Progress,
) -> Step:
    work, new = (observe, True) if verb == "observe" else (forget, False)
    with drafting(Path(folder)) as draft:
        draft.take({}, *settings)
        batch = LargeBatch.of(graph, draft.record)
        try:
            held = draft.add(batch) if new else draft.held(batch)
        except InputError:  # most likely it is known: no rows of its nodes stay behind
            clear_done(batch.graph)
            raise
        batch = replaced(batch, held.instead)
        ids = draft.number(batch)
        given = {told: ids[name] for told, name in batch.named().items()}
        plans = work(draft.learner, batch.graph, given, engine, tell=tell, progress=progress)
        if not new:
            draft.remove(held)
        for plan in plans:
            plan.set_aside()
        step = draft.commit(verb, progress)
    for plan in plans:
        plan.clear()
    return step


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
    columns = [draft.record.names[c] for c in draft.learner.classes_]
    how: Any = {"probabilities": probabilities, "tell": tell, "progress": progress}
    return predict(draft.learner, batch.graph, columns, out, engine, **how)
