"""How the page writes names and settings; numbers are written by `undrift.formatting`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from undrift.evaluation.metrics import METRICS
from undrift.reporting import names

__all__ = ["metric_head", "metric_tip", "minus", "setting_text", "stream_title"]


def metric_head(key: str) -> Markup | str:
    """The symbol of a metric.

    >>> metric_head("a_avg")
    Markup('A<sub>avg</sub>')
    """
    return names.symbol(key, Markup("%s<sub>%s</sub>"))


def metric_tip(key: str) -> str:
    """What a metric is, in a few words."""
    metric = METRICS[key]
    return f"{metric.title}; {'high' if metric.better == 'up' else 'low'} is good"


def stream_title(name: str) -> str:
    """The name of a stream for reading, without the word stand-in, which a badge says.

    >>> stream_title("reddit-cl-stand-in@0.01"), stream_title("cs-cl"), stream_title("other")
    ('Reddit-CL@0.01', 'CS-CL', 'other')
    """
    return names.stream_title(name).replace(" stand-in", "")


def minus(text: str) -> str:
    """A number with a real minus sign.

    >>> minus("-0.25")
    '−0.25'
    """
    return text.replace("-", "−")


def setting_text(params: Mapping[str, Any]) -> str:
    """Hyperparameters in one line.

    >>> setting_text({"gamma": 0.1, "hidden": (64, 64)}), setting_text({})
    ('gamma 0.1, hidden 64×64', 'defaults')
    """
    parts = [f"{name} {names.value_text(value)}" for name, value in params.items()]
    return ", ".join(parts) or "defaults"
