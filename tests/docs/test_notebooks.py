"""The notebooks run from nothing, print what the page speaks of, and name no path of a machine.

What `make docs` has run since the last change of the code is read, not run again.
"""

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import undrift

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "docs" / "notebooks"
_CELL = re.compile(r"^```\{code-cell\} ipython3\n(?::[^\n]*\n)*(.*?)^```$", re.S | re.M)
SAYS = {
    "engineer": ("keeps examples: False", "'warranty', 'fraud']", "11 features per node, but 12"),
    "researcher": ("propagation  A_avg", "nearest_mean:NearestMean     0", "report/index.html"),
}


def run(page: Path, folder: Path) -> list[str]:
    """What each cell printed."""
    codes = _CELL.findall(page.read_text("utf-8"))
    notebook = built(page)
    if notebook is None:
        notebook = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, codes)))
        how = {"kernel_name": "python3", "resources": {"metadata": {"path": str(folder)}}}
        nbclient.NotebookClient(notebook, timeout=300, **how).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.source.strip() for cell in cells] == [code.strip() for code in codes]
    return ["".join(out.get("text", "") for out in cell.outputs) for cell in cells]


def built(page: Path) -> Any:
    """The notebook as the build of the site ran it; None if the page or the code is newer."""
    made = ROOT / "build" / "jupyter_execute" / "notebooks" / f"{page.stem}.ipynb"
    inputs = [page, ROOT / "docs" / "conf.py", *Path(undrift.__file__).parent.rglob("*.py")]
    if not made.exists() or made.stat().st_mtime < max(path.stat().st_mtime for path in inputs):
        return None
    return nbformat.read(made, as_version=4)


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
