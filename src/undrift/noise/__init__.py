"""Differential privacy of sums: how much noise, its sampling, one joint release, an account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from undrift.typing import imported_late, public_names

if TYPE_CHECKING:
    from undrift.noise.gaussian import Accountant as Accountant
    from undrift.noise.release import Mechanism as Mechanism

_WHERE = {"Accountant": "gaussian", "Mechanism": "release"}

__all__ = list(_WHERE)
__dir__, __getattr__ = public_names(__name__), imported_late(__name__, _WHERE)
