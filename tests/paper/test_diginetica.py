"""The study of DIGINETICA on a generated shop in the layout of its file, and its page."""

import json

import numpy as np

from paper import diginetica
from paper.diginetica import BASELINES, PUBLISHED, main
from paper.diginetica_page import BEGIN, END
from undrift.recommend.stream import generate


def test_the_command_writes_all_that_the_page_shows(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(diginetica, "GRID", {"ridge": (1.0, 80.0), "decay": (0.7, 1.0)})
    monkeypatch.setattr(diginetica, "START", {"ridge": 80.0, "decay": 1.0})
    shop = generate(periods=3, sessions=60)
    order = np.argsort(shop.time, kind="stable")
    session, item = shop.sessions.astype(int)[shop.session], shop.items.astype(int)[shop.item]
    columns = {"session": session[order], "item": item[order]}
    np.savez(tmp_path / "clicks.npz", **columns, period=shop.periods[shop.session][order])
    out = tmp_path / "new" / "found.json"
    assert main(["--data", str(tmp_path / "clicks.npz"), "--out", str(out)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"wrote {out}")
    found = json.loads(out.read_text())
    assert list(found["methods"]) == ["next-item", *BASELINES]
    cycles = found["methods"]["next-item"]["cycles"]
    assert [row["sessions"] for row in cycles] == [60, 120]
    mean = np.mean([row["recall_20"] for row in cycles])
    np.testing.assert_allclose(found["methods"]["next-item"]["mean"]["recall_20"], mean)
    assert found["thresholds"][0]["recall_20"] == cycles[-1]["recall_20"]
    assert found["thresholds"][0]["bytes"] > found["thresholds"][-1]["bytes"]
    assert found["settings"] in [{k: t[k] for k in found["settings"]} for t in found["tried"]]

    monkeypatch.setattr("resource.setrlimit", lambda *limit: None)  # it would stay for all tests
    assert main(["--data", str(tmp_path / "clicks.npz"), "--out", str(out), "--costs"]) == 0
    cpu = json.loads(out.read_text())["cpu"]
    assert [row["sessions"] for row in cpu["periods"]] == [60, 60]
    assert cpu["rare"]["items"] == len(set(shop.items))
    usual, longest = cpu["forget"]
    lengths = np.diff(shop.starts)[shop.periods == 2]
    assert longest["clicks"] == lengths.max() > usual["clicks"]

    page = tmp_path / "page.md"
    page.write_text("# Page\n")
    for _ in range(2):  # the second time in the place of the first
        assert main(["--out", str(out), "--page", str(page)]) == 0
    text = page.read_text()
    assert text.count("## Results") == text.count(BEGIN) == text.count(END) == 1
    assert all(f"| {title} (published) | {r:.2f} |" in text for title, (r, _) in PUBLISHED.items())
    assert f"Of {cpu['rare']['items']} items {cpu['rare']['few_items']} have fewer" in text
    assert "The defaults of `NextItem` are others: `decay`" in text or "are the same" in text
    assert (tmp_path / "figures" / "recommendation.svg").is_file()
