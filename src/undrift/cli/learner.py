"""`undrift learner`: a learner in a folder, month after month."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from undrift.cli.console import output, say, working
from undrift.cli.learner_verbs import forget, merge, new, observe, opened, predict, revise
from undrift.cli.options import AS_LAST, Columns, Folder, Several, Traceback, batches, group

BROKEN = 3
"""The exit code of an audit that is not passed, be it that something could not be judged."""


def show(folder: Folder, /, *, traceback: Traceback = False) -> None:
    """Show what a learner knows: method, classes, columns, batches."""
    from undrift.folder.store import current
    from undrift.reporting.learner import class_table, fact_table

    found = current(folder)  # without torch
    output().print(fact_table(found, str(folder)), "", class_table(found))


def history(folder: Folder, /, *, traceback: Traceback = False) -> None:
    """Show every step of a learner: when, what, how much."""
    from undrift.folder.record import read_history
    from undrift.folder.store import current
    from undrift.reporting.learner import history_table

    current(folder)  # complains where there is none
    output().print(history_table(read_history(folder)))


def verify(folder: Folder, /, *, traceback: Traceback = False) -> None:
    """Hash and read everything in a folder again; complete what a killed process left undone.

    Says how far rounding may have moved scores from those of one training on all batches.
    """
    from undrift.learners.base import EXACT

    found = opened(folder)
    with working("verifying"):
        repairs = found.verify()
        rounding = found.exactness()
    for repair in repairs:
        say(f"completed: {repair}")
    say(f"{folder}: the state, its names and {len(found.history()):,} steps agree")
    if rounding is not None:
        say(f"{folder}: rounding may have moved scores by up to {rounding:.0e} of the largest")
    if rounding is not None and rounding > EXACT:
        say(
            f"note: that is more than {EXACT:.0e}; raise gamma, or observe the batches that are "
            "left in a new folder",
            progress=True,
        )


def audit(
    folder: Folder,
    /,
    *,
    data: Annotated[tuple[Path, ...], Several] = (),
    columns: Columns = AS_LAST,
    traceback: Traceback = False,
) -> None:
    """Show what is kept, how many rows stand behind it, and what it gives away.

    With batches that were observed the attacks are tried on them; without any they are foretold
    from counts. Exit code: 0 where it is passed. 3 where it is not: a threshold is broken ("not
    passed"), or something that is kept could not be judged ("not judged").

    :param data: NODES EDGES of a batch as it was observed, or one .npz or .pt file; repeat it for
        more.
    """
    from undrift.reporting.learner import audit_tables

    with working("auditing"):
        found = opened(folder).audit(*batches(data), **columns.given())
    for table in audit_tables(found):
        output().print(table, "")
    say(f"{folder}: {found.verdict}")
    if not found.passed:
        raise SystemExit(BROKEN)


def export(folder: Folder, /, out: Path, *, traceback: Traceback = False) -> None:
    """Write the learner as one file for undrift.load, without history, key and hashes.

    :param out: The file to write; the word --out may be left out.
    """
    opened(folder).export(out)
    say(f"learner: {out}")


learner = group(
    "learner",
    (new, observe, predict, forget, revise, merge, show, history, verify, audit, export),
    """
new desk
new desk --method propagation --set hops=4 --remember-nodes
new second-site --like desk
new second-site --plan desk/plan.json
observe desk january/nodes.csv january/edges.csv
observe desk feb-nodes.parquet feb-edges.parquet --id account --label kind
observe desk nodes.csv edges.csv --alias "Mule=mule" --ignore comment
observe desk graph.npz
observe desk papers --workers 4
predict desk nodes.csv edges.csv --out predictions.csv
predict desk nodes.csv edges.csv --nodes a17 a18 --out two.parquet
predict desk nodes.csv edges.csv --probabilities --out every-class.csv
predict desk papers --out predictions.parquet --dask tcp://host:8786
forget desk january/nodes.csv january/edges.csv
forget desk papers --workers 4
forget desk --node a17
forget desk --node a17 --batch jan-nodes.csv jan-edges.csv --batch feb.npz
revise desk old/nodes.csv old/edges.csv new/nodes.csv new/edges.csv
merge both desk second-site
show desk
history desk
verify desk
audit desk
audit desk --data january/nodes.csv january/edges.csv --data feb.npz
export desk learner.safetensors
export desk --out learner.safetensors
""",
)
