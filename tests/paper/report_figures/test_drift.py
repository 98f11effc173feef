"""Feature drift: the file of embeddings, and the picture of it."""

from typing import Any

import numpy as np
import pytest

from paper.report_figures.drift import DrawnNodes, drift_figure, load_embedding
from undrift.errors import InputError

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[figures]'")

METHODS = ("efc", "dpcr", "adr")


def panels(fakes: Any, classes: int = 5) -> list[Any]:
    return [
        (run, DrawnNodes(**fakes.points(run.drift[-1], classes)))
        for stream in ("cs-cl", "corafull-cl")
        for run in (fakes.result(stream, method) for method in METHODS)
    ]


def test_streams_are_rows_and_methods_columns_with_their_drift(fakes) -> None:
    figure = drift_figure(panels(fakes)[:-1], METHODS)
    titles = [axes.get_title() for axes in figure.axes]
    drifted = ["EFC: drift 132 %", "DPCR: drift 73 %"]
    assert titles == [*drifted, "ADR: drift 0 %", *drifted, "ADR"]
    rows = [axes.get_ylabel() for axes in figure.axes]
    assert rows == ["CS-CL", "", "", "CoraFull-CL", "", ""]
    assert [text.get_text() for text in figure.axes[-1].texts] == ["not run"]


def test_means_of_classes_are_joined_where_they_differ(fakes, in_print) -> None:
    few, many = (drift_figure(panels(fakes, classes), METHODS) for classes in (5, 30))
    ends = few.axes[0].lines[1].get_xydata()
    points = fakes.points(1.32)
    mine = points["labels"] == 0
    assert ends == pytest.approx(np.stack([points[k][mine].mean(0) for k in ("first", "last")]))
    assert not many.axes[0].lines
    assert [len(figure.legends[0].get_texts()) for figure in (few, many)] == [3, 2]
    still = DrawnNodes(np.ones((2, 2)), np.ones((2, 2)), np.array([0, 1]))
    for figure in (few, many, drift_figure([(fakes.result(), still)], METHODS)):
        in_print.check(figure)


@pytest.mark.parametrize(
    ("drift", "words"),
    [([0.0, 0.05], "drift 5.0 %"), ([1e-6], "drift < 0.1 %"), ([None], "drift undefined")],
)
def test_the_title_has_the_last_drift(drift: list[Any], words: str, fakes) -> None:
    run = fakes.result().model_copy(update={"drift": drift})
    figure = drift_figure([(run, DrawnNodes(**fakes.points(0.1)))], METHODS)
    assert figure.axes[0].get_title() == f"ADR: {words}"


@pytest.mark.parametrize(
    "change",
    [
        {"labels": np.zeros(3, dtype=int)},
        {"first": np.zeros((600, 3))},
        {"last": np.full((600, 2), np.nan)},
        {"first": np.zeros((0, 2)), "last": np.zeros((0, 2)), "labels": np.zeros(0, dtype=int)},
    ],
)
def test_what_is_no_embedding_is_named(change: dict[str, Any], fakes, tmp_path) -> None:
    np.savez(tmp_path / "embedding.npz", **fakes.points(0.5) | change)
    with pytest.raises(InputError, match=r"embedding.npz is damaged or holds no embedding"):
        load_embedding(tmp_path / "embedding.npz")


def test_a_damaged_file_is_named(fakes, tmp_path) -> None:
    path = tmp_path / "embedding.npz"
    with pytest.raises(InputError, match=r"there is no .*embedding.npz; run the method again"):
        load_embedding(path)
    np.savez_compressed(path, **fakes.points(0.5))
    good = path.read_bytes()
    for bad in (b"", good[:100], good[:-1], good[:2000] + bytes(50) + good[2050:]):
        path.write_bytes(bad)
        with pytest.raises(InputError, match="damaged"):
            load_embedding(path)
