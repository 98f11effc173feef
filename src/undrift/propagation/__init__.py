"""Propagation, the default method: a plan, rows, sums over them, and what the sums come to.

Read it in this order: `plan` (every decision, made once), `mixes` and `features` (a graph becomes
rows), `sums`, `solve`, `learner`.
"""

from undrift.typing import imported_late, public_names

__all__ = ["features", "learner", "mixes", "plan", "solve", "sums"]
__dir__, __getattr__ = public_names(__name__), imported_late(__name__, {}, __all__)
