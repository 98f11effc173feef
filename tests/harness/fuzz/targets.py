"""All targets."""

from __future__ import annotations

from importlib.util import find_spec

from tests.harness.fuzz.archive_targets import ARCHIVE_TARGETS
from tests.harness.fuzz.graph_targets import GRAPH_TARGETS
from tests.harness.fuzz.guard import Target
from tests.harness.fuzz.own_targets import OWN_TARGETS
from tests.harness.fuzz.table_targets import TABLE_TARGETS

_ALL = (*GRAPH_TARGETS, *ARCHIVE_TARGETS, *TABLE_TARGETS, *OWN_TARGETS)
_LACKS_ARROW = find_spec("pyarrow") is None  # which reads Parquet in the second way

TARGETS: tuple[Target, ...] = tuple(
    target for target in _ALL if not (_LACKS_ARROW and target.name == "parquet")
)
