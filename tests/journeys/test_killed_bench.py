"""A researcher loses power again and again, and ends with the table of an undisturbed bench."""

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.journeys.shell import MAIN
from undrift.experiments.store import load_manifest, load_records, manifest_path
from undrift.reporting.tables.compare import compare
from undrift.reporting.tables.formats import markdown_table

KILLS = int(os.environ.get("UNDRIFT_KILLS", "2"))

PLAN = """\
name = "power-cut"
streams = ["synthetic"]
methods = ["bare", "acil", "adr"]
seeds = [0, 1]
search = true

[params]
bare = { epochs = 20, hidden = [16, 16] }
acil = { epochs = 20, hidden = [16, 16] }
adr = { epochs = 20, hidden = [16, 16] }

[grid]
acil = { gamma = [0.1, 1.0] }
adr = { gamma = [0.1, 1.0] }
"""


def command(out: Path) -> list[str]:
    plan = str(out.parent / "plan.toml")
    return [sys.executable, "-c", MAIN, "bench", plan, "--workers", "1", "--out", str(out)]


def table(out: Path) -> tuple[str, object]:
    """The printed table, and every number behind it, without what it cost."""
    records = load_records(out)
    assert records.damaged == []
    made = compare(records.results, load_manifest(manifest_path("power-cut", out)))
    numbers = {
        name: (result.matrix, result.metrics, result.validation, result.drift)
        for name, result in records.results.items()
    }
    chosen = {search.spec.id: (search.chosen, search.trials) for search in records.searches}
    assert len(numbers) == 6
    return markdown_table(replace(made, costs={})), (numbers, chosen)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="kills process groups as Unix does")
def test_the_table_after_power_cuts_is_that_of_an_undisturbed_bench(tmp_path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    calm, rough = tmp_path / "calm", tmp_path / "rough"
    began = time.monotonic()
    done = subprocess.run(command(calm), capture_output=True, text=True, check=True)
    length = time.monotonic() - began
    assert "0 failed" in done.stdout
    rng = random.Random(7)
    for k in range(KILLS):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        bench = subprocess.Popen(command(rough), start_new_session=True, **quiet)
        time.sleep(rng.uniform(0.15, 0.6) * length)
        if k % 2:  # the power goes: everything at once
            os.killpg(bench.pid, signal.SIGKILL)
        else:  # the bench alone: its workers must notice
            bench.kill()
        bench.wait()
    last = subprocess.run(command(rough), capture_output=True, text=True, check=True)
    # the second where every job was done before the last power cut
    assert "0 failed" in last.stdout or "nothing to do" in last.stdout
    assert table(rough) == table(calm)
    assert not list(rough.rglob("*.safetensors"))
    assert not list(rough.rglob("*.part"))


@pytest.mark.slow  # two processes do one plan in tests/harness/crowds.py too
def test_two_benches_share_a_folder(tmp_path) -> None:
    """Every run is made by one of them, and both end well."""
    (tmp_path / "plan.toml").write_text(
        PLAN.replace("[0, 1]", "[0]").replace("epochs = 20", "epochs = 2")
    )
    out = tmp_path / "runs"
    both = [subprocess.Popen(command(out), stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [bench.wait(timeout=240) for bench in both] == [0, 0]
    records = load_records(out)
    assert len(records.results) == 3
    assert all(cell.run in records.results for cell in records.manifests[0].cells)
