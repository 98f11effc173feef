"""Records: frozen pydantic models that lie on disk as JSON. Does not import torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from undrift.checks import check_regular
from undrift.errors import InputError
from undrift.storage.files import write_atomically


class StrictModel(BaseModel):
    """A part of a file, by name or alias; NaN in a file is damage."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False
    )


R = TypeVar("R", bound=BaseModel)


def read_record(
    kind: type[R],
    path: str | Path,
    name: str,
    what: str,
    *,
    first: str = "run undrift bench first",
    again: str = "run undrift bench again",
) -> R:
    """Read a record; what is wrong is an `InputError`.

    `name` and `what` say what it is, `first` what to do where there is no file and `again` what
    to do after deleting a damaged one.
    """
    check_regular(Path(path))
    try:
        return kind.model_validate_json(Path(path).read_bytes())
    except OSError as error:
        raise InputError(
            f"cannot read the {name} {path} ({error.strerror or error}); {first}"
        ) from error
    except ValidationError as error:
        raise InputError(
            f"{path} is not {what} ({validation_message(error)}); delete it and {again}"
        ) from error


def write_record(record: BaseModel, path: Path, indent: int = 1) -> Path:
    """Write a record, whole or not at all, and return its path."""
    write_atomically(path, (record.model_dump_json(by_alias=True, indent=indent) + "\n").encode())
    return path


def validation_message(error: ValidationError) -> str:
    """The first thing pydantic found wrong, as the end of a sentence."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    what = first["msg"].removeprefix("Value error, ")
    return f"{where}: {what[:1].lower()}{what[1:]}" if where else what


def tuples(value: Any) -> Any:
    """Lists as tuples: JSON knows no tuples, so what was read equals what was written."""
    if isinstance(value, dict):
        return {name: tuples(part) for name, part in value.items()}
    return tuple(map(tuples, value)) if isinstance(value, list | tuple) else value
