"""`undrift learner`: a learner in a folder, month after month."""

from pathlib import Path

from undrift.cli import learner_verbs as verbs
from undrift.cli.console import output, progress_console, say, working
from undrift.cli.learner_verbs import opened
from undrift.cli.options import AS_LAST, Columns, LearnerPath, Paths, Whole, batches, group
from undrift.errors import InputError

BROKEN = 3
"""The exit code of an audit that is not passed, be it that something could not be judged."""


def show(folder: LearnerPath, /) -> None:
    """Show what a learner knows: method, classes, columns, batches."""
    from undrift.folder.store import current
    from undrift.reporting.learner import class_table, fact_table

    found = current(folder)  # without torch
    output().print(fact_table(found, str(folder)))
    if found.record.row == "node":
        output().print("", class_table(found))


def history(folder: LearnerPath, /) -> None:
    """Show every step of a learner: when, what, how much."""
    from undrift.folder.record import complete, read_history, with_merged
    from undrift.folder.store import current
    from undrift.reporting.learner import history_table

    found = current(folder)
    try:
        complete(folder, found.record.entry, found.sha, dry=True)
    except InputError:
        if current(folder).sha == found.sha:  # else a writer was faster
            raise
    output().print(history_table(with_merged(found.record, read_history(folder))))


def verify(folder: LearnerPath, /) -> None:
    """Hash and read everything in a folder again; complete what a killed process left undone.

    Says how far rounding may have moved scores from those of one training on all batches.
    """
    from undrift.learners.reading import EXACT

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
            progress_console(),
        )


def audit(folder: LearnerPath, /, *, data: Paths = (), columns: Columns = AS_LAST) -> None:
    """Show what is kept, how many rows stand behind it, and what it gives away.

    With batches that were observed the attacks are tried on them; without any they are foretold
    from counts. Exit code: 0 where it is passed. 3 where it is not: a threshold is broken ("not
    passed"), or something that is kept could not be judged ("not judged").

    :param data: NODES EDGES of a batch as it was observed, or one .npz or .pt file, or CLICKS;
        repeat it for more.
    """
    from undrift.reporting.learner import audit_tables

    with working("auditing"):
        living = opened(folder)
        found = living.audit(*batches(living, data), **columns.given())
    for table in audit_tables(found):
        output().print(table, "")
    say(f"{folder}: {found.verdict}")
    if not found.passed:
        raise SystemExit(BROKEN)


def report(folder: LearnerPath, /, *, out: Path | None = None) -> None:
    """Write one HTML page of a learner's life: plots over its steps, audit, what was forgotten.

    It has everything inside and needs no network.

    :param out: The file to write; without it FOLDER-report.html, here.
    """
    from undrift.folder.predictions import check_target
    from undrift.reporting.learner_page import learner_page
    from undrift.storage.files import write_atomically

    found, name = opened(folder), folder.resolve().name
    path = Path(f"{name}-report.html") if out is None else out
    check_target(path)
    with working("reporting"):
        page = learner_page(found.show(), found.history(), found.audit(), f"{name}: a learner")
        write_atomically(path, page.encode())
    say(f"report: {path}")


def export(folder: LearnerPath, /, out: Path, *, least_rows: Whole | None = None) -> None:
    """Write the learner as one file for undrift.load, without history, key and hashes.

    Of a recommender, items and pairs of few sessions are left out; NextItem.opened and Ease.opened
    read the file.

    :param out: The file to write; the word --out may be left out.
    :param least_rows: Of a recommender: how many sessions are not few, if not as the folder has it.
    """
    found = opened(folder)
    if least_rows is not None and found.row == "node":
        raise InputError(
            f"{folder} learns from nodes, and has its least number of rows from when it was made; "
            "leave out --least-rows"
        )
    found.export(out, **({} if least_rows is None else {"least_rows": least_rows}))
    say(f"learner: {out}")


learner = group(
    "learner",
    (
        *(verbs.new, verbs.observe, verbs.predict, verbs.recommend),
        *(verbs.forget, verbs.revise, verbs.merge),
        *(show, history, verify, audit, report, export),
    ),
    """
new desk
new desk --method propagation --set hops=4 --remember-nodes
new second-site --like desk
new shop --method next-item
new second-site --plan desk/plan.json
observe desk january/nodes.csv january/edges.csv
observe desk feb-nodes.parquet feb-edges.parquet --id account --label kind
observe desk nodes.csv edges.csv --alias "Mule=mule" --ignore comment
observe desk graph.npz
observe ward patients.csv --label disease
observe desk papers --workers 4
observe shop march.csv --user-column customer
predict desk nodes.csv edges.csv --out predictions.csv
predict desk nodes.csv edges.csv --nodes a17 a18 --out two.parquet
predict desk nodes.csv edges.csv --probabilities --out every-class.csv
predict desk nodes.csv edges.csv --unknown 0.05 --groups --out strangers.csv
predict desk papers --out predictions.parquet --dask tcp://host:8786
recommend shop history.csv --k 20
recommend shop history.parquet --out items.csv --exclude-history
forget desk january/nodes.csv january/edges.csv
forget desk papers --workers 4
forget desk --node a17
forget ward --node p12 --batch patients.csv
forget desk --node a17 --batch jan-nodes.csv jan-edges.csv --batch feb.npz
forget shop --session s17 --batch march.csv
forget shop --user u9 --batch march.csv --batch april.csv
forget shop --item tea --batch march.csv
revise desk old/nodes.csv old/edges.csv new/nodes.csv new/edges.csv
merge both desk second-site
show desk
history desk
verify desk
audit desk
audit desk --data january/nodes.csv january/edges.csv --data feb.npz
report desk
report desk --out desk.html
export desk learner.safetensors
export shop shop.safetensors --least-rows 10
""",
)
