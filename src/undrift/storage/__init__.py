"""What survives: learner state and results on disk, written whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from undrift.typing import imported_late, public_names

if TYPE_CHECKING:
    from undrift.storage.files import load_state as load_state
    from undrift.storage.files import save_state as save_state
    from undrift.storage.state import State as State

_WHERE = {"State": "state", "load_state": "files", "save_state": "files"}

__all__ = list(_WHERE)
__dir__, __getattr__ = public_names(__name__), imported_late(__name__, _WHERE)
