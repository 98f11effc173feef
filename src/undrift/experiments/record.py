"""Records: frozen pydantic models that lie on disk as JSON. Does not import torch."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from undrift.checks import check_regular, validation_message
from undrift.errors import InputError
from undrift.storage.files import write_atomically
from undrift.storage.lock import system_errors


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
    """Read a record; the error says what to do `first`, or `again` after deleting a damaged one."""
    check_regular(Path(path))
    try:
        with system_errors(f"cannot read the {name} {path}", first):
            return kind.model_validate_json(Path(path).read_bytes())
    except ValidationError as error:
        raise InputError(
            f"{path} is not {what} ({validation_message(error)}); delete it and {again}"
        ) from error


def check_name(path: Path, name: str, expected: Callable[[], str]) -> None:
    """Refuse a record that lies under another name than that of its content."""
    try:
        wanted = expected()
    except InputError as error:  # an edited spec may have no id
        raise InputError(f"{path} is damaged ({error}); delete it and run again") from error
    if name != wanted:
        raise InputError(
            f"{path} was moved or edited (its content belongs under the name {wanted}); rename "
            "it back or delete it and run again"
        )


def write_record(record: BaseModel, path: Path, indent: int = 1) -> Path:
    """Write a record, whole or not at all, and return its path."""
    write_atomically(path, (record.model_dump_json(by_alias=True, indent=indent) + "\n").encode())
    return path


def tuples(value: Any) -> Any:
    """Lists as tuples: JSON knows no tuples, so what was read equals what was written."""
    if isinstance(value, dict):
        return {name: tuples(part) for name, part in value.items()}
    return tuple(map(tuples, value)) if isinstance(value, list | tuple) else value
