"""`TomlText`: a TOML file that a person wrote, to say in which line something is wrong."""

import re
import tomllib
from pathlib import Path
from typing import Any, Self, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from undrift.checks import check_regular, validation_message
from undrift.errors import InputError, unknown_name

M = TypeVar("M", bound=BaseModel)


class TomlText:
    """The text of a TOML file, its bytes, and what errors call it."""

    def __init__(self, text: str, where: str, data: bytes = b"") -> None:
        self.text, self.where, self.data = text, where, data

    @classmethod
    def read(cls, path: Path, what: str) -> Self:
        """The text of a file; `what` says in an error what it should be."""
        check_regular(path)
        try:
            data = path.read_bytes()
            return cls(data.decode("utf-8-sig"), str(path), data)
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise InputError(f"cannot read the {what} {path} ({why}); give a TOML file") from error

    def parsed(self, model: type[M]) -> M:
        """What the text says, held to a model, whose fields may be sections of the file."""
        try:
            return model.model_validate(tomllib.loads(self.text))
        except tomllib.TOMLDecodeError as error:
            problem = f"{self.where} is not valid TOML: {error}"
            raise InputError(f"{problem}; correct it there") from error
        except RecursionError:
            raise InputError(f"{self.where} is nested too deeply; give plain lists") from None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            names = [part for part in first["loc"] if isinstance(part, str)]
            section, key = ("", "", *names[:2])[-2:]
            after, inner = f"[{section}]" if section else "", f" of [{section}]" if section else ""
            if first["type"] == "extra_forbidden":
                kind: Any = model.model_fields[section].annotation if section else model
                # a section may be left out: then it stands beside None
                known = next(k for k in (kind, *get_args(kind)) if hasattr(k, "model_fields"))
                why: object = unknown_name(f"key{inner}", key, known.model_fields)
            else:
                why = validation_message(error, 2)
            raise self.wrong(key, why, after) from error

    def wrong(self, word: str, why: object, after: str = "") -> InputError:
        """The error with the line in which `word` stands, after the line that has `after`."""
        lines = self.text.splitlines()
        start = next((k for k, line in enumerate(lines) if after and after in line), 0)
        pattern = re.compile(rf"(?<![\w.-]){re.escape(word)}(?![\w-])")
        found = [k for k, line in enumerate(lines) if word and k >= start and pattern.search(line)]
        where = f"{self.where}, line {found[0] + 1}" if found else self.where
        return InputError(f"{where}: {why}")
