"""A learner that lives in a folder: names, history, and steps that happen whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from undrift.typing import imported_late

if TYPE_CHECKING:
    from pathlib import Path

    from undrift.folder.folder import LearnerFolder as LearnerFolder
    from undrift.folder.recommender import RecommenderFolder as RecommenderFolder
    from undrift.learners.base import Learner

__all__, __dir__, __getattr__ = imported_late(__name__)
__all__ += ["load"]


def load(path: str | Path, *, device: str | None = None) -> Learner:
    """The learner in a folder, or in a file that `Learner.save` wrote, ready to go on.

    Out of a folder it comes without its names: classes and columns are those that
    `LearnerFolder(path).show()` lists; and without the list of its batches, so `forget` and
    `revise` need `again=True`. `device`: another than it had.

    >>> import tempfile, undrift
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     undrift.make_learner("adr", gamma=0.1).save(f"{folder}/learner")
    ...     load(f"{folder}/learner").params()["gamma"]
    0.1
    """
    from pathlib import Path

    from undrift.errors import InputError
    from undrift.folder.store import current_with_state
    from undrift.learners import registry

    if not Path(path).exists():
        way = "give a file that learner.save(path) wrote, or a learner folder"
        raise InputError(f"there is no file or folder {path}; {way}")
    if not Path(path).is_dir():
        return registry.load(path, device=device)
    version, state = current_with_state(Path(path))
    learner = registry.learner_of(state, version.path, device=device)
    learner.columns_ = version.record.columns or learner.columns_
    return learner
