"""`README.md` of a folder: what is kept and what it gives away, for whoever answers for it."""

import json

from undrift.folder.classes import WAYS
from undrift.folder.notice import sentences
from undrift.folder.plan_file import plan_file
from undrift.folder.record import Record
from undrift.formatting import counted, percent, size
from undrift.learners.base import Learner
from undrift.learners.registry import METHODS
from undrift.privacy.attacks import kept_sums
from undrift.privacy.audit import Audit, audit, lines


def widest(learner: Learner) -> int:
    """The columns of the widest sum of products; 0 without any."""
    return max((each.columns for each in kept_sums(learner) if each.has_products), default=0)


def card(record: Record, learner: Learner) -> str:
    """The text, a function of what the folder holds."""
    entry = record.entry
    kept = METHODS[learner.name].keeps if learner.name in METHODS else learner.keeps
    examples = "No node, edge or feature as such; but a sum over few nodes gives them away."
    if record.private:
        examples = "With noise: see Privacy."
    elif learner.keeps_examples:
        examples = "**Among it are examples: nodes of the data, or what stands for them.**"
    serve = "so that `forget --node` can say which batches\nhold one"
    if record.private:
        serve = "so that no node is released\ntwice"
    remembered = (
        f"Keyed hashes of the ids of all nodes, {serve}; "
        "who has the key and an id can tell whether it was there."
        if record.remember_nodes
        else "No ids of nodes, and no hashes of them."
    )
    older = (
        f"The {record.keep} states before this one are kept as well. **Two states give away what\n"
        "came between them**: of a small batch, its rows."
        if record.keep
        else "Older states are deleted after each step, because two states give away what came\n"
        "between them: of a small batch, its rows. The same holds for a copy that you keep."
    )
    counts = "" if record.private else " with counts"
    columns = "known by position" if record.columns is None else "known by name"
    files, given = "NODES EDGES", '("nodes.csv", "edges.csv")'
    units = ", and the median and spread of every column" if record.scale == "robust" else ""
    names = "classes and columns"
    if learner.encoding_ is not None:  # tables have no edges
        files, given = "TABLE", '"table.csv"'
        units, names = ", and what columns mean", "classes, columns and categories, rare ones too"
    return f"""\
# A learner of undrift

Method: `{learner.name}`. {counted(len(record.batches), "batch", "batches")} in
{counted(len(record.classes), "class", "classes")}, {record.width or 0} columns of features
({columns}).
Last step: {entry.step}, `{entry.verb}`, {entry.time}.

## What is kept

- {kept} ({size(learner.nbytes())}). {examples}
- {remembered}
- The names of {names}, and per batch a keyed hash of its data{counts}
  (`history.jsonl`). The key is in `key`: without it the hashes tell nothing; with it one can test
  whether data that one has was observed. Keep it from others, and give it to sites that merge.

{_guards(record)}

{older}
What the first batch fixed for all rows (the feature map{units}) stays when that batch is
forgotten.
{_encoding(learner)}
## Privacy

{_privacy(record, learner, files)}
## Classes

{_classes(record)}
{_accuracy(record)}{_noticed(record)}{_foretold(record)}
## How to use it

    undrift learner predict THIS {files} --out predictions.csv
    undrift learner verify THIS

    import undrift
    undrift.LearnerFolder("THIS").predict({given})
    undrift.load("THIS")    # the learner alone; its class ids are in learner.json

This page is written anew after each step.
"""


def _guards(record: Record) -> str:
    if record.private:
        return "Noise hides small classes: none is refused."
    least = f"A new class with fewer than {record.least_rows} training nodes"
    text = f"{least}: {WAYS[record.small_classes]}."
    held = [held for held in record.batches if held.instead]
    if held:
        names = sorted({name for each in held for name in each.instead})
        batches = counted(len(held), "batch", "batches")
        text += f"\nSo it was in {batches}: {', '.join(map(_cell, names))}."
    return text


