"""Every figure of docs/ can be made again, and those that need no runs are what the tables give."""

from pathlib import Path

import pytest

from paper.figures import FIGURES, WITH_RUNS, main

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[figures]'")

ROOT = Path(__file__).parents[2]


def test_every_figure_of_the_docs_has_its_maker() -> None:
    there = {path.stem for path in (ROOT / "docs" / "figures").glob("*.svg")}
    assert there == {*FIGURES, *WITH_RUNS}


@pytest.mark.slow  # as long as `make figures`
def test_the_figures_are_what_the_tables_give(tmp_path) -> None:
    assert main([str(ROOT / "results"), str(tmp_path)]) == 0
    assert {path.stem for path in tmp_path.glob("*.svg")} == set(FIGURES)
    for path in tmp_path.glob("*.svg"):
        kept = (ROOT / "docs" / "figures" / path.name).read_text()
        # the shapes, not the bytes: digits of coordinates may differ from machine to machine
        for shape in ("<path", "<use", "<g"):
            same = path.read_text().count(shape) == kept.count(shape)
            assert same, f"{path.name} is not what results/ gives; run make figures"
