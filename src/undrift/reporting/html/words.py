"""How the page writes numbers and names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from undrift.learners.registry import METHODS
from undrift.reporting import names

__all__ = [
    "METRICS",
    "bytes_text",
    "family_of",
    "method_title",
    "minus",
    "seconds_text",
    "setting_text",
    "stream_title",
    "value_text",
]

METRICS: Mapping[str, tuple[Markup, str]] = {
    "a_avg": (
        Markup("A<sub>avg</sub>"),
        "average incremental accuracy: the mean of A_t over all tasks",
    ),
    "a_f": (Markup("A<sub>f</sub>"), "final accuracy: the mean over tasks after the last"),
    "a_l": (Markup("A<sub>l</sub>"), "learning accuracy: each task just after it was learned"),
    "forgetting": (Markup("forgetting"), "points lost since a task was learned; low is good"),
}
"""What a metric is called, and what it means in a few words."""


def stream_title(name: str) -> str:
    """The name of a stream for reading, without the word stand-in, which a badge says.

    >>> stream_title("reddit-cl-stand-in@0.01"), stream_title("cs-cl"), stream_title("other")
    ('Reddit-CL@0.01', 'CS-CL', 'other')
    """
    return names.stream_title(name).replace(" stand-in", "")


def method_title(name: str) -> str:
    """The name of a method for reading; a stranger keeps its own."""
    return METHODS[name].display if name in METHODS else name


def family_of(method: str) -> str:
    """The family of a method; "other" for a stranger."""
    return METHODS[method].family if method in METHODS else "other"


def seconds_text(seconds: float) -> str:
    """A time with two or three digits that matter.

    >>> [seconds_text(s) for s in (0.042, 5.23, 417.0, 7300.0)]
    ['0.04 s', '5.2 s', '417 s', '2.0 h']
    """
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def bytes_text(count: float) -> str:
    """A number of bytes in the unit that suits it.

    >>> [bytes_text(b) for b in (12, 4_500, 1_234_000, 270_434_000, 2.5e9)]
    ['12 B', '4.5 kB', '1.2 MB', '270 MB', '2.5 GB']
    """
    for unit in ("B", "kB", "MB"):
        if count < 999.5:
            return f"{count:.1f} {unit}" if unit != "B" and count < 99.95 else f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def minus(number: float, decimals: int = 2) -> str:
    """A signed number with a real minus sign.

    >>> minus(-0.25), minus(1.5)
    ('−0.25', '+1.50')
    """
    return f"{number:+.{decimals}f}".replace("-", "−")


def setting_text(params: Mapping[str, Any]) -> str:
    """Hyperparameters in one line.

    >>> setting_text({"gamma": 0.1, "hidden": (64, 64)}), setting_text({})
    ('gamma 0.1, hidden 64×64', 'defaults')
    """
    parts = [f"{name} {value_text(value)}" for name, value in params.items()]
    return ", ".join(parts) or "defaults"


def value_text(value: Any) -> str:
    """One hyperparameter's value."""
    if isinstance(value, tuple | list):
        return "×".join(map(value_text, value)) or "()"
    return f"{value:g}" if isinstance(value, float) else str(value)
