"""`StandIn`: a generated graph of the size and shape of a dataset that is not at hand.

What can be real is real; the rest is drawn from a seed. Whatever is made of one carries
`provenance["stand_in"]`, which says how much of it is real; `marked` words it in titles. The
generators come from other packages, as entry points of `undrift.streams`: ours are in the folder
`paper` of the repository. Reading one needs neither torch, numpy nor a data file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from undrift.datasets.dataset import Dataset, check_statistics, function_of
from undrift.errors import InputError

if TYPE_CHECKING:
    from undrift.graphs import Graph

MARK = "stand-in"


def marked(title: str, stand_in: object = True) -> str:
    """A title that says once that its data is a stand-in, where it is one.

    >>> marked("Reddit-CL"), marked("Reddit-CL stand-in"), marked("CS-CL", False)
    ('Reddit-CL (stand-in)', 'Reddit-CL stand-in', 'CS-CL')
    """
    return f"{title} ({MARK})" if stand_in and MARK not in title.lower() else title


@dataclass(frozen=True)
class StandIn:
    """An imitation of a dataset.

    `file` is the data file with its real part, None where nothing is real; `parts` says how
    much of it is real. `maker` is the `module:function` that takes (path, scale, directed, seed)
    and returns the graph and the number of edges to compare with the dataset's. One that has
    other sizes too has `scaled`, the `module:function` from a scale to its nodes and edges. A
    plan that takes it in place of the dataset takes it at `plan_scale`.
    """

    imitates: Dataset
    file: str | None
    parts: str
    maker: str
    scaled: str = ""
    plan_scale: float = 1.0

    @property
    def stream_name(self) -> str:
        """What its stream is called on the command line."""
        return f"{self.imitates.stream_name}-{MARK}"

    def on_disk(self) -> bool:
        """Whether it can be generated now: its real part is there, or it has none."""
        from undrift.datasets.folder import data_folder

        return self.file is None or (data_folder() / self.file).is_file()

    def counts(self, scale: float = 1.0) -> dict[str, int]:
        """The statistics of the dataset, or what is left of them at a smaller scale."""
        counts = self.imitates.counts
        return counts if scale == 1 else {**counts, **function_of(self.scaled)(scale)}

    def read(
        self, *, scale: float = 1.0, directed: bool = False, seed: int = 0
    ) -> tuple[Graph, dict[str, str]]:
        """The graph, and its provenance: how much is real, the call, the real file.

        The same arguments give the same graph. It is checked against the dataset's statistics,
        or what is left of them at a smaller `scale`.
        """
        from undrift.datasets.folder import check_recorded, find_file

        name = self.imitates.name
        check_options(f"the {MARK} for {name}", self.imitates, self, scale, directed)
        if seed < 0:
            raise InputError(f"the seed of the {MARK} for {name} must be 0 or more, not {seed}")
        options = {"scale": scale} if self.scaled else {}
        options |= {"directed": directed} if self.imitates.directed else {}
        call = ", ".join(f"{key}={value}" for key, value in (options | {"seed": seed}).items())
        made_by = self.maker.replace(":", ".")
        provenance = {"stand_in": self.parts, "generator": f"{made_by}({call})"}
        path = None if self.file is None else find_file(self.file)
        if path is not None:
            provenance[path.name] = check_recorded(path)
        graph, edges = function_of(self.maker)(path, scale, directed, seed)
        way = f"check {self.file or 'the generator'}"
        counts = self.counts(scale)
        check_statistics(graph, edges, counts, name=name, holder=f"the {MARK} for it", way=way)
        return graph, provenance


def check_options(
    what: str, dataset: Dataset, stand_in: StandIn | None, scale: float, directed: bool
) -> None:
    """Reject a scale or a direction that a dataset or its stand-in, called `what`, has not."""
    if not (math.isfinite(scale) and 0 < scale <= 1):
        raise InputError(
            f"the scale of {what} must be a number above 0 and at most 1, not {scale:g}; for "
            "example 0.01"
        )
    if scale != 1 and not (stand_in and stand_in.scaled):
        raise InputError(f"{what} has one size; leave the scale out or take reddit-cl-{MARK}")
    if directed and not dataset.directed:
        raise InputError(f"{what} has no directed form, its edges go both ways; leave directed out")
