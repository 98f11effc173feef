"""What is said before a step, against a run of 10 million nodes that was measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from undrift.propagation.learner import Propagation
from undrift.propagation.plan import First
from undrift.scale.estimate import MemoryEstimate
from undrift.scale.graph_folder import GraphFolder, GraphManifest
from undrift.scale.plan import BlockPlan

REPORT = Path(__file__).parents[2] / "benchmarks" / "measured" / "ten-million.json"


@pytest.mark.parametrize("step", ["observe", "predict"])
def test_it_is_near_what_was_measured(step: str) -> None:
    report = json.loads(REPORT.read_text(encoding="utf-8"))
    told, rows = report["import"], report["observe"]["rows"]
    manifest = GraphManifest.model_construct(
        nodes=report["nodes"],
        edges=told["edges"],
        features=64,
        memory=report["memory"],
        width=told["width"],
        rows=244_140,
        content="",
    )
    learner = Propagation()
    first = First(rows, int(told["bytes"]), dense=True)
    fixed = learner.plan_by(64, torch.eye(20, dtype=torch.float64) * 700 + 15, first)
    banks = fixed.variants if step == "observe" else fixed.variants[:1]
    folder = object.__new__(GraphFolder)
    folder.manifest, folder.path = manifest, Path("nowhere")
    maps = {bank: fixed.feature_map(bank) for bank in banks}
    plan = BlockPlan.of(folder, maps, range(20) if step == "observe" else None)
    vars(plan)["folder"] = folder
    if step == "observe":
        vars(plan)["nodes"] = torch.arange(rows).numpy()
    estimate = MemoryEstimate.of(plan, 1)
    measured = sum(phase["busy"] for phase in report[step]["phases"].values())
    assert 0.7 < estimate.seconds / measured < 1.5
    assert 0.7 < estimate.memory / report[step]["rss"] < 1.5
    shared = MemoryEstimate.of(plan, 4)
    assert estimate.seconds / 4 < shared.seconds < estimate.seconds