def _privacy(record: Record, learner: Learner, files: str) -> str:
    """What is known of what the state gives away, from the state alone."""
    found = audit(learner, least_rows=record.least, names=record.names)
    if not found.kept:
        return "Nothing is kept yet.\n"
    columns = 0 if record.private else widest(learner)
    few = [held.rows for held in record.batches if held.rows < columns]
    text = "".join(f"- {_cell(line)}\n" for line in lines(found))
    if few:
        text += (
            f"- Batches with fewer rows than the {columns:,} columns of the widest sum:\n"
            f"  {len(few)} of {len(record.batches)}, the smallest of {counted(min(few), 'row')}.\n"
            "  Whoever has the states before and after such a step can compute its rows.\n"
        )
    return f"Audit: **{_cell(found.verdict)}**.\n\n{text}\n{_bound(record, found, files)}"


def _bound(record: Record, found: Audit, files: str) -> str:
    """For whom and for what the bound of noise holds, if there is one."""
    if not found.bound:
        return f"""\
Whoever reads the state can find this too: it is no bound. `undrift learner audit THIS --data
{files}` tries the attacks on data that was observed.
"""
    once = (
        "Nobody has checked that: it is assumed."
        if record.assumes_disjoint
        else "Hashes of node ids are remembered, and a second release is refused."
    )
    kept = (
        "The state in this folder also has a hash for every node: hand out the export only."
        if record.remember_nodes
        else "This page, `learner.json` and `history.jsonl` have no count of the data either."
    )
    return f"""\
The bound holds for everyone who is in one batch at most. {once}
It is for what `undrift learner export` writes. {kept}
Never hand out `key`, nor `begun.json` where there is one: with them noise and hashes can be undone.
"""


def _encoding(learner: Learner) -> str:
    """What the columns of tables without edges mean; `columns.json` has all of it."""
    if learner.encoding_ is None:
        return ""
    columns = "".join(f"- {' '.join(line.split())}\n" for line in learner.encoding_.lines())
    return f"\nColumns, as centre +- spread or by their categories (`columns.json`):\n\n{columns}"


def _classes(record: Record) -> str:
    if not record.classes:
        return "None yet.\n"
    if record.private:
        names = ", ".join(map(_cell, record.classes))
        return f"Those that may ever come, from `class_list`: {names}. None is counted.\n"
    rows = "".join(f"| {_cell(name)} | {n:,} |\n" for name, n in record.counts.items())
    return "| class | labelled nodes |\n| --- | ---: |\n" + rows


def _accuracy(record: Record) -> str:
    """How well it did, from counts alone: no node is kept to test it on."""
    right, tested = record.foresight
    if not tested:
        return ""
    return f"""
Of the labelled nodes of known classes, {right:,} of {tested:,} ({percent(right / tested)}) were
predicted right when they came, before they were learned; batches that were revised or forgotten
since are not counted.
"""


def _noticed(record: Record) -> str:
    """What the last batch that showed something showed."""
    last = next((held for held in reversed(record.batches) if held.noticed), None)
    if last is None:
        return ""
    noticed = "".join(f"- {_cell(sentence)}.\n" for sentence in sentences(last.noticed))
    return f"""
What the batch of step {last.step} showed when it came:

{noticed}
Older ones are in `history.jsonl`. What chance does is an estimate: rows share neighbours.
"""


def _foretold(record: Record) -> str:
    """What would be noticed of a class that nobody has labelled, and what cannot be told."""
    expected = record.entry.foretold
    if expected is None:
        return ""
    notes = "".join(f"- {_cell(note)}.\n" for note in expected.notes)
    if expected.detected is not None:
        notes = f"""\
- Of the nodes of a new class about {percent(expected.detected, 0)} would be called unknown, at a
  false-alarm rate of {percent(expected.rate, 0)}: the mean over known classes, each left out once.
  A rough forecast: a class unlike them is found more often, one close to a known one hardly.
{notes}"""
    return f"""
Classes that nobody has labelled yet (`predict --unknown {expected.rate:g}`), from the sums alone:

{notes}"""


def _cell(name: str) -> str:
    return " ".join(name.split()).replace("|", "\\|")


def texts_of(record: Record, learner: Learner) -> tuple[str | None, ...]:
    """The card, the plan that is in force and the encoding of tables, which `scale` takes."""
    encoding = {} if learner.encoding_ is None else learner.encoding_.as_plain()
    columns = f"{json.dumps(encoding, indent=1, ensure_ascii=False)}\n" if encoding else None
    return card(record, learner), plan_file(record, learner), columns
