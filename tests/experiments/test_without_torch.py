"""Tables of results are quick to make: what they need does not import torch."""

from __future__ import annotations

import subprocess
import sys


def test_what_reads_results_and_plans_does_not_import_torch() -> None:
    parts = ("matrix", "metrics")
    names = [f"undrift.evaluation.{part}" for part in parts]
    parts = ("bench", "estimate", "plans", "standing", "store", "tracking")
    names += ["extras.table", *(f"undrift.experiments.{part}" for part in parts)]
    code = f"import sys, {', '.join(names)}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
