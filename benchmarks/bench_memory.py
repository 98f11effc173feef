"""Peak memory of a whole ADR run on CS-CL, in a process of its own."""

import json
import subprocess
import sys

from benchmarks.measure import Ratio

LIMIT_MB = 3000
_CODE = """
import json
from benchmarks.stream import cs_stream
from undrift import Adr, evaluate
stream = cs_stream()
result = evaluate(Adr(), stream)
print(json.dumps([stream.name, result.peak_memory_mb, result.state_bytes[-1] / 1e6]))
"""


def run() -> list[Ratio]:
    """The lines of this benchmark."""
    done = subprocess.run([sys.executable, "-c", _CODE], capture_output=True, text=True, check=True)
    name, peak, state = json.loads(done.stdout.splitlines()[-1])
    return [
        Ratio(
            f"peak memory of an ADR run / {LIMIT_MB} MB",
            peak / LIMIT_MB,
            f"{peak:.0f} MB, of which {state:.0f} MB is what ADR keeps; {name}",
            budget=1.0,
        )
    ]
