"""The guard of small classes: what is written has enough rows behind each class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from undrift.errors import InputError

SmallClasses = Literal["refuse", "context", "pool", "allow"]
"""What a folder does with a new class of few training nodes: refuse the batch, count its nodes as
nodes without a label, learn all such classes as one, or learn it as any other."""

LEAST_ROWS = 5
"""Training nodes of a class under which what is kept of it is not written unless asked for.

What the number rests on: docs/privacy/guards.md.
"""


def bounded(learner: object) -> bool:
    """Whether what a learner keeps has noise (`epsilon`): then no class needs a guard."""
    return getattr(learner, "account_", None) is not None


def check_class_rows(rows: Mapping[int, int] | None, least_rows: int) -> None:
    """Reject a learner of which a class has fewer training nodes; None: it cannot tell.

    >>> check_class_rows({4: 2}, least_rows=1)
    """
    few = {c: n for c, n in (rows or {}).items() if n < least_rows}
    if few:
        c, n = next(iter(few.items()))
        raise InputError(
            f"class {c} has {n} training node{'s' * (n != 1)}, and sums over fewer than "
            f"{least_rows} give them away in a file; observe more of them first, or say "
            f"least_rows={n} to write it nevertheless"
        )
