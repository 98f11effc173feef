"""How well novelty tells nodes of the next task from test nodes of known classes.

`python -m paper.novelty_study cs-cl --seeds 0 1 --trained --device cuda` writes a file per stream
and seed into results/novelty, and leaves those that are there; `--again` makes what novelty gives
anew in them, and leaves the other methods' numbers. `--page docs/novelty.md` puts the table of all
files into the page. Unknown are the nodes of the next task, in the graph of all tasks
so far and the next. `--gnnsafe` adds GNNSafe's detector to the files that are there.

`--leave-out photo-cl cs-cl` runs GNNSafe's protocol instead: classes above 4 are known, a tenth of
their nodes is labelled, those below 4 are unknown, and the whole graph is there from the start.

`--few-edges` measures the false alarms of batches with fewer edges than what was learned.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from paper import gnnsafe
from paper.tuned_joint import WholeStream
from undrift import Joint, Learner, Propagation, load_stream
from undrift.evaluation.detection import auroc
from undrift.graphs import Graph
from undrift.learners.novelty import smoothed
from undrift.storage.files import write_atomically
from undrift.streams.stream import TaskStream

REAL = ["cs", "physics", "computers", "photo", "coraml", "citeseer", "dblp"]
STREAMS = tuple(f"{name}-cl" for name in (*REAL, "squirrel", "actor", "tolokers"))
ALARMS = 0.05
RATES = {"alarms at 1 %": 0.01, "alarms": ALARMS, "alarms at 20 %": 0.2}
BEGIN, END = "<!-- table of results -->", "<!-- end of the table -->"
RATES_OF = "Called unknown, in percent, and processor time of novelty over that of `predict`:"
FEW = "False alarms in percent where 5 % were asked for, of a learner of all tasks but the last:"
BETWEEN = "Under GNNSafe's protocol (label leave-out, means over five seeds):"
_COLUMNS = {
    "own": "AUROC: novelty",
    "joint softmax": "softmax",
    "joint energy": "energy",
    "joint energy over edges": "energy over edges",
    "gcn energy over edges": "GNNSafe",
}
_SHARES = {
    "alarms at 1 %": "False alarms at 1 %",
    "alarms": "at 5 %",
    "range": "at 5 %, single tasks",
    "alarms at 20 %": "at 20 %",
    "detected": "Detected",
    "expected": "Foretold",
    "cost": "Time",
}


def exam(stream: TaskStream, t: int) -> tuple[Graph, Tensor, Tensor]:
    """The graph after task t with the next task in it, its unknown nodes, known test nodes."""
    nodes = stream.nodes(range(t + 2))
    unknown = stream.task_of[nodes] == t + 1
    return stream.graph.subgraph(nodes), unknown, stream.test[nodes] & ~unknown


def study(
    stream: TaskStream,
    seed: int = 0,
    device: str = "cpu",
    *,
    trained: bool = False,
    rivals: bool = True,
) -> Iterator[dict[str, Any]]:
    """A row after every task but the last; without `rivals` of novelty alone."""
    learner, whole = Propagation(device=device), WholeStream.of(stream)
    for t in range(len(stream) - 1):
        learner.observe(stream.task(t)).settle()
        graph, unknown, known = exam(stream, t)
        report = learner.novelty_report(ALARMS)
        learner.predict(graph)  # the first call also makes what both use
        start = time.process_time()
        learner.predict(graph)
        predicted = time.process_time()
        novelty = learner.novelty(graph)
        judged = time.process_time()
        each = {"own": learner.strangeness(graph)}
        others: dict[str, Learner] = {"ridge": learner} if rivals else {}
        if trained:
            others["joint"] = Joint(seed=seed, device=device).observe(whole.task(t))
        for name, rival in others.items():
            each[f"{name} softmax"] = rival.strangeness(graph, kind="softmax")
            each[f"{name} energy"] = energy = rival.strangeness(graph, kind="energy")
            each[f"{name} energy over edges"] = smoothed(graph, energy, 0.5)  # as GNNSafe does
        yield {
            "task": t,
            "classes": len(learner.classes_),
            "auroc": {k: round(auroc(s[known], s[unknown]), 3) for k, s in each.items()},
            **{name: _share(novelty[known] > 1 - rate) for name, rate in RATES.items()},
            "detected": _share(novelty[unknown] > 1 - ALARMS),
            "expected": None if report is None or report.mean is None else 100 * report.mean,
            "cost": round((judged - predicted) / (predicted - start), 3),
        }


def _share(called: Tensor) -> float:
    return round(100 * float(called.double().mean()), 3)


def again(rows: list[dict[str, Any]], made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with what novelty gives made anew."""
    return [
        {**old, **new, "auroc": old["auroc"] | new["auroc"]}
        for old, new in zip(rows, made, strict=True)
    ]


