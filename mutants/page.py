"""`python -m mutants.page`: the tables of docs/reliability.md from results/reliability/.

With files of lines that torture, the fuzzer or a run of mutants wrote, those are recorded first.
"""

import argparse
import csv
import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RECORDS, PAGE = ROOT / "results" / "reliability", ROOT / "docs" / "reliability.md"
_COLUMNS = {
    "torture": ("part", "step", "first", "calls", "runs", "begun", "apart", "seconds"),
    "files": (
        *("draw", "target", "cases", "refused", "same", "read", "missed", "found"),
        *("slowest_ms", "seconds", "workers"),
    ),
    "mutants": ("draw", "module", "line", "what", "outcome", "judged"),
    "mutants-first": ("draw", "mistakes", "noticed"),
}
_COUNTED = ("cases", "refused", "same", "read", "missed", "found")
Rows = list[dict[str, str]]


def main() -> None:
    """Record what is given, and write the tables into the page."""
    parser = argparse.ArgumentParser(prog="python -m mutants.page", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--draw", type=int, default=1, help="of changed files, and of mistakes")
    asked = parser.parse_args()
    for path in asked.files:
        record(path, asked.draw)
    text = PAGE.read_text(encoding="utf-8")
    for name, table in tables().items():
        text = re.sub(_block(name), lambda _, t=table, n=name: _marked(n, t), text, flags=re.DOTALL)
    PAGE.write_text(text, encoding="utf-8")


def record(path: Path, draw: int) -> None:
    """Keep the lines of a run in their table, in place of those of the same run or draw."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if any("outcome" in line and "module" in line for line in lines):
        _record_mutants(lines, draw)
    elif any("target" in line for line in lines):
        _record_files(lines, draw)
    else:
        failed = [line for line in lines if "failed" in line]
        assert not failed, f"something did not survive, which is no record: {failed[0]}"
        lines = [line for line in lines if "part" in line]
        every = {_step(row): row for row in [*rows("torture"), *lines]}  # each in its old place
        _write("torture", list(every.values()))


def _step(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["part"], row["step"], str(row.get("first", ""))


def _record_files(lines: list[dict[str, Any]], draw: int) -> None:
    found = [{"missed": 0, "draw": draw} | line for line in lines if "refused" in line]
    total = {"draw": draw, "target": "all", **_sums(found)}
    total |= {name: round(lines[-1][name]) for name in ("seconds", "workers")}
    _write("files", [*(r for r in rows("files") if r["draw"] != str(draw)), *found, total])


def _record_mutants(lines: list[dict[str, Any]], draw: int) -> None:
    """What a draw first came to is kept; mistakes that met more tests have their new outcome."""
    # two on one line may have the same words: then the one that survived counts
    new = {_place(line): line for line in sorted(lines, key=lambda r: r["outcome"] == "survived")}
    known = rows("mutants")
    mine = [r for r in known if r["draw"] == str(draw)]
    if not mine:
        survived = sum(line["outcome"] == "survived" for line in lines)
        first = {"draw": draw, "mistakes": len(lines), "noticed": len(lines) - survived}
        _write("mutants-first", [*rows("mutants-first"), first])
        made = sorted(lines, key=lambda line: (line["module"], line["line"]))
        _write("mutants", [*known, *({**line, "draw": draw} for line in made)])
        return
    for row in mine:
        row["outcome"] = new.get(_place(row), row)["outcome"]
    _write("mutants", known)


def _place(row: dict[str, Any]) -> tuple[str, int, str]:
    return row["module"], int(row["line"]), row["what"]


def _write(kind: str, kept: Sequence[Mapping[str, Any]]) -> None:
    RECORDS.mkdir(parents=True, exist_ok=True)
    file = io.StringIO()
    writer = csv.DictWriter(file, _COLUMNS[kind], extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(kept)
    (RECORDS / f"{kind}.csv").write_text(file.getvalue(), encoding="utf-8")


def _sums(lines: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    total = {name: sum(int(line.get(name) or 0) for line in lines) for name in _COUNTED}
    return total | {"slowest_ms": max(int(line["slowest_ms"]) for line in lines)}


def rows(kind: str) -> Rows:
    """The rows of a record; none where there is no record."""
    path = RECORDS / f"{kind}.csv"
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def tables() -> dict[str, str]:
    """Each table of the page by its name."""
    parts: dict[str, Rows] = defaultdict(list)
    for row in rows("torture"):
        parts[row["part"]].append(row)
    return {
        "faults": _table(
            ("step", "calls", "faults survived"),
            [(r["step"], r["calls"], r["runs"]) for r in parts["faults"]]
            + [("all", "", sum(int(r["runs"]) for r in parts["faults"]))],
        ),
        "kills": _kills(parts["kills"]),
        "files": _files(rows("files")),
        "relations": _table(
            ("relation", "methods", "largest difference"),
            [(r["step"], r["runs"], f"{float(r['apart']):.0e}") for r in parts["relations"]],
        ),
        "not invariant": _not_invariant(),
        "draws": _draws(rows("mutants")),
        "mutants": _mutants(rows("mutants")),
        "survivors": _survivors(rows("mutants")),
    }


def _kills(found: Rows) -> str:
    """A step may have been killed in several runs, each with seeds of its own."""
    steps: dict[str, Counter[str]] = defaultdict(Counter)
    for row in found:
        steps[row["step"]].update({name: int(row[name]) for name in ("runs", "begun")})
    lines = [(step, count["runs"], count["begun"]) for step, count in steps.items()]
    return _table(("step", "killed", "begun"), lines)


def _files(found: Rows) -> str:
    """A line for each kind of file, over all draws, and one for each draw."""
    draws = sorted({row["draw"] for row in found}, key=int)
    kinds: dict[str, Rows] = defaultdict(list)
    for row in found:
        kinds[row["target"]].append(row)
    totals = kinds.pop("all")
    states = [name for name in kinds if name.startswith("state of")]
    kinds[f"states of {len(states)} methods"] = [r for name in states for r in kinds.pop(name)]
    lines = [
        (kind, *(_sums(those)[name] for name in _COUNTED[:-1]), *_found(those, draws))
        for kind, those in kinds.items()
    ]
    for row in totals:
        title = f"draw {row['draw']}, {row['seconds']} s by {row['workers']} processes"
        title = title.replace("by 1 processes", "by one process")
        lines.append((title, *(row[name] for name in _COUNTED[:-1]), *_found([row], draws)))
    head = ("file", "changed", "refused", "same answer", "read as it is", "missed")
    return _table((*head, *(f"findings of draw {draw}" for draw in draws)), lines)


def _found(those: Rows, draws: list[str]) -> list[str]:
    """The findings of each draw; nothing where a draw had no such file."""
    by_draw = {draw: [int(r["found"]) for r in those if r["draw"] == draw] for draw in draws}
    return [str(sum(counts)) if counts else "" for counts in by_draw.values()]


def _not_invariant() -> str:
    """Of which methods a relation does not hold, and why."""
    from tests.harness.metamorphic import NOT_INVARIANT  # no mutant may find undrift loaded

    lines = []
    for relation, reasons in NOT_INVARIANT.items():
        for reason in dict.fromkeys(reasons.values()):
            methods = [f"`{name}`" for name, why in reasons.items() if why == reason]
            lines.append((relation, ", ".join(methods), reason))
    return _table(("relation", "does not hold for", "because"), lines).replace("---:", "---")


def _draws(found: Rows) -> str:
    """Each draw: what was noticed of it when it was drawn, and with the tests there are now."""
    lines = []
    for first in rows("mutants-first"):
        mine = [row for row in found if row["draw"] == first["draw"]]
        now = sum(row["outcome"] != "survived" for row in mine)
        shares = (_share(int(first["noticed"]), int(first["mistakes"])), _share(now, len(mine)))
        lines.append((first["draw"], len(mine), *shares))
    return _table(("draw", "mistakes", "noticed when drawn", "noticed now"), lines)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"


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
        share = _share(counts["mutants"] - alive, counts["mutants"])
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
