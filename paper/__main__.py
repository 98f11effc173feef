"""`python -m paper NAME`: a page, a table, figures or runs of the docs; see each module."""

import sys
from collections.abc import Sequence

from paper import (
    attack_page,
    attacks,
    bound,
    compact,
    diginetica,
    figures,
    isolation,
    page,
    private_utility,
    returning,
)

_COMMANDS = {
    "compact": compact.main,
    "page": page.main,
    "returning": returning.main,
    "diginetica": diginetica.main,
    "bound": bound.main,
    "isolation": isolation.main,
    "private": private_utility.main,
    "figures": figures.main,
    "attacks": attacks.main,
    "attacks-page": attack_page.main,
}


def main(arguments: Sequence[str]) -> int:
    """Make the tables of a results folder, or the page or the figures of those tables."""
    if not arguments or arguments[0] not in _COMMANDS:
        sys.stderr.write(f"usage: python -m paper {' | '.join(_COMMANDS)} ...\n")
        return 2
    return _COMMANDS[arguments[0]](list(arguments[1:]))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
