"""Differential privacy of sums: how much noise, its sampling, one joint release, an account."""

from typing import TYPE_CHECKING

from undrift.typing import imported_late

if TYPE_CHECKING:
    from undrift.noise.gaussian import Accountant as Accountant
    from undrift.noise.release import Mechanism as Mechanism

__all__, __dir__, __getattr__ = imported_late(__name__)
