"""Which runs: a spec, the run it describes, and its result."""

from typing import TYPE_CHECKING

from undrift.typing import imported_late

if TYPE_CHECKING:
    from undrift.experiments.run import execute as execute
    from undrift.experiments.run import prepare as prepare
    from undrift.experiments.spec import RunSpec as RunSpec
    from undrift.experiments.store import load_records as load_records

__all__, __dir__, __getattr__ = imported_late(__name__)
