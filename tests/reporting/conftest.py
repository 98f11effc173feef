"""Made-up results in the shape of the paper's, and what every figure must satisfy in print."""

from collections.abc import Iterator
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from tests.experiments.made import made, searched
from undrift.experiments.result import Result
from undrift.experiments.search import Search
from undrift.experiments.store import Manifest
from undrift.learners.registry import METHODS
from undrift.reporting.tables.compare import manifest_of_runs
from undrift.reporting.tables.comparison import Comparison, ComparisonEntry, SeedMean

# tasks, accuracy at the start
PAPER_STREAMS = {"cs-cl": (6, 96), "corafull-cl": (21, 85), "arxiv-cl": (11, 72)}
PAPER_STREAMS["reddit-cl-stand-in"] = (11, 95)


class Fakes:
    """Results that look like real ones, the same on every machine."""

    streams = PAPER_STREAMS

    @staticmethod
    @cache
    def result(stream: str = "cs-cl", method: str = "adr", seed: int = 0) -> Result:
        tasks, start = PAPER_STREAMS[stream]
        rank = list(METHODS).index(method)
        rng = np.random.default_rng([seed, rank, tasks])
        loss = {"joint": 0.1, "bare": 30.0, "adr": 0.6}.get(method, 0.7 + (rank * 5 % 14) * 0.4)

        def accuracy(t: int, i: int) -> float:
            return float(np.clip(start - loss * (t - i) - 0.5 * t + rng.normal(0, 1.2), 0, 100))

        rows = [[accuracy(t, i) for i in range(t + 1)] for t in range(tasks)]
        drifted = {"efc": 1.32, "dpcr": 0.734}.get(method, 0.0)
        state = int(10 ** (4.6 + (rank * 3 % 14) * 0.25) * tasks)
        seconds = 3.0 * tasks * (1 + (rank * 5 % 14) * 0.4) + 0.1 * seed
        cost = {"seconds": {"total": seconds}, "peak_memory_mb": 500, "threads": 1}
        fields: dict[str, Any] = {
            "drift": [drifted * t / (tasks - 1) for t in range(tasks)],
            "cost": cost | {"state_mb": state / 1e6, "state_bytes": [state]},
            "versions": {},
            "provenance": {"stand_in": stream.endswith("stand-in")},
        }
        return made(rows, fields, stream=stream, method=method, seed=seed)

    def groups(self, seeds: int = 3) -> dict[str, dict[str, list[Result]]]:
        """Every method on four streams."""
        return {
            stream: {m: [self.result(stream, m, seed) for seed in range(seeds)] for m in METHODS}
            for stream in PAPER_STREAMS
        }

    def folder(self, seeds: int = 3) -> tuple[dict[str, Result], Manifest]:
        """The same runs as a folder has them, with their plan."""
        every = product(PAPER_STREAMS, METHODS, range(seeds))
        results = {one.spec.id: one for one in map(self.result, *zip(*every, strict=True))}
        return results, manifest_of_runs(results, plan="paper-table1", title="Table 1")

    @staticmethod
    def plain(spec: dict[str, Any], **changes: Any) -> Result:
        """A result of two tasks with round numbers; what a test looks at goes into `changes`."""
        cost = {"seconds": {"total": 3.0}, "peak_memory_mb": 100, "state_mb": 2, "threads": 1}
        fields = {"validation": None, "drift": [], "cost": cost, "versions": {"torch": "2.13.0"}}
        fields["provenance"] = {"stand_in": "stand-in" in spec.get("stream", "")}
        return made(fields=fields | changes, **{"stream": "cs-cl", "method": "adr"} | spec)

    @staticmethod
    def entry(mean: float = 90.0, deviation: float | None = 1.0, **more: Any) -> ComparisonEntry:
        more = {"seeds": (0,), "runs": ("r",)} | more
        return ComparisonEntry(ours=SeedMean(mean, deviation), **more)

    @staticmethod
    def table(entries: dict[tuple[str, str, str], ComparisonEntry], **changes: Any) -> Comparison:
        """A table of these entries, without costs and with one note."""
        rows, streams, metrics = (list(dict.fromkeys(k[at] for k in entries)) for at in range(3))
        fields: dict[str, Any] = {
            "title": "A table",
            "rows": rows,
            "labels": {row: row.upper() for row in rows},
            "streams": streams,
            "metrics": metrics or ["a_avg"],
            "entries": entries,
            "costs": {},
            "keeps_examples": {},
            "stand_ins": frozenset(),
            "notes": ["A note: 100 % sure."],
        }
        return Comparison(**(fields | changes))

    def search(
        self, stream: str = "cs-cl", method: str = "adr", seed: int = 0, **grid: Any
    ) -> Search:
        grid = grid or {"gamma": (1e-3, 1e-2, 1e-1, 1.0), "alpha": (1, 2, 4, 8, 16, 32, 64)}
        scores = []
        for values in product(*grid.values()):
            steps = sum(grid[name].index(v) for name, v in zip(grid, values, strict=True))
            scores.append((dict(zip(grid, values, strict=True)), 80.0 + seed + 1.3 * steps))
        return searched(scores, stream=stream, method=method, seed=seed)

    def points(self, moved: float, classes: int = 5) -> dict[str, Any]:
        """Arrays as in an embedding.npz."""
        rng = np.random.default_rng(classes)
        labels = np.repeat(np.arange(classes), 120)
        first = rng.normal(0, 4, (classes, 2))[labels] + rng.normal(0, 0.6, (labels.size, 2))
        shift = rng.normal(0, 4, (classes, 2))[labels] + rng.normal(0, 0.6, (labels.size, 2))
        return {"first": first, "last": first + moved * shift, "labels": labels}


@pytest.fixture(scope="session")
def fakes() -> Fakes:
    """Makes results that look like real ones."""
    return Fakes()


class Print:
    """What holds for a figure that is put into a column of a paper as it is."""

    def texts(self, figure: Any) -> Iterator[tuple[str, float, Any]]:
        """Every text that is drawn: words, size in points, box in pixels."""
        from matplotlib.text import Text

        figure.canvas.draw()
        hidden = {
            id(tick.label1)  # a tick beyond the ends of its axis is there but not drawn
            for axes in figure.axes
            for axis in (axes.xaxis, axes.yaxis)
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
            if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
        }
        for text in figure.findobj(Text):
            if text.get_text().strip() and text.get_visible() and id(text) not in hidden:
                yield text.get_text(), text.get_fontsize(), text.get_window_extent()

    def check(self, figure: Any, width: float = 85.0) -> None:
        """The given width, letters that can be read, all on the sheet, none over another."""
        assert figure.get_size_inches()[0] * 25.4 == pytest.approx(width)
        assert figure.get_size_inches()[1] * 25.4 < 297
        across, down = figure.bbox.width, figure.bbox.height
        texts = list(self.texts(figure))
        assert texts
        for words, size, box in texts:
            assert size >= 6.5, words
            assert min(box.x0, box.y0) >= -0.5, words
            assert box.x1 <= across + 0.5, words
            assert box.y1 <= down + 0.5, words
        for (a, _, one), (b, _, two) in combinations(texts, 2):
            x = min(one.x1, two.x1) - max(one.x0, two.x0)
            y = min(one.y1, two.y1) - max(one.y0, two.y0)
            assert x <= 0.5 or y <= 1.5, f"{a!r} over {b!r}"


@pytest.fixture(scope="session")
def in_print() -> Print:
    """Checks figures for what they look like in print."""
    return Print()
