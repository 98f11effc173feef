"""A stream whose columns are in units of their spread, as its first task shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from undrift.errors import InputError
from undrift.graphs import Scaling
from undrift.graphs.scaling import odd_columns, scaling_given

if TYPE_CHECKING:
    from undrift.streams.stream import TaskStream

Scale = Literal["robust", "none"] | Scaling | Mapping[str, Any]
Stream = TypeVar("Stream", bound="TaskStream")
_SHOWN = 4


def in_units(stream: Stream, scale: Scale, columns: Sequence[str] | None = None) -> Stream:
    """The stream with its columns scaled; `provenance["scale"]` says by what.

    `robust`: by the nodes of the first task (`Scaling.of`), so that no later task tells of itself.
    A mapping gives some `columns` a range, or a centre and a spread (`scaling_given`); without
    names they go by their number.
    """
    if scale == "none":
        return stream
    nodes = stream.nodes([0])
    if scale == "robust":
        known = Scaling.of(stream.graph.features[nodes])
        how = f"robust, by {nodes.numel():,} nodes of the first task"
    elif isinstance(scale, Scaling):
        known, how = scale, "as given"
    elif isinstance(scale, Mapping):
        known, how = scaling_given(scale, columns, stream.graph.num_features), "as given"
    else:
        raise InputError(f'scale must be "robust", "none", or ranges by column, not {scale!r}')
    told = {"scale": how, "scale_sha256": sha256(repr(known).encode()).hexdigest()}
    graph = stream.graph.scaled(known)
    return replace(stream, graph=graph, provenance={**stream.provenance, **told})


def scale_note(stream: TaskStream) -> str:
    """A sentence about columns that would decide alone; empty where there are none."""
    odd = odd_columns(stream.graph.features[stream.nodes([0])])
    if not odd:
        return ""
    shown = ", ".join(f"{j} ({times:,.0f} times)" for j, times in list(odd.items())[:_SHOWN])
    more = f" and {len(odd) - _SHOWN} more" if len(odd) > _SHOWN else ""
    return (
        f"far larger than the others, counted from 0: column{'s' * (len(odd) > 1)} {shown}{more}, "
        'which may decide alone; scale="robust" puts all columns into units of their spread, and '
        'scale="none" says that it is meant'
    )
