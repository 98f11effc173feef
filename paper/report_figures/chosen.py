"""Which methods and streams the paper's figures show, and the sentences that say so."""

import re
from collections.abc import Iterable, Sequence

from paper.published import SHOWN
from undrift.experiments.standing import in_order
from undrift.learners.registry import METHODS
from undrift.reporting.figures.figure import Figure, Groups, Shown, missing
from undrift.reporting.figures.style import display


def only(shown: Shown, methods: Sequence[str]) -> Groups:
    """The streams that have at least one of these methods, and only those methods."""
    kept = {
        stream: {method: found[method] for method in methods if method in found}
        for stream, found in shown.groups.items()
    }
    return {stream: found for stream, found in kept.items() if found}


def choice(shown: Shown, figure: str, streams: Iterable[str]) -> str:
    """Sentences on which methods a figure shows of all that were run on these streams."""
    wanted = SHOWN[figure]
    there = {method for stream in streams for method in shown.groups[stream]}
    run, not_there = (_names(m for m in wanted if (m in there) is known) for known in (True, False))
    text = f" Shown, as in the paper's figure: {run}."
    text += f" Of its methods not run here: {not_there}." if not_there else ""
    if others := _names(in_order(there - set(wanted), METHODS)):
        text += f" Left out: {others}; the learning curves and the tables have them."
    return text


def stand_ins(shown: Shown) -> frozenset[str]:
    """The streams whose data only imitates a benchmark."""
    return frozenset(r.spec.place for r in shown.records.results.values() if r.stand_in)


def not_run(name: str) -> Figure:
    """A figure that has nothing to show."""
    return missing(name, f"there is no finished run of {_names(SHOWN[name])}")


def safe_name(text: str) -> str:
    """A name that any file system takes.

    >>> safe_name("../../etc passwd"), safe_name("...")
    ('etc-passwd', 'unnamed')
    """
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "unnamed"


def _names(methods: Iterable[str]) -> str:
    return ", ".join(map(display, methods))
