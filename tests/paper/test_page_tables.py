import pytest

from paper.page_tables import accuracy_table, large_differences
from undrift.reporting.tables.compare import compare
from undrift.reporting.tables.comparison import Comparison


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split(" | ")]


@pytest.fixture(scope="module")
def table(fakes) -> Comparison:
    return compare(*fakes.folder(), metrics=("a_avg", "a_f", "a_l", "forgetting"))


def test_every_number_of_a_stream_is_the_comparisons(fakes, table: Comparison) -> None:
    results, plan = fakes.folder()
    nodes = compare(results, plan, metrics=("a_f",), grading="node")
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


def test_large_differences_are_all_there_with_their_reasons(table: Comparison) -> None:
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
