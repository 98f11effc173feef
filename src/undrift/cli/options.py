"""Options that several commands take, and how a group of commands is made."""

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter, Token

from undrift.errors import InputError
from undrift.formatting import counted


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
Words = Annotated[tuple[str, ...], Many]
Settings = Annotated[Words, Parameter(name="--set")]
OF_CLICKS = Parameter(group="Clicks")  # a part of the help of its own
Clicks = Annotated[str | None, OF_CLICKS]
Paths = Annotated[tuple[Path, ...], Several]
LearnerPath = Annotated[Path, Parameter(help="The learner folder.")]


@Parameter(name="*")
@dataclass(frozen=True)
class GraphColumns:
    """How tables of nodes and edges are read; what is not given is as for the last batch.

    :param id: The column of node ids (default "id").
    :param label: The column of classes (default "label").
    :param source: The column of the edges' sources (default "source").
    :param target: The column of the edges' targets (default "target").
    :param directed: Edges go one way; --no-directed: both ways (default).
    :param ignore: A column that is no feature; repeat it for more.
    :param unknown_edges: Edges to nodes that are not in the table of nodes: drop and count them,
        or an error.
    """

    id: str | None = None
    label: str | None = None
    source: str | None = None
    target: str | None = None
    directed: bool | None = None
    ignore: Words = ()
    unknown_edges: Literal["drop", "error"] | None = None

    def given(self) -> dict[str, Any]:
        """As the folder's verbs take it."""
        values = {name.removesuffix("_column"): value for name, value in vars(self).items()}
        values["ignore"] = self.ignore or None
        directed = values.pop("directed")
        return values | {"undirected": None if directed is None else not directed}


@Parameter(name="*")
@dataclass(frozen=True)
class Columns(GraphColumns):
    """How tables of any kind are read.

    :param neighbours: Of a table without edges: to how many of the nearest rows a row is linked
        (default 10); 0 for no edges.
    :param session_column: The column of sessions (default "session").
    :param item_column: The column of items (default "item").
    :param time_column: The column of times (default "time").
    :param user_column: The column of users; "" for none from now on.
    :param period_column: The column of periods, in which half_life counts; "" for none.
    :param in_order: Rows are in the order of the clicks and have no time.
    """

    neighbours: Whole | None = None
    session_column: Clicks = None
    item_column: Clicks = None
    time_column: Clicks = None
    user_column: Clicks = None
    period_column: Clicks = None
    in_order: Annotated[bool | None, OF_CLICKS] = None


@Parameter(name="*")
@dataclass(frozen=True)
class Workers:
    """Where the tasks of a graph folder run.

    :param workers: Number of processes (graph folders only).
    :param dask: Address of a Dask cluster, such as tcp://host:8786 (graph folders only).
    """

    workers: Whole | None = None
    dask: str | None = None

    @contextmanager
    def of(self, folder: Any, files: Sequence[Path]) -> Iterator[Any]:
        """The learner's folder with these workers; a batch that is no graph folder needs none."""
        from undrift.cli.console import progress_console, say
        from undrift.scale.engine import engine_of

        if self != Workers() and not is_graph(files):
            raise InputError(
                "--workers and --dask are for graph folders; make one with: undrift graph import "
                "NODES EDGES --out FOLDER"
            )
        with engine_of(self.workers, self.dask) as folder.engine:
            folder.tell = lambda estimate: say(f"this will take {estimate}", progress_console())
            yield folder


def is_graph(files: Sequence[Path]) -> bool:
    """Whether a batch is a graph folder; a folder of many graphs is none."""
    from undrift.folder.batch import graph_folder

    return len(files) == 1 and graph_folder(files[0]) is not None


_MOST_THREADS = 1024
EVERYWHERE = "With --traceback, a command that fails prints where.\n"
AS_LAST, HERE = Columns(), Workers()


def batches(folder: Any, files: Sequence[Path], wanted: int | None = None) -> list[Any]:
    """Files in groups, as this folder takes them: a batch is one file or two (`Folder.alone`)."""
    groups: list[Any] = []
    left = list(files)
    while left:
        alone = folder.alone(left[0])
        groups.append(left[0] if alone else left[:2])
        left = left[1 if alone else 2 :]
    if wanted is not None and len(groups) != wanted:
        old, new = (" ".join(f"{age}_{w}" for w in folder.files.split()) for age in ("OLD", "NEW"))
        names = folder.files if wanted == 1 else f"{old} {new}"
        many = "1 file that ends" if wanted == 1 else f"{wanted} files that end"
        other = f", or {many} in {', '.join(folder.one_file)}" if folder.one_file else ""
        raise InputError(f"give {names}{other}, not {counted(len(files), 'file')}")
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


def check_threads(threads: int) -> None:
    """Refuse a number of threads that torch does not take."""
    if not 1 <= threads <= _MOST_THREADS:
        raise InputError(f"--threads must be from 1 to {_MOST_THREADS:,}, not {threads:,}")


def flowing(text: str) -> str:
    r"""A help text whose paragraphs are as wide as the terminal; indented examples stay.

    >>> flowing("Learn a\nbatch.\n\n    undrift run\n\n:param out: The\n    folder.")
    'Learn a batch.\n\n    undrift run\n\n:param out: The folder.'
    """
    about, *rest = re.split(r"\n(?=:param |Parameters\n)", text, maxsplit=1)
    rest = [re.sub(r"\n +", " ", each) for each in rest if each.startswith(":")] or rest
    return "\n".join([re.sub(r"(?<=\S)\n(?=\S)", " ", about), *rest])


for _options in (GraphColumns, Columns, Workers):
    _options.__doc__ = flowing(inspect.getdoc(_options) or "")


def group(name: str, functions: Sequence[Callable[..., None]], examples: str) -> App:
    """A command of several. Each shows those of the examples that call it, the group a few."""
    commands = {function.__name__.rstrip("_"): function for function in functions}
    lines = [x if "undrift" in x else f"undrift {name} {x}" for x in examples.split("\n") if x]
    own = {word: [x for x in lines if f"undrift {name} {word}" in x] for word in commands}

    def epilogue(some: Sequence[str]) -> str:
        return "For example:\n\n" + "".join(f"    {line}\n" for line in some) + f"\n{EVERYWHERE}"

    first = [each[0] for each in own.values()][:4]
    app = App(name=name, help_epilogue=epilogue(first), help_format="plaintext")
    for word, command in commands.items():
        command.__doc__ = flowing(inspect.getdoc(command) or "")
        app.command(command, name=word, help_epilogue=epilogue(own[word]))
    return app