def beside(stream: TaskStream, seed: int, rows: list[dict[str, Any]], device: str = "cpu") -> None:
    """Add the AUROC of GNNSafe's detector to the rows of a stream."""
    whole = WholeStream.of(stream)
    for t, row in enumerate(rows):
        task = whole.task(t)
        classes = torch.tensor(task.classes)
        places = torch.searchsorted(classes.sort().values, task.labels)
        validation = task.val if bool(task.val.any()) else task.train
        gcn = gnnsafe.trained(
            task.graph.to(device), places, task.train, validation, outputs=len(classes), seed=seed
        )
        graph, unknown, known = exam(stream, t)
        each = gnnsafe.scores(gcn, graph.to(device))
        row["auroc"] |= {k: round(auroc(s[known], s[unknown]), 3) for k, s in each.items()}


FEW_EDGES = ("coraml-cl", "citeseer-cl", "photo-cl", "dblp-cl")
ASKED = {"all": "the whole graph", "none": "no edges", "two": "batches of two nodes"}


def few_edges(stream: TaskStream, pairs: int = 75) -> dict[str, dict[str, float]]:
    """False alarms among known test nodes: in their graph, without edges, and two at a time.

    `now`, and `before` the noise of each row was looked at.
    """
    learner = Propagation()
    for t in range(len(stream) - 1):
        learner.observe(stream.task(t)).settle()
    old, known = learner.clone(), learner.known
    untold = replace(known.sums, noise=torch.full_like(known.sums.noise, math.nan))
    old.learned_ = replace(known, sums=untold)
    nodes = stream.nodes(range(len(stream) - 1))
    graph, test = stream.graph.subgraph(nodes), stream.test[nodes].nonzero().flatten()
    none = Graph.from_arrays(torch.zeros(graph.num_nodes, 1), []).adjacency
    order = torch.randperm(len(test), generator=torch.Generator().manual_seed(0))
    two = test[order[: 2 * pairs]].reshape(-1, 2).sort(dim=1).values
    alone = Graph(graph.features, none)
    found: dict[str, dict[str, float]] = {}
    for name, judge in (("before", old), ("now", learner)):
        each = torch.cat([judge.novelty(graph.subgraph(pair)) for pair in two])
        told = judge.novelty(graph)[test], judge.novelty(alone)[test], each
        found[name] = {k: _share(n > 1 - ALARMS) for k, n in zip(ASKED, told, strict=True)}
    return found


def few_edges_table(folder: Path) -> str:
    """Means over seeds, before and now."""
    heads = (f"{ASKED[key]}, {when}" for key in ASKED for when in ("before", "now"))
    lines = ["| Stream | Seeds | " + " | ".join(heads) + " |", "|---|" + "---:|" * 7]
    for name in FEW_EDGES:
        seeds = [json.loads(p.read_text()) for p in sorted(folder.glob(f"few-edges-{name}-*.json"))]
        if seeds:
            keys = [(when, key) for key in ASKED for when in ("before", "now")]
            means = (fmean(each[when][key] for each in seeds) for when, key in keys)
            cells = " | ".join(f"{mean:.1f}" for mean in means)
            lines.append(f"| `{name}` | {len(seeds)} | {cells} |")
    return "\n".join(lines)


