"""Streams of whole graphs and of links: methods on sums, and trained methods on the same rows.

`python -m paper.whole_graphs --seeds 0` writes what is not there yet into results/whole-graphs: a
file per stream, method and seed. `--page docs/whole-graphs.md` puts the table of its streams into
the page, and so `--page docs/links.md`. Every method has its default settings.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev

from undrift import evaluate, load_stream, make_learner
from undrift.evaluation.detection import open_world
from undrift.evaluation.metrics import mean_of
from undrift.storage.files import write_atomically
from undrift.streams.stream import TaskStream

PAGES = {
    "whole-graphs": ("aromaticity-cl", "aromaticity-hard-cl", "enzymes-cl"),
    "links": ("bitcoin-otc-cl",),
}
METHODS = ("propagation", "sgc-ridge", "adr", "lwf", "ewc", "bare", "joint")
SHOWN = {
    "a_avg": "A_avg",
    "a_f": "A_f",
    "forgetting": "Forgetting",
    "auroc": "AUROC of unknown classes",
    "kept_mb": "Kept, MB",
    "seconds": "Seconds",
}
BEGIN, END = "<!-- table of results -->", "<!-- end of the table -->"


def run(stream: TaskStream, method: str, seed: int = 0) -> dict[str, float]:
    """Class accuracy in percent, how well classes to come are noticed, what is kept, the cost."""
    learner = make_learner(method, seed=seed)
    found = evaluate(learner, stream, measures=[open_world])
    matrix = found.by_class
    measures = {
        "a_avg": matrix.a_avg,
        "a_f": matrix.a_f,
        "forgetting": matrix.forgetting,
        "auroc": mean_of(found.series["auroc"]),
        "kept_mb": learner.nbytes() / 1e6,
        "seconds": sum(found.seconds.values()),
    }
    return {name: round(value, 3) for name, value in measures.items()}


def table(folder: Path, streams: Sequence[str]) -> str:
    """Means over seeds, with the deviation of accuracies, in Markdown."""
    lines = ["| Stream | Method | Seeds | " + " | ".join(SHOWN.values()) + " |"]
    lines.append("|---|---|" + "---:|" * (1 + len(SHOWN)))
    for stream in streams:
        for method in METHODS:
            paths = sorted(folder.glob(f"{stream}-{method}-[0-9].json"))
            runs = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
            if runs:
                cells = [_cell([each[key] for each in runs], key) for key in SHOWN]
                first = f"`{stream}` | `{method}` | {len(runs)}"
                lines.append(f"| {first} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(values: Sequence[float], key: str) -> str:
    deviation = f" ± {stdev(values):.1f}" if len(values) > 1 and key.startswith("a_") else ""
    return f"{fmean(values):.1f}{deviation}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write what is not there yet, or the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", nargs="*", default=sum(PAGES.values(), ()))
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--out", type=Path, default=Path("results/whole-graphs"))
    parser.add_argument("--page", type=Path, help="put the table into this page; nothing is run")
    args = parser.parse_args(arguments)
    if args.page is not None:
        before, rest = args.page.read_text(encoding="utf-8").split(BEGIN)
        made = table(args.out, PAGES[args.page.stem])
        text = f"{before}{BEGIN}\n\n{made}\n\n{END}{rest.split(END)[1]}"
        args.page.write_text(text, encoding="utf-8")
        return
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.streams:
        for seed in args.seeds:
            stream = load_stream(name, seed=seed)
            for method in args.methods:
                path = args.out / f"{name}-{method}-{seed}.json"
                if not path.exists():
                    found = run(stream, method, seed)
                    write_atomically(path, (json.dumps(found, indent=1) + "\n").encode())
                    sys.stdout.write(f"{name} {method} {seed}: {found}\n")
                    sys.stdout.flush()


if __name__ == "__main__":
    main()
