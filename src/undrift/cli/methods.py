"""`undrift methods`: what there is to learn with."""

from __future__ import annotations


def methods() -> None:
    """List the methods: their family, what they can do, what they keep, their paper.

    returns: known classes may come back. forgets: a batch can be forgotten or revised. merges: two
    learners can become one. if set: by a setting that the method names when it refuses.
    """
    from undrift.cli.console import output
    from undrift.learners.registry import METHODS
    from undrift.reporting.terminal import methods_table

    output().print(methods_table(METHODS.values()))
