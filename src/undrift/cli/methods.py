"""`undrift methods`: what there is to learn with."""

from __future__ import annotations


def methods() -> None:
    """List the methods: their family, whether they keep examples, what they keep, their paper."""
    from undrift.cli.console import output
    from undrift.learners.registry import METHODS
    from undrift.reporting.terminal import methods_table

    output().print(methods_table(METHODS.values()))
