"""The notebooks, as `make docs` has run them, print what the page speaks of, and no path."""

import re
import sys
from pathlib import Path

import pytest

import undrift

nbformat = pytest.importorskip("nbformat")

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "docs" / "notebooks"
_CELL = re.compile(r"^```\{code-cell\} ipython3\n(?::[^\n]*\n)*(.*?)^```$", re.S | re.M)
SAYS = {
    "engineer": ("keeps examples: False", "'warranty', 'fraud']", "11 features per node, but 12"),
    "researcher": ("propagation  A_avg", "nearest_mean:NearestMean     0", "report/index.html"),
}


@pytest.mark.parametrize("name", SAYS)
def test_a_notebook_runs(name: str) -> None:
    page = NOTEBOOKS / f"{name}.md"
    made = ROOT / "build" / "jupyter_execute" / "notebooks" / f"{name}.ipynb"
    inputs = [page, ROOT / "docs" / "conf.py", *Path(undrift.__file__).parent.rglob("*.py")]
    if not made.exists() or made.stat().st_mtime < max(path.stat().st_mtime for path in inputs):
        pytest.skip("the code is newer than the site, whose build runs this notebook: make docs")
    cells = [cell for cell in nbformat.read(made, as_version=4).cells if cell.cell_type == "code"]
    assert [c.source.strip() for c in cells] == [*map(str.strip, _CELL.findall(page.read_text()))]
    printed = "\n".join(out.get("text", "") for cell in cells for out in cell.outputs)
    for words in SAYS[name]:
        assert words in printed, printed
    for path in (str(Path.home()), str(Path(sys.executable).parent)):
        assert path not in printed


def test_every_notebook_is_run_here() -> None:
    assert {page.stem for page in NOTEBOOKS.glob("*.md")} == set(SAYS)