LEFT_OUT = ("photo-cl", "cs-cl")
PUBLISHED = {"GNNSafe": (97.35, 97.23), "GNNSafe++, shown unknown nodes": (97.51, 97.89)}
"""AUROC on Photo and CS as reported by Wu et al. (ICLR 2023); read from a paper that quotes their
table (DSS-GNN, Table 2), as the table of the authors' repository is an image."""


def left_out(
    name: str, seed: int = 0, device: str = "cpu", *, rivals: bool = True
) -> dict[str, Any]:
    """AUROC under GNNSafe's protocol (its `dataset.py`), beside a GCN with its settings."""
    graph = load_stream(name, seed=0).graph
    labels, among = graph.labelled().cpu(), torch.Generator().manual_seed(seed)
    inside = (labels > 4).nonzero().flatten()
    inside = inside[torch.randperm(len(inside), generator=among)]
    given, tenth = torch.full_like(labels, -1), len(inside) // 10
    given[inside[:tenth]] = labels[inside[:tenth]]
    known, shown = inside[2 * tenth :], Graph(graph.features, graph.adjacency, given)
    learner = Propagation(device=device).observe(shown)
    each = {"own": learner.strangeness(shown)}
    if rivals:
        split = inside[:tenth], inside[tenth : 2 * tenth]
        gcn = gnnsafe.trained(shown, labels, *split, outputs=int(labels.max()) + 1, seed=seed)
        energy = learner.strangeness(shown, kind="energy")
        each["ridge energy over edges"] = smoothed(shown, energy, 0.5)
        each |= gnnsafe.scores(gcn, shown)
    called = learner.novelty(shown) > 1 - ALARMS
    return {
        "auroc": {k: round(auroc(s[known], s[labels < 4]), 3) for k, s in each.items()},
        "alarms": _share(called[known]),
        "detected": _share(called[labels < 4]),
    }


def left_out_table(folder: Path) -> str:
    """Means over seeds on both graphs, with what was published."""
    found = {
        name: [json.loads(p.read_text()) for p in sorted(folder.glob(f"left-out-{name}-*.json"))]
        for name in LEFT_OUT
    }
    lines = ["| AUROC | Photo | CS |", "|---|---:|---:|"]
    shown = {
        "own": "novelty, from sums",
        "gcn energy over edges": "GNNSafe, our run",
        "gcn energy": "energy of the same GCN",
        "gcn softmax": "largest softmax of the same GCN",
    }
    for key, title in shown.items() if all(found.values()) else ():
        means = (fmean(row["auroc"][key] for row in found[name]) for name in LEFT_OUT)
        lines.append(f"| {title} | " + " | ".join(f"{mean:.2f}" for mean in means) + " |")
    for title, (photo, cs) in PUBLISHED.items():
        lines.append(f"| {title} (published) | {photo:.2f} | {cs:.2f} |")
    return "\n".join(lines)


def table(folder: Path, columns: dict[str, str]) -> str:
    """Means over tasks, then over seeds, of every stream with files, in Markdown."""
    lines = ["| Stream | Seeds | " + " | ".join(columns.values()) + " |"]
    lines.append("|---|" + "---:|" * (len(columns) + 1))
    real: dict[str, list[float]] = {}
    for name in STREAMS:
        seeds = [json.loads(p.read_text()) for p in sorted(folder.glob(f"{name}-[0-9]*.json"))]
        if not seeds:
            continue
        values: dict[str, float | str] = {}
        alarms = [row["alarms"] for rows in seeds for row in rows if "alarms" in row]
        if alarms:
            values["range"] = f"{min(alarms):.1f} to {max(alarms):.1f}"
        for key in columns:
            found = [[row["auroc"].get(key, row.get(key)) for row in rows] for rows in seeds]
            if key == "expected":  # of two classes none can be left out
                found = [[v for v in rows if v is not None] or [None] for rows in found]
            if all(v is not None for rows in found for v in rows):
                mean = values[key] = fmean(fmean(rows) for rows in found)
                if name.removesuffix("-cl") in REAL and key != "cost":
                    real.setdefault(key, []).append(mean)
        lines.append(_line(f"`{name}` | {len(seeds)}", values, columns))
    if real:
        means = {key: fmean(found) for key, found in real.items()}
        lines.append(_line(f"mean of {len(next(iter(real.values())))} | ", means, columns))
    return "\n".join(lines)


