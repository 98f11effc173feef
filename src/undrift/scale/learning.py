"""`observe`, `forget` and `predict` for a graph in a folder: which tasks, in which order."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch

from undrift.errors import InputError
from undrift.formatting import class_columns
from undrift.graphs import Scaling
from undrift.learners.base import Learner
from undrift.learners.small_classes import has_noise
from undrift.propagation.learner import Propagation
from undrift.propagation.plan import First
from undrift.propagation.sums import PropagationSums
from undrift.scale import blocks
from undrift.scale.graph_folder import AGAIN, GraphFolder, put_array
from undrift.scale.plan import BlockPlan, Call, Engine, MemoryEstimate, complete
from undrift.scale.tables import copied, database, literal, quoted, sentence
from undrift.storage.files import whole_file
from undrift.typing import Progress, silent

WEIGHTS = "weights.npy"
Tell = Callable[[MemoryEstimate], None]


def observe(
    learner: Learner,
    graph: GraphFolder,
    classes: Mapping[str, int],
    engine: Engine,
    *,
    forget: bool = False,
    tell: Tell | None = None,
    progress: Progress = silent,
) -> list[BlockPlan]:
    """Learn a graph in a folder, as `Learner.observe` learns one in memory.

    Nodes of a class without an id in `classes` count as unlabelled. With `forget`, be as if it had
    never been observed. The plans' files are to be cleared once what was learned is safe.
    """
    propagation = _propagation(learner, graph)
    known = None if propagation.learned_ is None else propagation.known
    if forget and known is None:
        raise InputError("nothing was observed yet, so there is nothing to forget")
    ids = tuple(sorted({classes[c] for c in graph.manifest.classes if c in classes}))
    if not ids:
        way = "predict it, or import its tables with the column of classes as label (--label)"
        raise InputError(f"no node of {graph.path} has a label, so nothing can be learned; {way}")
    columns = [ids.index(classes[c]) if c in classes else -1 for c in graph.manifest.classes]
    graph.verify(progress)
    counted = BlockPlan.of(graph, {}, columns)
    edges = torch.zeros(len(ids), len(ids), dtype=torch.float64)
    if known is None or "separate" in known.plan.variants:
        complete(counted, [Call(blocks.EDGES, blocks.count_edges)], engine, "count edges", progress)
        edges = torch.from_numpy(counted.load(blocks.EDGES)).clone()
    if known is None:
        m = graph.manifest
        first = First(counted.rows, 4 * m.nodes * m.features + 8 * m.edges, dense=True)
        rows = propagation.plan_by(m.features, edges, first)
    else:
        rows = known.plan
    plan = BlockPlan.of(graph, rows.maps(), columns, scaling=_units(propagation))
    _propagate(plan, engine, tell, progress)
    complete(plan, blocks.sum_calls(plan), engine, "accumulate", progress)
    kept = edges if "separate" in rows.variants else torch.zeros_like(edges)
    variants = {name: blocks.added(plan, name) for name in rows.variants}
    sums = PropagationSums(variants, kept, blocks.noise_by_class(plan))
    if forget:
        propagation.give_back(ids, sums)
    else:
        propagation.take(rows, ids, sums)
    return [counted, plan]


def predict(
    learner: Learner,
    graph: GraphFolder,
    names: Sequence[str],
    out: str | Path,
    engine: Engine,
    *,
    probabilities: bool = False,
    tell: Tell | None = None,
    progress: Progress = silent,
) -> int:
    """Write a table of every node's id, class, probability and runner-up; how many nodes.

    `names` are those of `learner.classes_`; `out` ends in `.parquet` or `.csv`. With
    `probabilities` it has a column for every class as well.
    """
    propagation = _propagation(learner, graph)
    if not propagation.classes_:
        raise InputError("nothing was observed yet; observe a batch before predicting")
    graph.verify(progress)
    learned = propagation.settle(progress=progress).known
    answer = learned.answer
    maps = {answer.variant: learned.plan.feature_map(answer.variant)}
    weights = answer.weights.cpu().numpy()
    if probabilities and answer.temperature is None:
        raise no_probabilities()
    asked = (answer.temperature, list(names), probabilities)
    depends = repr((sha256(weights.tobytes()).hexdigest(), *asked))
    plan = BlockPlan.of(graph, maps, None, depends, _units(propagation))
    _propagate(plan, engine, tell, progress)
    put_array(plan.work / WEIGHTS, weights)
    size = blocks.at_once(plan, sum(group.columns for group in plan.groups))
    parts = [
        Call(f"scores-{i:05}.parquet", write_scores, (where, *asked))
        for i, where in enumerate(blocks.slices(0, plan.rows, size))
    ]
    complete(plan, parts, engine, "predict", progress)
    listed = ", ".join(literal(str(plan.file(call.name))) for call in parts)
    kind = "csv, HEADER" if Path(out).suffix.lower() == ".csv" else "parquet"
    with whole_file(out, way_out=AGAIN) as file, _duckdb(Path(out)) as connection:
        connection.execute(copied(f"SELECT * FROM read_parquet([{listed}])", file.name, kind))
    plan.clear()
    return plan.rows


def _propagate(plan: BlockPlan, engine: Engine, tell: Tell | None, progress: Progress) -> None:
    """Have all blocks of a plan made, having told what it will take."""
    if tell is not None:
        tell(MemoryEstimate.of(plan, engine.workers))
    complete(plan, blocks.first_calls(plan), engine, "measure", progress)
    complete(plan, blocks.block_calls(plan), engine, "propagate", progress)


def _propagation(learner: Learner, graph: GraphFolder) -> Propagation:
    if has_noise(learner):
        way = "with epsilon, observe it in memory, or make a learner without epsilon"
        raise InputError(f"a graph in a folder is learned from sums without noise; {way}")
    if not isinstance(learner, Propagation):
        way = "for a graph folder make a learner with the method propagation"
        raise InputError(f"{learner.display} learns from graphs in memory only; {way}")
    known = learner.learned_
    if known is not None and known.num_features != graph.manifest.features:
        problem = (
            f"{graph.manifest.features} features per node, but {known.num_features} were learned"
        )
        raise InputError(f"{graph.path} has {problem}; import the same columns")
    return learner


def _units(learner: Learner) -> Scaling | None:
    """How columns are scaled; a learner of tables without edges was refused by its width."""
    return learner.scaling_ if isinstance(learner.scaling_, Scaling) else None


def no_probabilities() -> InputError:
    """Where every class's probability was asked for, and there is none."""
    return InputError(
        "there are no probabilities: the method has scores only, or it has observed one class; "
        "leave out probabilities, or use propagation with two or more classes"
    )


