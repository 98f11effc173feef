"""The numbers that the ADR paper printed, as data. Does not import torch.

Song, Guan and Kong, Analytic Drift Resister: the comparison of methods (Table 1) and the
ablation of HAM. Both give the average incremental accuracy and the final accuracy in percent,
mean and deviation over seeds, on the paper's four streams; Joint has no a_avg. Rows carry the
names used here: methods as in `undrift methods`, merging rules as in `merging` of ADR.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from undrift.reporting.tables.comparison import Numbers

if TYPE_CHECKING:
    from undrift.experiments.result import Result

Table = Literal["table1", "ablation"]

_STREAMS = ("cs-cl", "corafull-cl", "arxiv-cl", "reddit-cl")
_METRICS = ("a_avg", "a_f")
_SAME = {"arxiv-cl@directed": "arxiv-cl"}

# a line is a row; its columns are cs-cl a_avg, cs-cl a_f, corafull-cl a_avg, and so on
_PRINTED: dict[Table, str] = {
    "table1": """
joint   -          88.92±0.25 -          61.62±0.26 -          42.11±0.20 -          79.82±0.69
bare    53.24±1.83 34.54±6.39 17.55±0.15 3.75±0.90  18.16±0.10 8.99±0.02  40.47±0.91 12.64±1.97
lwf     62.59±1.40 38.40±2.30 18.53±0.75 6.91±1.17  17.64±0.18 8.97±0.05  37.73±0.76 12.76±2.45
ewc     72.76±3.04 49.67±5.28 20.23±0.40 5.44±1.92  17.01±0.15 8.91±0.03  40.93±0.74 8.82±0.04
mas     75.22±2.02 66.91±2.09 19.21±0.29 9.09±1.83  17.68±0.49 8.81±0.51  53.02±3.55 33.11±4.24
twp     55.89±0.53 41.95±3.18 19.78±1.12 8.67±2.23  17.03±0.20 8.95±0.16  39.79±0.92 9.97±0.41
cat     63.85±1.52 51.16±3.09 27.38±1.29 11.02±1.73 15.42±0.25 8.90±0.03  51.95±1.80 22.85±1.47
er-gnn  84.05±0.42 80.87±0.52 20.55±0.26 4.91±0.97  29.47±0.33 16.76±0.24 81.66±0.44 69.70±1.43
polo    68.60±1.47 41.62±3.35 26.63±1.53 11.10±1.80 14.76±0.10 4.56±0.02  55.03±2.45 24.77±1.02
efc     72.28±1.23 61.25±2.97 23.01±0.40 7.64±0.58  24.10±0.31 12.81±0.42 78.45±0.71 69.91±0.75
dpcr    63.78±1.26 43.89±3.13 32.86±0.88 7.12±1.08  31.30±0.84 23.67±1.07 66.09±2.86 38.27±2.50
acil    88.58±0.25 85.57±0.59 61.49±0.19 51.92±0.58 39.37±0.20 35.08±0.23 81.37±0.39 73.93±0.53
ds-al   88.88±0.42 85.54±0.96 61.78±0.59 52.69±0.65 41.41±0.24 36.78±0.30 81.77±0.25 74.40±0.33
adr     90.71±0.22 87.21±0.42 67.52±0.83 60.03±1.22 39.66±0.43 34.74±0.21 82.52±0.21 75.45±0.40
""",
    "ablation": """
none    52.28±1.27 36.63±2.92 17.36±0.19 7.65±0.99  20.07±0.06 9.01±0.02  43.83±0.67 17.43±1.75
average 65.08±1.31 48.79±1.91 31.83±0.48 24.75±0.95 23.23±0.20 15.17±0.37 69.29±2.12 48.23±1.89
fisher  69.07±2.58 58.01±5.32 27.68±0.66 18.64±1.39 26.06±1.33 10.15±0.23 68.53±2.78 48.42±3.25
magmax  67.23±0.78 57.34±3.98 31.08±1.16 21.91±1.82 21.66±0.24 9.64±0.20  70.15±1.03 50.81±3.52
ham     90.71±0.22 87.21±0.42 67.52±0.83 60.03±1.22 39.66±0.43 34.74±0.21 82.52±0.21 75.45±0.40
""",
}


@dataclass(frozen=True)
class Published:
    """A number of the paper, in percent: mean and deviation over its seeds."""

    mean: float
    deviation: float


def published(table: Table, row: str, stream: str, metric: str) -> Published | None:
    """The paper's number of a row on a stream; None where it printed none.

    Streams go by their exact names: no stand-in stands beside a number of the paper. Its Arxiv-CL
    has the edges of `arxiv-cl@directed`; its number also stands beside `arxiv-cl`, which has every
    citation in both directions.

    >>> published("table1", "adr", "cs-cl", "a_avg")
    Published(mean=90.71, deviation=0.22)
    """
    return _numbers(table).get((row, _SAME.get(stream, stream), metric))


def _number_of(row: str, result: Result, stream: str, metric: str) -> tuple[float, float] | None:
    """The paper's mean and deviation for what a run in a row of this label did.

    None where the setting is not the paper's, and for variants that it did not run.
    """
    place = _place(row, result)
    found = None if place is None else published(*place, stream, metric)
    return None if found is None else (found.mean, found.deviation)


number_of = Numbers(
    _number_of,
    "Song, Guan and Kong, Analytic Drift Resister",
    {
        "arxiv-cl": "The paper's Arxiv-CL has 1,166,243 edges, each citation once: that is "
        "arxiv-cl@directed; arxiv-cl has every citation in both directions."
    },
    proposed="adr",
)

SHOWN = {
    "plasticity": ("adr", "acil", "ds-al", "bare"),
    "drift": ("efc", "dpcr", "adr"),
    "matrices": ("acil", "ds-al", "adr"),
    "surface": ("adr",),
}
"""The methods that the paper's figures show, by the name of the figure."""


def _place(row: str, result: Result) -> tuple[Table, str] | None:
    """The table and the row that a run remakes."""
    method, rule = result.spec.method, result.spec.params.get("merging", "ham")
    if result.spec.protocol != "global":
        return None
    if method == "adr" and row in (rule, f"adr merging={rule}", f"adr merge={rule}"):
        return "ablation", str(rule)
    return ("table1", method) if row == method and rule == "ham" else None


def published_rows(table: Table) -> tuple[str, ...]:
    """The rows of a table, in the paper's order.

    >>> published_rows("ablation")
    ('none', 'average', 'fisher', 'magmax', 'ham')
    """
    return tuple(line.split()[0] for line in _PRINTED[table].strip().splitlines())


@cache
def _numbers(table: Table) -> dict[tuple[str, str, str], Published]:
    columns = [(stream, metric) for stream in _STREAMS for metric in _METRICS]
    found = {}
    for line in _PRINTED[table].strip().splitlines():
        row, *cells = line.split()
        for (stream, metric), cell in zip(columns, cells, strict=True):
            mean, _, deviation = cell.partition("±")
            if deviation:
                found[row, stream, metric] = Published(float(mean), float(deviation))
    return found
