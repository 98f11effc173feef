"""What people see: tables and figures."""

from typing import TYPE_CHECKING

from undrift.typing import imported_late

if TYPE_CHECKING:
    from undrift.reporting.figures.figure import Figure as Figure

__all__, __dir__, __getattr__ = imported_late(__name__)
