from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paper.page_tables import (
    accuracy_table,
    chosen_table,
    cost_table,
    large_differences,
)
from undrift.reporting.tables.compare import compare
from undrift.reporting.tables.comparison import Comparison


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split(" | ")]


@pytest.fixture(scope="module")
def made(fakes: Any) -> tuple[Any, Comparison, Comparison]:
    results, plan = fakes.folder()
    table = compare(results, plan, metrics=("a_avg", "a_f", "a_l", "forgetting"))
    return results, table, compare(results, plan, metrics=("a_f",), grading="node")


def test_every_number_of_a_stream_is_the_comparisons(
    made: tuple[Any, Comparison, Comparison],
) -> None:
    results, table, nodes = made
    header, _, *lines = accuracy_table(table, nodes, "cs-cl", results).splitlines()
    assert cells(header) == [
        *("method", "A_avg", "paper", "A_f", "paper", "A_l", "forgetting", "A_f by node", "drift")
    ]
    assert len(lines) == len(table.rows)
    for row, line in zip(table.rows, lines, strict=True):
        found = cells(line)
        entry = table.entries[row, "cs-cl", "a_f"]
        assert f"{entry.ours.mean:.2f} ± {entry.ours.deviation:.2f}" in found[3]
        paper = "" if entry.difference is None else f"({entry.difference:+.2f})"
        assert found[4].endswith(paper)
        assert bool(found[4]) == bool(entry.published)
        assert f"{nodes.entries[row, 'cs-cl', 'a_f'].ours.mean:.2f}" in found[7]
    efc = next(line for line in lines if line.startswith("| EFC |"))
    assert cells(efc)[-1] == "132.0 %"
    assert any("†" in line for line in lines)


def test_a_stand_in_has_no_number_of_the_paper(made: tuple[Any, Comparison, Comparison]) -> None:
    results, table, nodes = made
    text = accuracy_table(table, nodes, "reddit-cl-stand-in", results)
    assert "paper" not in text


def test_rows_without_runs_on_a_stream_are_left_out(
    made: tuple[Any, Comparison, Comparison],
) -> None:
    results, table, nodes = made
    entries = {key: e for key, e in table.entries.items() if key[:2] != ("efc", "cs-cl")}
    text = accuracy_table(replace(table, entries=entries), nodes, "cs-cl", results)
    assert "EFC" not in text
    assert "DPCR" in text


def test_costs_are_beside_bares(made: tuple[Any, Comparison, Comparison]) -> None:
    header, _, *lines = cost_table(made[1], "cs-cl", made[0]).splitlines()
    assert cells(header) == ["method", "seconds", "memory, MB", "kept", "× Bare"]
    bare = next(line for line in lines if line.startswith("| Bare |"))
    assert cells(bare)[-1] == "1.0"
    costs = made[1].costs
    ratio = costs["adr", "cs-cl"]["seconds"] / costs["bare", "cs-cl"]["seconds"]
    adr = next(line for line in lines if line.startswith("| ADR |"))
    assert cells(adr)[-1] == f"{ratio:.1f}"


def test_costs_of_several_machines_say_which_and_are_not_compared(
    made: tuple[Any, Comparison, Comparison],
) -> None:
    results, table, _ = made
    moved = dict(results)
    for run, result in results.items():
        if result.spec.method == "adr":
            spec = result.spec.model_copy(update={"device": "cuda"})
            moved[run] = result.model_copy(update={"spec": spec})
    header, _, *lines = cost_table(table, "cs-cl", moved).splitlines()
    assert cells(header)[:3] == ["method", "ran on", "seconds"]
    adr = cells(next(line for line in lines if line.startswith("| ADR |")))
    ewc = cells(next(line for line in lines if line.startswith("| EWC |")))
    assert (adr[1], adr[-1]) == ("cuda, torch unknown", "–")
    assert ewc[1] == "cpu, torch unknown"
    assert float(ewc[-1]) > 0


def test_what_searches_chose_with_a_mark_at_the_ends(fakes: Any) -> None:
    searches = [
        fakes.search("cs-cl"),  # the largest of both
        fakes.search("corafull-cl", "acil", gamma=(0.1, 1.0)),
    ]
    header, _, acil, adr = chosen_table(searches, ["corafull-cl", "cs-cl", "arxiv-cl"]).splitlines()
    assert cells(header) == ["method", "tried", "CoraFull-CL", "CS-CL"]
    assert cells(acil) == ["ACIL", "2", "gamma = 1", "–"]  # two values have no middle
    assert cells(adr) == ["ADR", "28", "–", "gamma = 1°, alpha = 64°"]


def test_large_differences_are_all_there_with_their_reasons(
    made: tuple[Any, Comparison, Comparison],
) -> None:
    _, table, _ = made
    far = {
        (row, stream)
        for (row, stream, metric), e in table.entries.items()
        if metric in ("a_avg", "a_f") and e.difference is not None and abs(e.difference) > 5
    }
    assert far
    text = large_differences([table], {("cs-cl", "lwf"): "A | reason."}, 5.0)
    _, _, *lines = text.splitlines()
    assert len(lines) == len(far)
    lwf = next(line for line in lines if line.startswith("| CS-CL | LwF |"))
    assert lwf.endswith(r"| A \| reason. |")
    others = [line for line in lines if line is not lwf]
    assert all(line.endswith("| no cause found yet |") for line in others)


def test_the_furthest_comes_first(made: tuple[Any, Comparison, Comparison]) -> None:
    _, _, *lines = large_differences([made[1]], {}, 5.0).splitlines()
    gaps = []
    for line in lines:
        found = [cell.partition("(")[2].rstrip(")") for cell in (cells(line)[3], cells(line)[5])]
        gaps.append(max(abs(float(gap)) for gap in found if gap))
    assert gaps == sorted(gaps, reverse=True)
    assert large_differences([made[1]], {}, 1000.0) == ""


def test_the_same_runs_stand_once(made: tuple[Any, Comparison, Comparison]) -> None:
    once = large_differences([made[1]], {}, 5.0)
    assert large_differences([made[1], made[1]], {}, 5.0) == once
