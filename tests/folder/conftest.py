"""Months of a fraud desk as tables: text labels, columns by name, edges to accounts long gone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from undrift import LearnerFolder

Files = tuple[Path, Path]
KINDS = ["fine", "mule", "takeover"]
QUICK = {"gamma": 0.1, "hops": 2}


def scores(folder: LearnerFolder, files: Any) -> tuple[list[str], np.ndarray[Any, Any]]:
    """Class names in order, and each node's score for them."""
    learner, batch = folder.learner(), folder.read(files)
    names = {c: name for name, c in folder.show().record.classes.items()}
    order = sorted(range(len(names)), key=lambda i: names[learner.classes_[i]])
    return (
        [names[learner.classes_[i]] for i in order],
        learner.scores(batch.graph)[:, order].numpy(),
    )


def assert_same(a: LearnerFolder, b: LearnerFolder, files: Any) -> None:
    (names, left), (others, right) = scores(a, files), scores(b, files)
    assert names == others
    np.testing.assert_allclose(left, right, rtol=0, atol=1e-9 * np.abs(right).max())


def like(folder: LearnerFolder, name: str) -> LearnerFolder:
    return LearnerFolder.new(folder.path.with_name(name), like=folder)


def written(place, stem, head, rows, pairs) -> Files:
    """A table of nodes, a row each, and one of edges, as pairs or as lines."""
    place.mkdir(parents=True, exist_ok=True)
    files = place / f"{stem}-nodes.csv", place / f"{stem}-edges.csv"
    lines = [head, *(",".join(map(str, row)) for row in rows)]
    ends = [pair if isinstance(pair, str) else ",".join(map(str, pair)) for pair in pairs]
    for file, text in zip(files, (lines, ["source,target", *ends]), strict=True):
        file.write_text("\n".join(text), encoding="utf-8")
    return files


class Desk:
    """Writes tables of accounts into a folder."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def month(
        self,
        number: int,
        kinds: list[str] | None = None,
        *,
        nodes: int = 24,
        width: int = 5,
        order: list[int] | None = None,
        rows: list[int] | None = None,
        change: Callable[[list[list[str]]], None] | None = None,
        name: str | None = None,
    ) -> Files:
        """Accounts `a{number}-0` and so on, every sixth without a kind, with edges among them.

        `order` and `rows` shuffle columns and rows without changing what the tables say; `change`
        may edit the rows (id, kind, features).
        """
        kinds = kinds or KINDS
        rng = np.random.default_rng(number)
        labelled = np.arange(nodes) % 6 != 5
        kind = rng.integers(0, len(kinds), nodes)
        kind[labelled] = rng.permutation(np.arange(labelled.sum()) % len(kinds))
        centres = [KINDS.index(k) if k in KINDS else len(KINDS) for k in kinds]
        x = rng.normal(size=(nodes, width)).round(3)
        x[np.arange(nodes), [centres[k] % width for k in kind]] += 3
        cells = [
            [f"a{number}-{i}", "" if i % 6 == 5 else kinds[kind[i]], *map(str, x[i].tolist())]
            for i in range(nodes)
        ]
        if change is not None:
            change(cells)
        head = ["id", "label", *(f"x{j}" for j in range(width))]
        places = order or list(range(len(head)))
        lines = [[row[j] for j in places] for row in (cells[i] for i in rows or range(len(cells)))]
        same = rng.integers(0, nodes, (2, 40))
        pairs = [f"a{number}-{u},a{number}-{v}" for u, v in same.T.tolist() if kind[u] == kind[v]]
        pairs += [f"a{number}-{u},a{number - 1}-{v}" for u, v in same.T.tolist()[:5]]
        stem, columns = name or f"m{number}", ",".join(head[j] for j in places)
        return written(self.place, stem, columns, lines, pairs)


@pytest.fixture
def desk(tmp_path) -> Desk:
    return Desk(tmp_path)
