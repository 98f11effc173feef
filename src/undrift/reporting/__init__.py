"""What people see: tables and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from undrift.typing import imported_late, public_names

if TYPE_CHECKING:
    from undrift.reporting.figures.figure import Figure as Figure

_WHERE = {"Figure": "figures.figure"}

__all__ = list(_WHERE)
__dir__, __getattr__ = public_names(__name__), imported_late(__name__, _WHERE)
