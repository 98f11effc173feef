"""`Search`: what a hyperparameter search tried and chose. Does not import torch."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from undrift.errors import InputError
from undrift.experiments.result import Graded, Metrics
from undrift.experiments.spec import RunSpec, complaint
from undrift.storage.files import write_atomically

__all__ = ["Search", "SearchSpec", "Trial", "load_search", "save_search", "search_path"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _tuples(value: Any) -> Any:
    """JSON knows no tuples: settings that were read equal those that were written."""
    if isinstance(value, dict):
        return {name: _tuples(part) for name, part in value.items()}
    return tuple(_tuples(part) for part in value) if isinstance(value, list | tuple) else value


Settings = Annotated[dict[str, Any], AfterValidator(_tuples)]


class SearchSpec(_Record):
    """Everything that decides what a search finds: one method's grid on one stream and seed.

    `base` is the spec that every trial starts from, `grid` the values of each parameter; the
    trials are their product, in the order in which the grid lists them.
    """

    base: RunSpec
    grid: Annotated[dict[str, tuple[Any, ...]], AfterValidator(_tuples)]

    @property
    def id(self) -> str:
        """The first 12 hex digits of the SHA-256 of what is searched."""
        text = json.dumps([self.base.id, sorted(self.grid.items())], separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


class Trial(_Record):
    """One setting and what it scored on the validation nodes; the test nodes were not looked at.

    `failed` is the error of a setting that could not be computed; it cannot be chosen.
    """

    params: Settings
    validation: Graded[Metrics] | None
    failed: str | None = None


class Search(_Record):
    """A finished search: every trial, and the one with the best validation a_avg by class.

    `seconds` is what the whole search took, with training that several trials share done once;
    where it ran beside the search of another method, `shared_with` names that one and the
    seconds are of both together.
    """

    spec: SearchSpec
    trials: list[Trial]
    chosen: Settings
    seconds: float
    shared_with: list[str] = []
    threads: int = 1


def search_path(spec: SearchSpec, out: str | Path) -> Path:
    """Where the outcome of a search lies: `<out>/searches/<id>.json`."""
    return Path(out) / "searches" / f"{spec.id}.json"


def save_search(search: Search, out: str | Path) -> Path:
    """Write what a search found, whole or not at all, and return its path."""
    path = search_path(search.spec, out)
    write_atomically(path, (search.model_dump_json(by_alias=True, indent=1) + "\n").encode())
    return path


def load_search(path: str | Path) -> Search:
    """Read what a search found; a damaged or foreign file is an `InputError`."""
    try:
        return Search.model_validate_json(Path(path).read_bytes())
    except OSError as error:
        raise InputError(
            f"cannot read the search {path} ({error.strerror or error}); run undrift bench first"
        ) from error
    except ValidationError as error:
        raise InputError(
            f"{path} is not the outcome of a search ({complaint(error)}); delete it and run "
            "undrift bench again"
        ) from error
