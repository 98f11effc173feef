"""`python -m mutants.page`: the tables of docs/reliability.md from results/reliability/.

With files of lines that torture, the fuzzer or a run of mutants wrote, those are recorded first.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RECORDS, PAGE = ROOT / "results" / "reliability", ROOT / "docs" / "reliability.md"
_COLUMNS = {
    "torture": ("part", "step", "calls", "runs", "begun", "apart", "seconds"),
    "files": ("target", "cases", "refused", "same", "read", "missed", "found", "slowest_ms"),
    "mutants": ("module", "line", "what", "outcome", "judged"),
}
Rows = list[dict[str, str]]


def main() -> None:
    """Record what is given, and write the tables into the page."""
    for name in sys.argv[1:]:
        record(Path(name))
    text = PAGE.read_text(encoding="utf-8")
    for name, table in tables().items():
        text = re.sub(_block(name), lambda _, t=table, n=name: _marked(n, t), text, flags=re.DOTALL)
    PAGE.write_text(text, encoding="utf-8")


def record(path: Path) -> None:
    """Keep the lines of a run as a table."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if any("outcome" in line and "module" in line for line in lines):
        kind, kept = "mutants", sorted(lines, key=lambda line: (line["module"], line["line"]))
        judged = {(r["module"], r["what"]): r["judged"] for r in rows("mutants")}
        kept = [{**line, "judged": judged.get((line["module"], line["what"]), "")} for line in kept]
    elif any("target" in line for line in lines):
        kind = "files"
        total = lines[-1]
        kept = [{"missed": 0} | line for line in lines if "refused" in line]
        kept.append({"target": f"all, in {total['seconds']:.0f} s", **_sums(kept)})
    else:
        kind, kept = "torture", [line for line in lines if "part" in line]
    RECORDS.mkdir(parents=True, exist_ok=True)
    file = io.StringIO()
    writer = csv.DictWriter(file, _COLUMNS[kind], extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(kept)
    (RECORDS / f"{kind}.csv").write_text(file.getvalue(), encoding="utf-8")


def _sums(lines: list[dict[str, Any]]) -> dict[str, int]:
    names = ("cases", "refused", "same", "read", "missed", "found")
    total = {name: sum(line.get(name, 0) for line in lines) for name in names}
    return total | {"slowest_ms": max(line["slowest_ms"] for line in lines)}


def rows(kind: str) -> Rows:
    """The rows of a record; none where there is no record."""
    path = RECORDS / f"{kind}.csv"
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def tables() -> dict[str, str]:
    """Each table of the page by its name."""
    torture = rows("torture")
    parts: dict[str, Rows] = defaultdict(list)
    for row in torture:
        parts[row["part"]].append(row)
    return {
        "faults": _table(
            ("step", "calls", "faults survived"),
            [(r["step"], r["calls"], r["runs"]) for r in parts["faults"]]
            + [("all", "", sum(int(r["runs"]) for r in parts["faults"]))],
        ),
        "kills": _table(
            ("step", "killed", "begun"),
            [(r["step"], r["runs"], r["begun"]) for r in parts["kills"]],
        ),
        "files": _table(
            ("file", "changed", "refused", "same answer", "read as it is", "missed", "findings"),
            [tuple(r[c] for c in _COLUMNS["files"][:-1]) for r in _without_methods(rows("files"))],
        ),
        "relations": _table(
            ("relation", "methods", "largest difference"),
            [(r["step"], r["runs"], f"{float(r['apart']):.0e}") for r in parts["relations"]],
        ),
        "mutants": _mutants(rows("mutants")),
        "survivors": _survivors(rows("mutants")),
    }


def _without_methods(files: Rows) -> Rows:
    """The states of all methods as one row."""
    states = [r for r in files if r["target"].startswith("state of")]
    if not states:
        return files
    one = {name: str(sum(int(r[name] or 0) for r in states)) for name in _COLUMNS["files"][1:]}
    others = [r for r in files if r not in states]
    return [*others[:-1], {"target": f"states of {len(states)} methods"} | one, others[-1]]


def _mutants(found: Rows) -> str:
    packages: dict[str, Counter[str]] = defaultdict(Counter)
    for row in found:
        kind = row["outcome"].partition(" (")[0]
        for name in (row["module"].split(".")[1], "all"):
            packages[name]["mutants"] += 1
            packages[name][kind] += 1
    lines = []
    for name, counts in sorted(packages.items(), key=lambda item: (item[0] == "all", item[0])):
        alive = counts["survived"]
        share = f"{100 * (1 - alive / counts['mutants']):.1f} %"
        first, rest = counts["killed by its tests"], counts["killed by its package"]
        lines.append((name, counts["mutants"], first, rest, alive, share))
    head = ("package", "mistakes", "noticed by its own tests", "by others", "not", "noticed")
    return _table(head, lines)


def _survivors(found: Rows) -> str:
    alive = [row for row in found if row["outcome"] == "survived"]
    kinds = Counter(row["judged"] or "not judged" for row in alive)
    return _table(("judged", "survivors"), kinds.most_common())


def _table(head: tuple[str, ...], lines: list[Any]) -> str:
    def line(cells: Any) -> str:
        return "| " + " | ".join(_cell(cell) for cell in cells) + " |\n"

    rule = "|" + "|".join("---" if i == 0 else "---:" for i in range(len(head))) + "|\n"
    return line(head) + rule + "".join(map(line, lines))


def _cell(value: Any) -> str:
    text = str(value)
    return f"{int(text):,}" if text.isdigit() else text


def _block(name: str) -> str:
    return rf"<!-- {name} -->.*?<!-- end -->"


def _marked(name: str, table: str) -> str:
    return f"<!-- {name} -->\n\n{table}\n<!-- end -->"


if __name__ == "__main__":
    main()
