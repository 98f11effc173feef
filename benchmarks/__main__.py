"""Run the benchmarks and print one table; exit 1 if a promise is broken."""

import os
import sys
from importlib import import_module

import torch
from rich.console import Console
from rich.table import Table

ALL = (
    "epoch",
    "ham",
    "gram",
    "memory",
    "tasks",
    "reading",
    "grid",
    "propagation",
    "neighbourhood",
    "forgetting",
    "novelty",
    "scale",
    "cuda",
)


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all."""
    console = Console(width=max(120, Console().width))
    load = os.getloadavg()[0]
    console.print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, load {load:.1f}")
    table = Table("what", "ratio", "budget", "measured", show_lines=True)
    broken = 0
    for name in names or ALL:
        with console.status(f"{name} ..."):
            for line in import_module(f"benchmarks.bench_{name}").run():
                sign = ">=" if line.at_least else "<="
                budget = "-" if line.budget is None else f"{sign} {_shown(line.budget)}"
                style = "" if line.holds else "bold red"
                table.add_row(line.name, _shown(line.value), budget, line.detail, style=style)
                broken += not line.holds
    console.print(table)
    return 1 if broken else 0


def _shown(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
