"""The paper's claims on the results page: which hold where, and every number behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paper.markdown_text import grid
from paper.page_tables import DASH
from undrift.reporting.names import stream_title
from undrift.reporting.tables.formats import escape_markdown

if TYPE_CHECKING:
    from paper.claims import Claim

__all__ = ["claims_table", "contradictions", "evidence_of"]


def claims_table(claims: Sequence[Claim], streams: Sequence[str]) -> str:
    """A line per claim, a column per stream: whether it holds, and where the paper says other."""
    found = {(claim.name, claim.stream): claim for claim in claims}
    texts = {claim.name: claim.text for claim in claims}
    shown = [stream for stream in streams if any(claim.stream == stream for claim in claims)]
    lines = [
        [escape_markdown(text), *(_verdict(found.get((name, stream))) for stream in shown)]
        for name, text in texts.items()
    ]
    titles = [escape_markdown(_title(claims, stream)) for stream in shown]
    return grid(["claim", *titles], "l" * (1 + len(shown)), lines)


def contradictions(claims: Sequence[Claim]) -> list[str]:
    """A sentence per claim that the paper makes and our runs do not bear out, or the reverse."""
    sentences = []
    for claim in claims:
        if claim.disagrees:
            says = "The paper says so, our runs do not" if claim.paper else "Only our runs say so"
            text = escape_markdown(f"{claim.text}. {says}: {claim.evidence}")
            sentences.append(f"**{escape_markdown(stream_title(claim.stream))}**: {text}")
    return sentences


def evidence_of(claims: Sequence[Claim], streams: Sequence[str]) -> str:
    """Claim by claim: on every stream whether it holds, over how many seeds, and the numbers."""
    parts = []
    for name in dict.fromkeys(claim.name for claim in claims):
        found = {claim.stream: claim for claim in claims if claim.name == name}
        mine = [found[stream] for stream in (*streams, *found) if stream in found]
        mine = list(dict.fromkeys(mine))
        lines = [
            [
                escape_markdown(stream_title(claim.stream, stand_in=claim.stand_in)),
                _verdict(claim),
                str(claim.seeds),
                escape_markdown(claim.evidence),
            ]
            for claim in mine
        ]
        table = grid(["stream", "holds", "seeds", "numbers"], "llrl", lines)
        parts.append(f"{escape_markdown(mine[0].text)}:\n\n{table}")
    return "\n\n".join(parts)


def _verdict(claim: Claim | None) -> str:
    if claim is None:
        return DASH
    word = "yes" if claim.holds else "**no**"
    word += " (some rows not run)" if claim.holds and claim.partial else ""
    return word + (f" (paper: {'yes' if claim.paper else 'no'})" if claim.disagrees else "")


def _title(claims: Sequence[Claim], stream: str) -> str:
    imitated = any(claim.stand_in for claim in claims if claim.stream == stream)
    return stream_title(stream, stand_in=imitated)
