"""The notebooks run from nothing, print what the page speaks of, and name no path of a machine."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"
_CELL = re.compile(
    r"^```\{code-cell\} ipython3\n(?::[^\n]*\n)*(.*?)^```$", re.DOTALL | re.MULTILINE
)
SAYS = {
    "engineer": ("keeps examples: False", "'warranty', 'fraud']", "was observed before"),
    "researcher": ("propagation  A_avg", "nearest_mean:NearestMean     0", "report/index.html"),
}


def run(page: Path, folder: Path) -> list[str]:
    """What each cell printed."""
    cells = [nbformat.v4.new_code_cell(code) for code in _CELL.findall(page.read_text("utf-8"))]
    notebook = nbformat.v4.new_notebook(cells=cells)
    where = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where).execute()
    return ["".join(out.get("text", "") for out in cell.outputs) for cell in notebook.cells]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("name", SAYS)
def test_a_notebook_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = str(Path(sys.executable).parent)  # the `undrift` that belongs to this Python
    monkeypatch.setenv("PATH", os.pathsep.join([beside, os.environ["PATH"]]))
    printed = "\n".join(run(NOTEBOOKS / f"{name}.md", tmp_path))
    for words in SAYS[name]:
        assert words in printed, printed
    for path in (str(tmp_path), str(Path.home()), beside):
        assert path not in printed


def test_every_notebook_is_run_here() -> None:
    assert {page.stem for page in NOTEBOOKS.glob("*.md")} == set(SAYS)
