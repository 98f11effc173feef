"""Propagation, the default method: a plan, rows, sums over them, and what the sums come to.

Read it in this order: `plan` (every decision, made once), `mixes` and `features` (a graph becomes
rows), `sums`, `solve`, `learner`.
"""

from undrift.typing import imported_late

__all__, __dir__, __getattr__ = imported_late(__name__)
