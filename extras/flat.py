"""A result as one flat row: the only place that says which columns there are. Without torch."""

import json
import math
import re
from collections.abc import Iterable

from undrift.evaluation.metrics import METRICS
from undrift.experiments.result import Result, each_metric
from undrift.learners.registry import METHODS

Value = str | int | float | bool | None
Row = dict[str, Value]

_GRADES = {("test", "class"): "", ("test", "node"): "node_"}
_GRADES |= {("val", "class"): "val_", ("val", "node"): "val_node_"}


def ordered(rows: Iterable[Row]) -> tuple[str, ...]:
    """The columns of a table with these rows, in their order; those of a group by their names."""
    standing = (  # a name that ends in _ stands for all that begin with it
        *("id", "stream", "arrive", "stand_in", "method", "seed", "protocol", "device"),
        *("params", "param_"),
        "tasks",
        *(p + k for p in _GRADES.values() for k, metric in METRICS.items() if metric.of or not p),
        *("drift_last", "seconds_total", "seconds_", "peak_memory_mb", "state_mb", "threads"),
        *("keeps_examples", "version_", "data_sha256", "split_sha256"),
    )

    def place(column: str) -> tuple[int, str]:
        if column in standing:
            return standing.index(column), ""
        groups = (name for name in standing if name.endswith("_") and column.startswith(name))
        return standing.index(next(groups)), column

    always = {name for name in standing if not name.endswith("_")}
    return tuple(sorted(always.union(*rows), key=place))


def flat(result: Result, run: str | None = None) -> Row:
    """One run as a flat row; `run` is its id, where that is known.

    A metric's key alone is by class on the test nodes; `node_` before it means by node, `val_`
    on the validation nodes. What is not a finite number is None.
    """
    spec, cost, split = result.spec, result.cost, result.provenance.get("split_sha256")
    known = METHODS.get(spec.method)
    row: Row = {
        "id": run or spec.id,
        "stream": spec.stream,
        "arrive": spec.arrive,
        "stand_in": result.stand_in,
        "method": spec.method,
        "seed": spec.seed,
        "protocol": spec.protocol,
        "device": spec.device,
        "params": json.dumps(spec.params, sort_keys=True),
        "tasks": result.steps,
        "drift_last": result.drift[-1] if result.drift else None,
        "peak_memory_mb": cost.peak_memory_mb,
        "state_mb": cost.state_mb,
        "threads": cost.threads,
        "keeps_examples": None if known is None else known.keeps_examples,
        "data_sha256": _data_sha256(result),
        "split_sha256": split and str(split),
    }
    row |= {_GRADES[grade] + key: value for grade, key, value in each_metric(result)}
    for name, value in spec.params.items():
        plain = json.dumps(value) if isinstance(value, tuple) else value
        row[_name("param_", name)] = plain
    row |= {_name("seconds_", phase): value for phase, value in cost.seconds.items()}
    row |= {_name("version_", package): text for package, text in result.versions.items()}
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }


def _name(group: str, name: str) -> str:
    """A column's name that SQL takes without quotes; SQL does not tell upper from lower case."""
    return group + re.sub(r"\W", "_", name.lower())


def _data_sha256(result: Result) -> Value:
    """The hash of the data; where there are several files and no hash of all, each of them."""
    found = {k: str(v) for k, v in result.provenance.items() if k.endswith("sha256")}
    every = " ".join(v for k, v in sorted(found.items()) if k != "split_sha256")
    return found.get("content_sha256") or found.get("sha256") or every or None
