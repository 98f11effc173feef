from __future__ import annotations

import csv
import io

from undrift.reporting.tables.comparison import Comparison, ComparisonEntry, Spread
from undrift.reporting.tables.formats import csv_table

BEST = ComparisonEntry(
    ours=Spread(91.123456789, 0.5),
    seeds=(0, 1, 4),
    runs=("aa", "bb", "cc"),
    rank=1,
    published=Spread(90.71, 0.22),
)
SECOND = ComparisonEntry(Spread(80.0, None), (0,), ("dd",), rank=2, significance=0.0125)
TABLE = Comparison(
    title="T",
    rows=["adr", "cat", 'odd, "row"'],
    labels={"adr": "ADR", "cat": "CaT"},
    streams=["cs-cl", "dblp-cl"],
    metrics=["a_avg", "a_f"],
    entries={("adr", "cs-cl", "a_avg"): BEST, ("cat", "cs-cl", "a_avg"): SECOND},
    costs={("adr", "cs-cl"): {"seconds": 1.5, "memory_mb": 10.0, "kept_bytes": 7.0}},
    keeps_examples={"adr": False, "cat": True},
    stand_ins=frozenset({"dblp-cl"}),
    notes=["A note."],
    bounds=frozenset({"cat"}),
)


def lines() -> dict[tuple[str, str, str], dict[str, str]]:
    found = list(csv.DictReader(io.StringIO(csv_table(TABLE))))
    keyed = {(line["row"], line["stream"], line["metric"]): line for line in found}
    assert len(keyed) == len(found)
    return keyed


def test_one_line_per_row_stream_and_metric() -> None:
    assert set(lines()) == {
        (row, stream, metric)
        for row in TABLE.rows
        for stream in TABLE.streams
        for metric in TABLE.metrics
    }
    assert csv_table(TABLE).splitlines()[0] == (
        "row,label,bound,keeps_examples,stream,stand_in,metric,grading,mean,deviation,rank,"
        "p_value,published_mean,published_deviation,difference,seconds,memory_mb,kept_bytes,"
        "seeds,runs"
    )


def test_every_number_is_there_in_full() -> None:
    assert lines()["adr", "cs-cl", "a_avg"] == {
        "row": "adr",
        "label": "ADR",
        "bound": "no",
        "keeps_examples": "no",
        "stream": "cs-cl",
        "stand_in": "no",
        "metric": "a_avg",
        "grading": "class",
        "mean": "91.123456789",
        "deviation": "0.5",
        "rank": "1",
        "p_value": "",
        "published_mean": "90.71",
        "published_deviation": "0.22",
        "difference": str(91.123456789 - 90.71),
        "seconds": "1.5",
        "memory_mb": "10.0",
        "kept_bytes": "7.0",
        "seeds": "0 1 4",
        "runs": "aa bb cc",
    }


def test_what_is_not_known_is_empty() -> None:
    second = lines()["cat", "cs-cl", "a_avg"]
    assert second["deviation"] == second["published_mean"] == second["seconds"] == ""
    assert (second["p_value"], second["bound"], second["keeps_examples"]) == (
        "0.0125",
        "yes",
        "yes",
    )
    missing = lines()["adr", "dblp-cl", "a_f"]
    assert missing["mean"] == missing["runs"] == missing["rank"] == ""
    assert missing["stand_in"] == "yes"


def test_a_row_with_commas_and_quotes_comes_back() -> None:
    assert ('odd, "row"', "cs-cl", "a_f") in lines()
