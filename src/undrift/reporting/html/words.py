"""How the page writes numbers and names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from undrift.learners.registry import METHODS
from undrift.reporting import names

__all__ = [
    "METRICS",
    "family_of",
    "method_title",
    "minus",
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
    """The name of a method for reading; an outside method keeps its own."""
    return METHODS[name].display if name in METHODS else name


def family_of(method: str) -> str:
    """The family of a method; "other" for an outside method."""
    return METHODS[method].family if method in METHODS else "other"


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
