"""Which runs: a spec, the run it describes, and its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from undrift.typing import imported_late, public_names

if TYPE_CHECKING:
    from undrift.experiments.run import execute as execute
    from undrift.experiments.run import prepare as prepare
    from undrift.experiments.spec import RunSpec as RunSpec
    from undrift.experiments.store import load_records as load_records

_WHERE = {"RunSpec": "spec", "execute": "run", "load_records": "store", "prepare": "run"}

__all__ = list(_WHERE)
__dir__, __getattr__ = public_names(__name__), imported_late(__name__, _WHERE)