def write_scores(plan: BlockPlan, name: str, where: slice, *asked: Any) -> None:
    """Write id, class, probability and runner-up of some nodes, as `Learner.predict_proba` does."""
    temperature, names, every = asked
    start, stop = where.start, where.stop
    ((variant, features),) = plan.maps.items()
    weights = torch.from_numpy(np.load(plan.work / WEIGHTS))
    at_a_time = blocks.slices(start, stop, blocks.at_once(plan, len(weights)))
    found = (blocks.rows_of(plan, variant, some) for some in at_a_time)
    scores = torch.cat([features.scored(rows, weights) for rows in found])
    ranking = scores if temperature is None else torch.softmax(scores / temperature, dim=1)
    best = ranking.topk(min(2, len(names)), dim=1)
    called = np.array([*names, ""], dtype=object)
    second = best.indices[:, 1] if len(names) > 1 else torch.full((stop - start,), -1)
    rows = {
        "n": np.arange(start, stop),
        "class": called[best.indices[:, 0].numpy()],
        "p": np.full(stop - start, np.nan) if temperature is None else best.values[:, 0].numpy(),
        "runner_up": called[second.numpy()],
    }
    more = class_columns(names) if every else []
    rows |= {f"q{i}": ranking[:, i].numpy() for i, _ in enumerate(more)}
    ids = f"read_parquet({literal(str(plan.folder.ids_file))}, file_row_number = true)"
    path = plan.work / name
    with whole_file(path, hashed=True, way_out=AGAIN) as file, _duckdb(path) as connection:
        connection.register("rows", rows)
        query = (
            "SELECT id, class, CASE WHEN isnan(p) THEN NULL ELSE p END AS probability, runner_up"
            f"{''.join(f', q{i} AS {quoted(name)}' for i, name in enumerate(more))} FROM rows "
            f"JOIN (SELECT id, file_row_number FROM {ids} WHERE file_row_number >= {start} AND "
            f"file_row_number < {stop}) ON file_row_number = n ORDER BY n"
        )
        connection.execute(copied(query, file.name))


@contextmanager
def _duckdb(path: Path) -> Iterator[Any]:
    """A connection with one thread, so that the same rows are the same bytes."""
    import duckdb

    try:
        with database(threads=1) as connection:
            yield connection
    except duckdb.Error as error:
        raise InputError(f"cannot write {path} ({sentence(error)}); {AGAIN}") from error
