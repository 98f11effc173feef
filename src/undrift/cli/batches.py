"""What the commands of `undrift learner` take: files, the names of columns, classes' aliases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from undrift.errors import InputError

Many = Parameter(negative="", show_default=False)


@Parameter(name="*")
@dataclass(frozen=True)
class Columns:
    """How tables are read; what is not given is as for the last batch.

    Parameters
    ----------
    id
        The column of node ids ("id" at first).
    label
        The column of classes ("label" at first).
    source
        The column of the edges' sources ("source" at first).
    target
        The column of the edges' targets ("target" at first).
    directed
        Edges go one way; --no-directed: both ways, as at first.
    ignore
        A column that is no feature; repeat it for more.
    unknown_edges
        Edges to nodes that are not in the table of nodes: drop and count them, or an error.
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
        return {
            "id": self.id,
            "label": self.label,
            "source": self.source,
            "target": self.target,
            "undirected": None if self.directed is None else not self.directed,
            "ignore": self.ignore or None,
            "unknown_edges": self.unknown_edges,
        }


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


def one_batch(files: Sequence[Path]) -> Sequence[Path]:
    """The files of one batch."""
    return batches(files, 1)[0]


def aliases(pairs: Sequence[str]) -> dict[str, str]:
    """Each `other name=name`, as a mapping.

    >>> aliases(["Mule =mule"])
    {'Mule': 'mule'}
    """
    found = {}
    for pair in pairs:
        other, equals, name = pair.partition("=")
        if not equals or not other.strip() or not name.strip():
            raise InputError(f'--alias takes "other name=name", not {pair!r}')
        found[other.strip()] = name.strip()
    return found
