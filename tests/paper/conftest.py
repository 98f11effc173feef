"""Made-up results: the same as for the tables and figures of a report."""

from tests.reporting.conftest import fakes, in_print

__all__ = ["fakes", "in_print"]
