"""Many encoders, one result: each merging rule in its own module, by name behind one door."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
        "average": "undrift.merging.average:Average",
        "fisher": "undrift.merging.fisher:Fisher",
        "magmax": "undrift.merging.magmax:MagMax",
        "ties": "undrift.merging.ties:Ties",
        "regmean": "undrift.merging.regmean:RegMean",
        "ham": "undrift.merging.ham:Ham",
    },
)
"""The merging rules by name; entry points of other packages in `undrift.merging` come after.

>>> list(RULES.own)
['average', 'fisher', 'magmax', 'ties', 'regmean', 'ham']
"""


def merging_rule(name: str) -> type[Merger]:
    """The class behind a rule's name or `module:Class`; an unknown name prints the list.

    >>> merging_rule("fisher").display
    'Fisher merging'
    """
    from undrift.errors import InputError

    found: type[Merger] = RULES.load(name)
    wanted = ("name", "display", "empty", "observe", "merge")
    missing = [part for part in wanted if not hasattr(found, part)]
    if missing:
        raise InputError(
            f"merging rule {name!r} has no {missing[0]}; see undrift.merging.merger.Merger for "
            "what a rule must have"
        )
    return found
