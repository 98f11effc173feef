"""Tables of what there is: methods, made from the registry, and metrics, made from theirs."""

from __future__ import annotations

from pathlib import Path

from undrift.evaluation.metrics import METRICS
from undrift.learners.registry import METHODS


def methods_table() -> str:
    """Markdown with a row per method, which links to its page."""
    docs = Path(__file__).parents[1]
    rows = ["| method | family | keeps examples | what it keeps |", "|---|---|---|---|"]
    for method in METHODS.values():
        page = f"methods/{method.name}.md"
        name = f"[{method.display}]({page})" if (docs / page).is_file() else method.display
        kept = "yes" if method.keeps_examples else "no"
        rows.append(f"| {name} | {method.family} | {kept} | {method.keeps} |")
    return "\n".join(rows)


def metrics_table() -> str:
    """Markdown with a row per metric."""
    rows = ["| | | formula | better |", "|---|---|---|---|"]
    for metric in METRICS.values():
        symbol = metric.symbol.replace("_", "\\_")
        title = metric.title if metric.title != metric.symbol else ""
        better = {"up": "higher", "down": "lower"}[metric.better]
        rows.append(f"| {symbol} | {title} | ${metric.formula}$ | {better} |")
    return "\n".join(rows)
