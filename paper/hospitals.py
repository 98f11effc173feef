"""Three hospitals and gradient boosting: the numbers of docs/disease.md that no test prints.

`python -m paper.hospitals` writes `results/hospitals.csv`, a line per table and seed, in per cent
of the test rows. It needs `soybean.arff` and `dermatology.data` in the folder of `UNDRIFT_DATA`,
and scikit-learn, which undrift does not: `pip install scikit-learn`.
"""

import csv
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from undrift import Graph, Propagation
from undrift.datasets.columns import column_names, read_pieces
from undrift.datasets.folder import find_file
from undrift.errors import InputError
from undrift.graphs import Encoding
from undrift.storage.files import write_atomically

RESULTS = Path(__file__).parents[1] / "results" / "hospitals.csv"
COLUMNS = (
    "one hospital",
    "merged",
    "without neighbours",
    "GradientBoostingClassifier",
    "HistGradientBoostingClassifier(min_samples_leaf=5)",
)
FILES = {
    "Soybean": ("soybean.arff", "class"),
    "Dermatology": ("dermatology.data", "Classification"),
}
SEEDS = range(5)
Rows = list[int]


class Patients(NamedTuple):
    """The cells of a table without its diseases, and the disease of each row by its number."""

    cells: dict[str, Any]
    diseases: np.ndarray[Any, Any]

    def some(self, rows: Iterable[int]) -> dict[str, list[Any]]:
        """The cells of some rows."""
        return {name: [column[i] for i in rows] for name, column in self.cells.items()}

    def graph(self, rows: Rows, encoding: Encoding | None, neighbours: int) -> Graph:
        """The graph of some rows."""
        columns = self.some(rows) | {"disease": self.diseases[rows].tolist()}
        how: Any = {"target": "disease", "encoding": encoding, "neighbours": neighbours}
        return Graph.from_table(columns, **how)


def read(file: str, target: str) -> Patients:
    """A table of patients or plants; diseases are numbered in the order of their names."""
    path = find_file(file)
    (piece,) = read_pieces(path, column_names(path))
    cells = dict(piece.columns)
    return Patients(cells, np.unique(np.array(cells.pop(target)), return_inverse=True)[1])


def hospitals(diseases: np.ndarray[Any, Any], seed: int) -> tuple[list[Rows], Rows]:
    """As on the page: every other disease in one hospital only; three rows of ten for tests."""
    rng = np.random.default_rng(seed)
    test: Rows = []
    wards: list[Rows] = [[], [], []]
    for place, disease in enumerate(rng.permutation(np.unique(diseases))):
        rows = rng.permutation(np.flatnonzero(diseases == disease)).tolist()
        cut = len(rows) * 3 // 10
        test += rows[:cut]
        homes = [place % 3] if place % 2 else [place % 3, (place + 1) % 3]
        for k, row in enumerate(rows[cut:]):
            wards[homes[k % len(homes)]].append(row)
    return wards, test


def merged(data: Patients, seed: int, neighbours: int = 10) -> tuple[float, float]:
    """Of all test rows the share that is named right: by a hospital alone, and by the merged."""
    wards, test = hospitals(data.diseases, seed)
    encoding = data.graph(wards[0], None, neighbours).encoding
    tables = [data.graph(rows, encoding, neighbours) for rows in wards]
    empty = Propagation().observe(tables[0]).sibling()
    sites = [empty.sibling().observe(table) for table in tables]
    together, exam = empty.sibling(), data.graph(test, encoding, 0)
    for site in sites:
        together.merge(site)
    return float(np.mean([site.score(exam) for site in sites])), together.score(exam)


def boosted(data: Patients, seed: int) -> tuple[float, float]:
    """The same by gradient boosting on all training rows in one place, without and with bins."""
    try:
        ensemble = import_module("sklearn.ensemble")
    except ImportError as error:
        raise InputError("boosting needs scikit-learn; pip install scikit-learn") from error
    wards, test = hospitals(data.diseases, seed)
    train = [row for rows in wards for row in rows]
    encoding = Encoding.of(data.some(train))
    x, exam = (encoding.matrix(data.some(rows)) for rows in (train, test))
    models = (
        ensemble.GradientBoostingClassifier(random_state=seed),
        ensemble.HistGradientBoostingClassifier(min_samples_leaf=5, random_state=seed),
    )
    y, right = (data.diseases[rows] for rows in (train, test))
    one, two = (float(model.fit(x, y).score(exam, right)) for model in models)
    return one, two


def main() -> None:
    """Write all numbers, a line per table and seed."""
    lines = [["table", "seed", *COLUMNS]]
    for name, (file, target) in FILES.items():
        data = read(file, target)
        for seed in SEEDS:
            without = merged(data, seed, neighbours=0)[1]
            found = *merged(data, seed), without, *boosted(data, seed)
            lines.append([name, str(seed), *(f"{100 * share:.3f}" for share in found)])
    text = "".join(",".join(cells) + "\n" for cells in lines)
    write_atomically(RESULTS, text.encode())


def means(path: Path = RESULTS) -> dict[tuple[str, str], str]:
    """By table and column the mean over seeds, as the page has it."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        (name, column): f"{fmean(float(row[column]) for row in rows if row['table'] == name):.1f}"
        for name in FILES
        for column in COLUMNS
    }


if __name__ == "__main__":
    main()
