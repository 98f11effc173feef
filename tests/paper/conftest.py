"""Made-up results: the same as for the tables and figures of a report."""

from tests.reporting.conftest import fakes

__all__ = ["fakes"]
