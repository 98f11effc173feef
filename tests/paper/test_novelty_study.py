"""The study of novelty: a row per task, and the table of a page."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from paper import anomalies, gnnsafe, novelty_study
from paper.novelty_study import BEGIN, END, again, beside, few_edges, main, study
from undrift import Propagation, TaskStream
from undrift.experiments.run import PreparedRun
from undrift.testing import tiny_stream


def test_rows_go_into_the_table_of_a_page(tmp_path) -> None:
    rows = list(study(tiny_stream()))
    beside(tiny_stream(), 0, rows)
    assert [row["task"] for row in rows] == [0, 1]
    assert all(0 <= row["auroc"]["gcn energy over edges"] <= 100 for row in rows)
    for row, new in zip(rows, study(tiny_stream(), rivals=False), strict=True):
        assert again([row | {"alarms": -1.0}], [new]) == [row | {"cost": new["cost"]}]
    for seed, auroc in enumerate((80.0, 90.0)):
        made = [{"auroc": {"own": auroc}, "alarms": 4.0, "detected": 50.0, "expected": None}]
        (tmp_path / f"cs-cl-{seed}.json").write_text(json.dumps(made))
    for name, auroc in (("photo-cl", 97.44), ("cs-cl", 96.0)):
        each = dict.fromkeys(("own", "gcn softmax", "gcn energy", "gcn energy over edges"), auroc)
        (tmp_path / f"left-out-{name}-0.json").write_text(json.dumps({"auroc": each}))
    few = {"before": {"all": 1, "none": 3, "two": 5}, "now": {"all": 2, "none": 2, "two": 2}}
    (tmp_path / "few-edges-photo-cl-0.json").write_text(json.dumps(few))
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{BEGIN}\nstale\n{END}\nafter\n")
    main(["--page", str(page), "--out", str(tmp_path)])
    text = page.read_text()
    assert "| `cs-cl` | 2 | 85.0 |  |  |  |  |" in text
    assert "| `cs-cl` | 2 |  | 4.0 | 4.0 to 4.0 |  | 50.0 |  |  |" in text
    assert "| `photo-cl` | 1 | 1.0 | 2.0 | 3.0 | 2.0 | 5.0 | 2.0 |" in text
    assert "| novelty, from sums | 97.44 | 96.00 |" in text
    assert "stale" not in text
    assert text.endswith("after\n")


@pytest.mark.parametrize(("name", "made"), [("novelty", novelty_study), ("anomalies", anomalies)])
def test_a_page_has_the_tables_of_its_results(name: str, made: Any) -> None:
    root = Path(__file__).parents[2]
    text = (root / f"docs/{name}.md").read_text(encoding="utf-8")
    assert text == made.page_with(text, root / f"results/{name}")


def test_few_edges_are_measured_before_and_now() -> None:
    found = few_edges(tiny_stream(), pairs=2)
    assert [(when, list(each)) for when, each in found.items()] == [
        (when, ["all", "none", "two"]) for when in ("before", "now")
    ]
    assert found["now"]["none"] <= found["before"]["none"]


def test_anomalies_are_ranked_after_each_row_of_the_table(monkeypatch) -> None:
    rows = {"alone": ("classes", 0, ("propagation",)), "both": ("classes", 1, ("propagation",))}
    monkeypatch.setattr(anomalies, "ROWS", rows)
    stream = TaskStream.from_graph(tiny_stream().graph, base=1, increment=5, normal=0)
    monkeypatch.setattr(anomalies, "prepare", lambda spec: PreparedRun(spec, Propagation(), stream))
    found = anomalies.study(0, "synthetic")
    assert found["both"]["propagation"]["anomaly_auroc"] > 90
    assert list(found["alone"]["propagation"]) == ["anomaly_auroc", "anomaly_ap"]


def test_gnnsafe_is_a_gcn_whose_energy_goes_twice_over_edges() -> None:
    stream = tiny_stream()
    graph, labels = stream.graph, stream.graph.labelled()
    train = (stream.train & (labels < 4)).nonzero().flatten()
    gcn = gnnsafe.trained(graph, labels, train, train, outputs=4, seed=0)
    found = gnnsafe.scores(gcn, graph)
    rows, edges = (each.to_dense() for each in gnnsafe.inputs(graph))
    loops = graph.adjacency.to_dense() + torch.eye(graph.num_nodes)
    root = loops.sum(dim=1).rsqrt()
    torch.testing.assert_close(edges, (root * loops * root.unsqueeze(1)).float())
    filled = graph.features.to_dense().sum(dim=1) > 0
    torch.testing.assert_close(rows.sum(dim=1)[filled], torch.ones(int(filled.sum())))
    with torch.no_grad():
        logits = gcn(rows, gnnsafe.inputs(graph)[1]).double()
    assert float((logits.argmax(dim=1)[train] == labels[train]).double().mean()) > 0.9
    energy = -logits.logsumexp(dim=1)
    torch.testing.assert_close(found["gcn energy"], energy)
    degrees = graph.adjacency.to_dense().sum(dim=1, keepdim=True)
    mean = graph.adjacency.to_dense().double() / degrees.clamp(min=1)
    for _ in range(2):
        energy = torch.where(degrees[:, 0] > 0, (energy + mean @ energy) / 2, energy)
    torch.testing.assert_close(found["gcn energy over edges"], energy)