def _line(first: str, values: Mapping[str, float | str], keys: Iterable[str]) -> str:
    each = (values.get(key, "") for key in keys)
    cells = (value if isinstance(value, str) else f"{value:.1f}" for value in each)
    return f"| {first} | " + " | ".join(cells) + " |"


def _remake(path: Path, name: str, seed: int, args: argparse.Namespace) -> None:
    found: Any = json.loads(path.read_text())
    if args.leave_out:
        (found,) = again([found], [left_out(name, seed, args.device, rivals=False)])
    else:
        stream = load_stream(name, seed=seed)
        found = again(found, list(study(stream, seed, args.device, rivals=False)))
    write_atomically(path, (json.dumps(found, indent=1) + "\n").encode())


def page_with(text: str, folder: Path) -> str:
    """A page with the tables of results put in."""
    before, rest = text.split(BEGIN)
    tables = table(folder, _COLUMNS), RATES_OF, table(folder, _SHARES)
    more = FEW, few_edges_table(folder), BETWEEN, left_out_table(folder)
    made = "\n\n".join((BEGIN, *tables, *more, END))
    return f"{before}{made}{rest.split(END)[1]}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write what is not there yet, then the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("streams", nargs="*", default=STREAMS)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2, 3, 4])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--trained", action="store_true", help="beside a trained GCN (joint)")
    parser.add_argument("--out", type=Path, default=Path("results/novelty"))
    parser.add_argument("--leave-out", action="store_true", help="GNNSafe's protocol")
    parser.add_argument("--few-edges", action="store_true", help="alarms where edges are few")
    parser.add_argument("--gnnsafe", action="store_true", help="add GNNSafe to what is there")
    parser.add_argument("--again", action="store_true", help="make novelty anew in what is there")
    parser.add_argument("--page", type=Path, help="put the tables into this page; nothing is run")
    args = parser.parse_args(arguments)
    if args.page is not None:
        text = args.page.read_text(encoding="utf-8")
        args.page.write_text(page_with(text, args.out), encoding="utf-8")
        return
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.streams:
        for seed in args.seeds:
            kind = "left-out-" * args.leave_out + "few-edges-" * args.few_edges
            path = args.out / f"{kind}{name}-{seed}.json"
            rows: list[dict[str, Any]]
            if args.gnnsafe:
                rows = json.loads(path.read_text())
                if not any("gcn energy" in row["auroc"] for row in rows):
                    beside(load_stream(name, seed=seed), seed, rows, args.device)
                    write_atomically(path, (json.dumps(rows, indent=1) + "\n").encode())
                continue
            if args.again and path.exists():
                _remake(path, name, seed, args)
                continue
            if path.exists():
                continue
            if args.few_edges:
                few = few_edges(load_stream(name, seed=seed))
                write_atomically(path, (json.dumps(few, indent=1) + "\n").encode())
                continue
            if args.leave_out:
                one = left_out(name, seed, args.device)
                write_atomically(path, (json.dumps(one, indent=1) + "\n").encode())
                sys.stdout.write(f"{name} {seed}: {one}\n")
                continue
            stream = load_stream(name, seed=seed)
            rows = list(study(stream, seed, args.device, trained=args.trained))
            write_atomically(path, (json.dumps(rows, indent=1) + "\n").encode())
            means = {k: round(fmean(row["auroc"][k] for row in rows), 1) for k in rows[0]["auroc"]}
            rates = {
                k: round(fmean(row[k] for row in rows), 2) for k in ("alarms", "detected", "cost")
            }
            sys.stdout.write(f"{name} {seed}: {means} {rates}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
