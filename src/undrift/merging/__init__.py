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

RULES = Registry(
    "merging rule",
    "undrift.merging",
    {
        "average": "undrift.merging.weights:Average",
        "fisher": "undrift.merging.fisher:Fisher",
        "magmax": "undrift.merging.weights:MagMax",
        "ties": "undrift.merging.weights:Ties",
        "regmean": "undrift.merging.regmean:RegMean",
        "ham": "undrift.merging.ham:Ham",
    },
)
"""The merging rules by name; entry points of other packages in `undrift.merging` come after.

>>> "ham" in RULES, "hum" in RULES
(True, False)
"""


# by which runs and states of 0.2.0 name it
_MOVED = {"undrift.merging.fisher:FlooredFisher": "floored-fisher"}


def merging_rule(name: str) -> type[Merger]:
    """The class behind a rule's name or `module:Class`; an unknown name prints the list.

    >>> merging_rule("fisher").display
    'Fisher merging'
    """
    found: type[Merger] = RULES.load(_MOVED.get(name, name))
    for part in ("name", "display", "empty", "observe", "merge"):
        if not hasattr(found, part):
            raise InputError(
                f"merging rule {name!r} has no {part}; see undrift.merging.merger.Merger for what "
                "a rule must have"
            )
    return found
