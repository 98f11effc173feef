"""What survives: learner state and results on disk, written whole or not at all."""

from typing import TYPE_CHECKING

from undrift.typing import imported_late

if TYPE_CHECKING:
    from undrift.storage.files import load_state as load_state
    from undrift.storage.files import save_state as save_state
    from undrift.storage.state import State as State

__all__, __dir__, __getattr__ = imported_late(__name__)
