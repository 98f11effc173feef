"""Many encoders, one result: merging rules by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from undrift.errors import InputError
from undrift.plugins import Registry
from undrift.typing import public_names

if TYPE_CHECKING:
    from undrift.merging.merger import Merger

__all__ = ["RULES", "merging_rule"]
__dir__ = public_names(__name__)

RULES = Registry("merging rule", "undrift.merging", {"ham": "undrift.merging.ham:Ham"})
"""The merging rules by name; entry points of other packages in `undrift.merging` come after.

>>> "ham" in RULES, "hum" in RULES
(True, False)
"""

_MOVED = "undrift.merging."  # before module and class, in runs and states of before


def merging_rule(name: str) -> type[Merger]:
    """The class behind a rule's name or `module:Class`; an unknown name prints the list.

    >>> merging_rule("ham").display
    'HAM'
    """
    kind = name.rpartition(":")[2].lower() if name.startswith(_MOVED) else name
    found: type[Merger] = RULES.load({"flooredfisher": "floored-fisher"}.get(kind, kind))
    for part in ("name", "display", "empty", "observe", "merge"):
        if not hasattr(found, part):
            raise InputError(
                f"merging rule {name!r} has no {part}; see undrift.merging.merger.Merger for what "
                "a rule must have"
            )
    return found
