from typing import Any

import pytest

from paper.leakage.figure import leakage_figure
from paper.leakage.measure import Leakage, Lift, TaskIdAccuracy
from paper.leakage.study import LeakageStudy, load_studies, load_study, save_study
from undrift.errors import InputError
from undrift.evaluation.matrix import AccuracyMatrix
from undrift.reporting.figures import sheet as module

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[figures]'")


def named(last: float) -> TaskIdAccuracy:
    return TaskIdAccuracy((100.0, last), AccuracyMatrix([[100.0], [100.0, 2 * last - 100]]))


def study(stream: str = "cs-cl", method: str = "adr", seed: int = 0, **more: Any) -> LeakageStudy:
    accuracy = {
        "local": {"graph": named(100.0), "node": named(90.0 + seed)},
        "global": {"graph": named(50.0), "node": named(80.0 + seed)},
    }
    data: dict[str, Any] = {
        "stream": stream,
        "method": method,
        "seed": seed,
        "params": {"epochs": 3, "hidden": [4, 4]},
        "stand_in": False,
        "leakage": Leakage(2, "symmetric", accuracy, (100.0, 55.0)),  # type: ignore[arg-type]
        "lift": {
            "local": Lift(plain=60.0 + seed, graph=88.0, node=80.0, oracle=90.0),
            "global": Lift(plain=55.0, graph=40.0, node=70.0, oracle=85.0),
        },
        "provenance": {"file": "x.npz"},
        "versions": {"torch": "2"},
    }
    return LeakageStudy(**(data | more))


def test_studies_come_back_as_they_were_saved(tmp_path) -> None:
    path = save_study(study(seed=3), tmp_path / "runs")
    assert path == tmp_path / "runs" / "leakage-cs-cl-adr-3.json"
    other = save_study(study("my/graph of 2024"), tmp_path / "runs")
    assert other.name == "leakage-my_graph_of_2024-adr-0.json"
    (tmp_path / "runs" / "result.json").write_text("{}")
    assert load_studies(tmp_path / "runs") == [study(seed=3), study("my/graph of 2024")]


def test_a_damaged_study_is_named(tmp_path) -> None:
    path = save_study(study(), tmp_path)
    text = path.read_text()
    for damaged in (text[:-40], text.replace("60.0", "160.0", 1), '{"stream": "cs-cl"}', ""):
        path.write_text(damaged)
        with pytest.raises(InputError, match=r"leakage-cs-cl-adr-0.json is not a leakage study"):
            load_study(path)
    with pytest.raises(InputError, match=r"cannot read .*check the path"):
        load_study(tmp_path / "none.json")


def test_bars_are_the_mean_over_seeds_and_chance_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(module, "write_figure", lambda figure, path: drawn.append(figure))
    leakage_figure([study(seed=0), study(seed=2), study("photo-cl")], "x.png")
    bars = drawn[0].axes[0]
    heights = [bar.get_height() for bar in bars.patches]
    assert heights == pytest.approx([100, 50, 91, 81, 100, 50, 90, 80])
    assert [line.get_ydata()[0] for line in bars.lines] == [55.0, 55.0]
    assert [text.get_text() for text in bars.texts][:4] == ["100", "50", "91", "81"]
    ticks = [label.get_text() for label in bars.get_xticklabels()]
    assert ticks == ["cs-cl", "photo-cl"]


def test_what_cannot_be_drawn_is_named(tmp_path) -> None:
    with pytest.raises(InputError, match="at least one study"):
        leakage_figure([], tmp_path / "x.png")
    other = study(leakage=Leakage(3, "row", study().leakage.accuracy, (100.0, 55.0)))
    with pytest.raises(InputError, match=r"one attack, not 2 \(2 symmetric, 3 row hops\)"):
        leakage_figure([study(), other], tmp_path / "x.png")
    with pytest.raises(InputError, match=r"unknown kind of figure '.bmp'"):
        leakage_figure([study()], tmp_path / "x.bmp")
    assert list(tmp_path.iterdir()) == []
