"""Searches as lines of a table, one per setting that was tried. Does not import torch."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paper.csv_lines import CsvLine, grades, lines_of, packed
from undrift.errors import InputError
from undrift.evaluation.metrics import METRICS
from undrift.experiments.search import Search, SearchSpec, Trial

__all__ = ["SEARCH_COLUMNS", "searches_from", "trial_lines"]

SEARCH_COLUMNS = (
    *("search", "stream", "method", "seed", "protocol", "device", "fixed", "setting", "chosen"),
    *(prefix + name for prefix in ("val_", "val_node_") for name in METRICS if METRICS[name].of),
    *("failed", "seconds", "shared_with", "threads", "stream_sha256", "arrive"),
)


def trial_lines(search: Search) -> Iterator[dict[str, Any]]:
    """A line per trial, in the order in which they were tried.

    `fixed` are the parameters that every trial has, `setting` those that were searched;
    `seconds` are of the whole search.
    """
    base = search.spec.base
    for trial in search.trials:
        yield {
            "search": search.spec.id,
            "stream": base.stream,
            "method": base.method,
            "seed": base.seed,
            "protocol": base.protocol,
            "device": base.device,
            "fixed": packed(base.params),
            "setting": packed({name: trial.params.get(name) for name in search.spec.grid}),
            "chosen": _named(trial.params) == _named(search.chosen),
            **grades("val_", trial.validation, 6),
            "failed": next(iter((trial.failed or "").strip().splitlines()), None),
            "seconds": round(search.seconds, 3),
            "shared_with": packed(search.shared_with),
            "threads": search.threads,
            "stream_sha256": base.stream_sha256,
            "arrive": base.arrive,
        }


def _named(params: dict[str, Any]) -> str:
    """By its text: 1 and 1.0 are equal, but two values of a grid."""
    return packed(sorted(params.items()))


def searches_from(path: Path) -> list[Search]:
    """The searches of a file, in order of their ids.

    The grid is what the settings of a search take, in the order in which they take it: a search
    tries the whole product. Its id must come out as written.
    """
    found: dict[str, list[tuple[CsvLine, Trial]]] = {}
    for line in lines_of(path, SEARCH_COLUMNS):
        with line:
            found.setdefault(line["search"], []).append((line, _trial(line)))
    return [_search(name, found[name]) for name in sorted(found)]


def _trial(line: CsvLine) -> Trial:
    params = {**line.json("fixed"), **line.json("setting")}
    return Trial(params=params, validation=line.graded("val_"), failed=line["failed"] or None)


def _search(name: str, found: list[tuple[CsvLine, Trial]]) -> Search:
    first = found[0][0]
    with first:
        grid: dict[str, dict[str, Any]] = {}
        for line, _ in found:
            for parameter, value in line.json("setting").items():
                grid.setdefault(parameter, {}).setdefault(packed(value), value)
        base = first.spec("fixed")
        spec = SearchSpec(base=base, grid={k: tuple(v.values()) for k, v in grid.items()})
        if spec.id != name:
            raise InputError(f"the settings of search {name} are those of another, {spec.id}")
        chosen = [trial.params for line, trial in found if line.flag("chosen")]
        if len(chosen) != 1:
            raise InputError(f"search {name} has {len(chosen)} chosen settings, not one")
        return Search(
            spec=spec,
            trials=[trial for _, trial in found],
            chosen=chosen[0],
            seconds=first.real("seconds"),
            shared_with=first.json("shared_with"),
            threads=first.whole("threads"),
        )
