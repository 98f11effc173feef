"""`Claim`: a sentence of the paper, and what our runs say about it. Does not import torch."""

from dataclasses import dataclass

__all__ = ["Claim"]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper on one stream, and what our runs say about it.

    `name` is the same on every stream. `paper` is whether the paper says it of this stream, by
    its text or by its own numbers; None where it says nothing. `seeds` is how many seeds of ADR
    (or of the search) it rests on. `partial` means that some of the rows it speaks of have no
    runs.
    """

    name: str
    text: str
    stream: str
    holds: bool
    evidence: str
    seeds: int
    paper: bool | None = None
    partial: bool = False
    stand_in: bool = False

    @property
    def disagrees(self) -> bool:
        """Whether our measurement contradicts the paper."""
        return self.paper is not None and self.paper != self.holds
