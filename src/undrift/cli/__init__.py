"""The command line: one command per module, imports only when a command runs."""

from undrift.typing import public_names

__all__ = ["main"]
__dir__ = public_names(__name__)


def main() -> None:
    """What the shell's `undrift` calls."""
    import os
    import sys

    # OpenMP threads that spin while they wait slow torch on a busy machine; read with torch
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")

    from undrift.cli.app import start

    sys.exit(start(sys.argv[1:]))
