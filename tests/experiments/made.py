"""Made-up results for tests: a run of two tasks, with whatever is to be different."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from undrift.evaluation import AccuracyMatrix, loop
from undrift.experiments import RunSpec
from undrift.experiments.checkpoint import load_checkpoint, save_checkpoint
from undrift.experiments.result import Graded, Metrics, Result, graded_metrics
from undrift.experiments.search import Search, SearchSpec, Trial

ROWS = [[90.0], [70.0, 80.0]]
METRICS = {"a_avg": 82.5, "a_f": 75.0, "a_l": 85.0, "forgetting": 20.0}


def made(rows=ROWS, fields=None, **spec: Any) -> Result:
    """The result of a run with this spec and matrix; `fields` of the result stand above it."""
    matrix = AccuracyMatrix(rows)
    graded = graded_metrics(matrix, matrix)
    cost = {"seconds": {"total": 1.5}, "peak_memory_mb": None, "state_mb": 0.1, "threads": 1}
    data: dict[str, Any] = {
        "spec": RunSpec(**spec),
        "matrix": {"class": rows, "node": rows},
        "metrics": graded,
        "validation": graded,
        "drift": [0.0, 0.5],
        "cost": cost,
        "versions": {"undrift": "0.1.0", "torch": "2"},
        "provenance": {"stand_in": False},
    }
    return Result.model_validate(data | (fields or {}))


def gone_on(learners: Sequence[Any], stream: Any, folder: Path, t: int = 1, **how: Any) -> Any:
    """What comes of a run that is cut off after task t, with another learner that goes on."""
    evaluate = how.pop("evaluate", loop.evaluate)
    first, second = learners

    def cut(at: int, so_far: loop.Evaluation) -> None:
        if at == t:
            save_checkpoint(folder, first, so_far)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(first, stream, after_task=cut, **how)
    so_far = load_checkpoint(folder, second)
    return evaluate(second, stream, so_far=so_far, **how)


Scores = Iterable[tuple[dict[str, Any], float | None]]
"""Settings with what they scored on validation nodes; None where the trial failed."""


def searched(scores: Scores, **base: Any) -> Search:
    """A search in which these settings scored so; the best is chosen, its grid is all of them."""
    found = [(dict(params), score) for params, score in scores]
    grid = {name: tuple(dict.fromkeys(p[name] for p, _ in found)) for name in found[0][0]}
    trials = []
    for params, score in found:
        metrics = Metrics(a_avg=score or 0, a_f=0, a_l=0, forgetting=0)
        graded = Graded[Metrics](by_class=metrics, by_node=metrics)
        failed = {"validation": None, "failed": "singular"}
        trials.append(Trial(params=params, **({"validation": graded} if score else failed)))
    best = max(found, key=lambda each: each[1] or 0)[0]
    run = RunSpec(**{"stream": "cs-cl", "method": "adr"} | base)
    return Search(spec=SearchSpec(base=run, grid=grid), trials=trials, chosen=best, seconds=1.0)
