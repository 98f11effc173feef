"""How well anomalous workers of Tolokers are ranked, and the table of `docs/anomalies.md`.

`python -m paper.anomalies --seeds 0 1` writes a file per seed into results/anomalies, and leaves
those that are there. `--page docs/anomalies.md` puts the table of all files into the page.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from paper.novelty_study import BEGIN, END
from undrift.experiments.run import execute, prepare
from undrift.experiments.spec import RunSpec
from undrift.storage.files import write_atomically
from undrift.streams.arrival import BY_CLASS

STREAM, BATCHES = "tolokers-cl", "online:batch=1024,context=seen"
KEYS = ("anomaly_auroc", "anomaly_ap")
ROWS = {
    "normal workers alone (after T0)": (BY_CLASS, 0, ("propagation", "joint")),
    "then banned ones, as a second task (after T1)": (BY_CLASS, 1, ("propagation", "joint")),
    "both come back: after 1 of 12 batches": (BATCHES, 0, ("propagation",)),
    "both come back: after all 12": (BATCHES, -1, ("propagation",)),
}
"""What is known, as an arrival and a step, and the methods."""

Found = dict[str, dict[str, dict[str, float]]]


def study(seed: int, stream: str = STREAM) -> Found:
    """AUROC and average precision of each method, row by row."""
    found: Found = {}
    series = {}
    for title, (arrive, step, methods) in ROWS.items():
        for method in methods:
            if (arrive, method) not in series:
                spec = RunSpec(stream=stream, arrive=arrive, method=method, seed=seed)
                with TemporaryDirectory() as folder:
                    series[arrive, method] = execute(prepare(spec), Path(folder)).series
            told = {key: round(series[arrive, method][key][step] or 0.0, 3) for key in KEYS}
            found.setdefault(title, {})[method] = told
    return found


def table(folder: Path) -> str:
    """Means over the seeds that have a file."""
    seeds: list[Found] = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    lines = ["| what is known | method | AUROC | over seeds | average precision |"]
    lines.append("|---|---|---:|---:|---:|")
    for title, (_, _, methods) in ROWS.items():
        for method in methods:
            each = [[found[title][method][key] for found in seeds] for key in KEYS]
            spread = f"{min(each[0]):.1f} to {max(each[0]):.1f}"
            first = title if method == methods[0] else ""
            cells = f"{fmean(each[0]):.1f} | {spread} | {fmean(each[1]):.1f}"
            lines.append(f"| {first} | `{method}` | {cells} |")
    return "\n".join(lines)


def page_with(text: str, folder: Path) -> str:
    """A page with the table of results put in."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table(folder)}\n\n{END}{rest.split(END)[1]}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write what is not there yet, or the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2, 3, 4])
    parser.add_argument("--out", type=Path, default=Path("results/anomalies"))
    parser.add_argument("--page", type=Path, help="put the table into this page; nothing is run")
    args = parser.parse_args(arguments)
    if args.page is not None:
        text = args.page.read_text(encoding="utf-8")
        args.page.write_text(page_with(text, args.out), encoding="utf-8")
        return
    args.out.mkdir(parents=True, exist_ok=True)
    for seed in args.seeds:
        path = args.out / f"{seed}.json"
        if not path.exists():
            write_atomically(path, (json.dumps(study(seed), indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
