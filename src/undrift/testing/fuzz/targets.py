"""All targets."""

from __future__ import annotations

from undrift.testing.fuzz.archive_targets import ARCHIVE_TARGETS
from undrift.testing.fuzz.graph_targets import GRAPH_TARGETS
from undrift.testing.fuzz.guard import Target
from undrift.testing.fuzz.own_targets import OWN_TARGETS
from undrift.testing.fuzz.table_targets import TABLE_TARGETS

TARGETS: tuple[Target, ...] = (*GRAPH_TARGETS, *ARCHIVE_TARGETS, *TABLE_TARGETS, *OWN_TARGETS)
