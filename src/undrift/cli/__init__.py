"""The command line: one command per module, imports only when a command runs."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """What the shell's `undrift` calls."""
    import sys

    from undrift.cli.app import start

    sys.exit(start(sys.argv[1:]))
