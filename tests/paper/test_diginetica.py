"""The study of DIGINETICA, whole, on a small file of the same form."""

from __future__ import annotations

import json

import numpy as np
import pytest

from paper import diginetica


def test_the_study_runs_from_file_to_table(tmp_path, monkeypatch, capsys) -> None:
    draw = np.random.default_rng(0)
    first = draw.integers(0, 12, 240)  # each session walks on from its first item
    item = (np.repeat(first, 4) + np.tile(np.arange(4), 240)) % 15
    session, period = np.repeat(draw.permutation(240), 4), np.repeat(np.arange(240) // 80, 4)
    np.savez(tmp_path / "clicks.npz", period=period, session=session, item=item)
    monkeypatch.setattr(diginetica, "GRID", {"ridge": (1.0, 80.0), "decay": (0.7, 1.0)})
    monkeypatch.setattr(diginetica, "START", {"ridge": 80.0, "decay": 1.0})
    told = ["--data", str(tmp_path / "clicks.npz"), "--out", str(tmp_path / "found.json")]
    assert diginetica.main(told) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    assert [row["sessions"] for row in found["cycles"]] == [80, 160]
    assert found["mean"]["recall"] == 100.0  # fifteen items, and the best twenty count
    assert 60 < found["mean"]["mrr"] < 100  # the walk is learned; guessing has 22
    assert {row["least_sessions"] for row in found["thresholds"]} == {*diginetica.LEAST}
    assert found["thresholds"][0]["mrr"] == pytest.approx(found["cycles"][-1]["mrr"])
    assert "ADER: recall@20 50.21" in capsys.readouterr().out
