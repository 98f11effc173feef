"""What was run: plans, streams, seeds, versions; and what was not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from undrift.experiments.result import Result
from undrift.formatting import duration
from undrift.reporting.html.parts import Page, PlanTable
from undrift.reporting.html.words import stream_title
from undrift.reporting.tables.comparison import Comparison

__all__ = ["Overview", "PlanFacts", "StreamName", "overview"]


@dataclass(frozen=True)
class StreamName:
    """A stream and whether its data only imitates the benchmark."""

    title: str
    stand_in: bool


@dataclass(frozen=True)
class PlanFacts:
    """How far a plan is."""

    title: str
    name: str
    rule: str
    rows: int
    streams: Sequence[StreamName]
    seeds: str
    done: int
    failed: Sequence[str]
    missing: int
    skipped: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Overview:
    """The head of the page."""

    runs: int
    searches: int
    methods: int
    streams: Sequence[StreamName]
    time: str
    newest: str | None
    versions: Sequence[str]
    machines: str
    plans: Sequence[PlanFacts]


def overview(page: Page) -> Overview:
    """Count what the page is made of."""
    results = page.results.values()
    stand_ins = page.stand_ins
    streams = dict.fromkeys(s for plan in page.plans for s in _first(plan).streams)
    streams |= dict.fromkeys(sorted({result.spec.stream for result in results}))
    spent = sum(r.cost.seconds.get("total", 0.0) for r in results)
    # searches that were done together each have the seconds of all
    spent += sum(search.seconds / (1 + len(search.shared_with)) for search in page.searches)
    return Overview(
        runs=len(page.results),
        searches=len(page.searches),
        methods=len({result.spec.method for result in results}),
        streams=[StreamName(stream_title(name), name in stand_ins) for name in streams],
        time=duration(spent),
        newest=page.newest,
        versions=_versions(page.results),
        machines=_machines(page.results),
        plans=[_facts(plan) for plan in page.plans],
    )


def seeds_text(seeds: Sequence[int]) -> str:
    """Seeds as a short list, neighbours joined.

    >>> seeds_text([0, 1, 2, 3, 7])
    '0–3, 7'
    """
    spans: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if spans and seed == spans[-1][-1] + 1:
            spans[-1].append(seed)
        else:
            spans.append([seed])
    texts = (f"{s[0]}–{s[-1]}" if len(s) > 2 else ", ".join(map(str, s)) for s in spans)
    return ", ".join(texts) or "none"


def _facts(plan: PlanTable) -> PlanFacts:
    table = _first(plan)
    done = {run for entry in table.entries.values() for run in entry.runs}
    seeds = {seed for entry in table.entries.values() for seed in entry.seeds}
    cells = plan.manifest.cells if plan.manifest else ()
    failed = [
        f"{table.labels.get(c.row, c.row)} on {stream_title(c.stream)}, seed {c.seed}: {c.failed}"
        for c in cells
        if c.failed is not None
    ]
    skipped = plan.manifest.skipped if plan.manifest else ()
    return PlanFacts(
        title=plan.title,
        name=plan.name,
        rule=plan.rule,
        rows=len(table.rows),
        streams=[StreamName(stream_title(s), s in table.stand_ins) for s in table.streams],
        seeds=seeds_text([*seeds, *(cell.seed for cell in cells)]),
        done=len(done),
        failed=failed,
        missing=sum(c.failed is None and c.run not in done for c in cells),
        skipped=[(stream_title(each.stream), each.why) for each in skipped],
    )


def _versions(results: Mapping[str, Result]) -> list[str]:
    """Every version of every package, with how many runs had it where they differ."""
    counts: dict[str, Counter[str]] = {}
    for result in results.values():
        for package, version in result.versions.items():
            counts.setdefault(package, Counter())[version] += 1
    texts = []
    for package, versions in counts.items():
        several = len(versions) > 1
        each = (f"{v} ({n} runs)" if several else v for v, n in sorted(versions.items()))
        texts.append(f"{package} {', '.join(each)}")
    return texts


def _machines(results: Mapping[str, Result]) -> str:
    kinds = Counter((result.spec.device, result.cost.threads) for result in results.values())
    texts = [
        f"{device}, {threads} thread{'s' if threads != 1 else ''}"
        + (f" ({count} runs)" if len(kinds) > 1 else "")
        for (device, threads), count in sorted(kinds.items())
    ]
    return "; ".join(texts)


def _first(plan: PlanTable) -> Comparison:
    return next(iter(plan.tables.values()))
