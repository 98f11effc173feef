"""Options that several commands take, and how a group of commands is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter, Token

from undrift.errors import InputError


def _whole(kind: type[int], tokens: Sequence[Token]) -> int:
    """The number as it is written: rounded, 1.5 would be a run that nobody asked for."""
    text = tokens[0].value
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"{text!r} is no whole number") from None


Whole = Annotated[int, Parameter(converter=_whole)]
Many = Parameter(negative="", show_default=False)  # may be repeated
Several = Parameter(negative="", show_default=False, consume_multiple=True)  # values each time
Flag = Annotated[bool, Many]
Traceback = Annotated[bool, Many, Parameter(help="When it fails, print where.")]
Folder = Annotated[Path, Parameter(help="The learner's folder.")]


@Parameter(name="*")
@dataclass(frozen=True)
class Columns:
    """How tables are read; what is not given is as for the last batch.

    :param id: The column of node ids ("id" at first).
    :param label: The column of classes ("label" at first).
    :param source: The column of the edges' sources ("source" at first).
    :param target: The column of the edges' targets ("target" at first).
    :param directed: Edges go one way; --no-directed: both ways, as at first.
    :param ignore: A column that is no feature; repeat it for more.
    :param unknown_edges: Edges to nodes that are not in the table of nodes: drop and count them,
        or an error.
    """

    id: str | None = None
    label: str | None = None
    source: str | None = None
    target: str | None = None
    directed: bool | None = None
    ignore: Annotated[tuple[str, ...], Many] = ()
    unknown_edges: Literal["drop", "error"] = "drop"

    def given(self) -> dict[str, Any]:
        """As the folder's verbs take it."""
        told = vars(self) | {"ignore": self.ignore or None}
        directed = told.pop("directed")
        return told | {"undirected": None if directed is None else not directed}


@Parameter(name="*")
@dataclass(frozen=True)
class Workers:
    """Where the tasks of a graph folder run.

    :param workers: For a graph folder: so many processes on this machine.
    :param dask: For a graph folder: the address of a Dask cluster, such as tcp://host:8786.
    """

    workers: Whole | None = None
    dask: str | None = None

    def graph(self, files: Sequence[Path]) -> Path | None:
        """The graph folder that is the batch; None where it is none, and needs no workers."""
        if len(files) == 1 and files[0].is_dir():
            return files[0]
        if self != Workers():
            raise InputError(
                "--workers and --dask are for graph folders; make one with: undrift graph import "
                "NODES EDGES --out FOLDER"
            )
        return None

    def run(self, verb: str, *arguments: Path, **how: Any) -> Any:
        """Call `observe_large`, `forget_large` or `predict_large` with these workers."""
        from undrift.cli.console import say
        from undrift.folder import large
        from undrift.scale.engine import engine_of

        with engine_of(self.workers, self.dask) as engine:
            tell = lambda estimate: say(f"this will take {estimate}", progress=True)  # noqa: E731
            return getattr(large, f"{verb}_large")(*arguments, engine, tell=tell, **how)


AS_LAST, HERE = Columns(), Workers()


def batches(files: Sequence[Path], wanted: int | None = None) -> list[Sequence[Path]]:
    """Files in groups: a table of nodes takes the next one as its edges, others stand alone."""
    from undrift.folder.batch import ALONE

    groups: list[Sequence[Path]] = []
    left = list(files)
    while left:
        count = 1 if left[0].suffix.lower() in ALONE or left[0].is_dir() else 2
        groups.append(left[:count])
        left = left[count:]
    if wanted is not None and len(groups) != wanted:
        names = "NODES EDGES" if wanted == 1 else "OLD_NODES OLD_EDGES NEW_NODES NEW_EDGES"
        raise InputError(
            f"give {names}, or {wanted} file{'s' * (wanted > 1)} that end{'s' * (wanted == 1)} in "
            f"{', '.join(ALONE)}, not {len(files)} file{'s' * (len(files) != 1)}"
        )
    return groups


def aliases(pairs: Sequence[str]) -> dict[str, str]:
    """Each `other name=name`, as a mapping.

    >>> aliases(["Mule =mule"])
    {'Mule': 'mule'}
    """
    found = {}
    for pair in pairs:
        other, _, name = map(str.strip, pair.partition("="))
        if not other or not name:
            raise InputError(f'--alias takes "other name=name", not {pair!r}')
        found[other] = name
    return found


def group(name: str, functions: Sequence[Callable[..., None]], examples: str) -> App:
    """A command of several. Each shows those of the examples that call it, the group a few."""
    commands = {function.__name__.rstrip("_"): function for function in functions}
    lines = [x if "undrift" in x else f"undrift {name} {x}" for x in examples.split("\n") if x]
    own = {word: [x for x in lines if f"undrift {name} {word}" in x] for word in commands}

    def told(some: Sequence[str]) -> str:
        return "For example:\n\n" + "".join(f"    {line}\n" for line in some)

    first = [each[0] for each in own.values()][:4]
    app = App(name=name, help_epilogue=told(first), help_format="plaintext")
    for word, command in commands.items():
        app.command(command, name=word, help_epilogue=told(own[word]))
    return app
