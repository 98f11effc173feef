"""The guard of small classes: what is written has enough rows behind each class."""

from collections.abc import Mapping
from typing import Literal

from undrift.errors import InputError
from undrift.noise.gaussian import best_attack

SmallClasses = Literal["refuse", "context", "pool", "allow"]
"""What a folder does with a new class of few training nodes: refuse the batch, count its nodes as
nodes without a label, learn all such classes as one, or learn it as any other."""

LEAST_ROWS = 5
"""Training nodes of a class under which what is kept of it is not written unless asked for.

What the number rests on: docs/privacy/guards.md.
"""

MOST_RIGHT = 0.85
"""How often the best attack on one node may be right where noise stands in place of the guards.

With delta = 1e-6 that is epsilon up to 11.4 (docs/privacy/differential-privacy.md). With less noise
a learner with `epsilon` is guarded and judged as one without.
"""


def has_noise(learner: object) -> bool:
    """Whether what a learner keeps was released with noise (`epsilon`), however little."""
    return getattr(learner, "account_", None) is not None


def bounded(learner: object) -> bool:
    """Whether noise that is enough (`MOST_RIGHT`), and of no known seed, stands for the guards."""
    account = getattr(learner, "account_", None)
    if account is None or getattr(learner, "testing", False):
        return False
    return best_attack(account.epsilon, account.delta) <= MOST_RIGHT


def check_class_rows(rows: Mapping[int, int] | None, least_rows: int) -> None:
    """Reject a learner of which a class has fewer training nodes; None: it cannot tell."""
    few = {c: n for c, n in (rows or {}).items() if n < least_rows}
    if few:
        c, n = next(iter(few.items()))
        raise InputError(
            f"class {c} has {n} training node{'s' * (n != 1)}, and a file with fewer than "
            f"{least_rows} could reveal them; observe more, or pass least_rows={n}"
        )
