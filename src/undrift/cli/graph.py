"""`undrift graph`: graphs larger than memory, in folders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App

from undrift.cli.batches import Many
from undrift.cli.learner_verbs import Flag, say, working


def import_tables(
    nodes: Path,
    edges: Path,
    /,
    *,
    out: Path,
    id: str = "id",
    label: str | None = None,
    source: str = "source",
    target: str = "target",
    directed: Flag = False,
    ignore: Annotated[tuple[str, ...], Many] = (),
    unknown_edges: Literal["drop", "error"] = "drop",
    memory: float = 4.0,
    traceback: Flag = False,
) -> None:
    """Make a graph folder of a table of nodes and a table of edges, of any size.

    Nothing is held in memory as a whole. After an interruption, whatever its cause, the same
    command goes on.

    Parameters
    ----------
    nodes
        A .parquet, .csv or .tsv file with a row per node, or a folder of such files.
    edges
        The same with a row per edge.
    out
        The folder to make.
    id
        The column of node ids: numbers or names.
    label
        The column of classes; without it, the column "label" where there is one.
    source
        The column of the edges' sources.
    target
        The column of the edges' targets.
    directed
        Edges go one way; without it, both ways.
    ignore
        A column that is no feature; repeat it for more.
    unknown_edges
        Edges to nodes that are not in the table of nodes: drop and count them, or an error.
    memory
        GB that this command, and later each worker, may use; it decides the sizes of pieces.
    traceback
        When it fails, print where.
    """
    from undrift.scale.importing import import_graph

    with working("importing") as progress:
        import_graph(
            nodes,
            edges,
            out,
            id=id,
            label=label,
            source=source,
            target=target,
            undirected=not directed,
            ignore=ignore,
            unknown_edges=unknown_edges,
            memory=memory,
            progress=progress,
        )
    show(out)
    say(f"next: undrift learner observe LEARNER {out}")


def show(folder: Path, /, *, traceback: Flag = False) -> None:
    """Show what is in a graph folder: nodes, edges, classes, pieces, left-overs.

    Parameters
    ----------
    folder
        The graph's folder.
    traceback
        When it fails, print where.
    """
    from undrift.formatting import counted, size
    from undrift.scale.graph_folder import GraphFolder

    graph = GraphFolder(folder)
    m = graph.manifest
    kind = "directed edges" if m.directed else "edges, each in both directions"
    say(f"{folder}: {m.nodes:,} nodes, {m.edges:,} {kind}, {m.features:,} features")
    known = f"{m.labelled:,} nodes of {len(m.classes):,} classes" if m.classes else "no nodes"
    say(f"labelled: {known}")
    say(f"degrees: at most {m.largest_degree:,}, {m.isolated:,} isolated nodes")
    if str(m.repairs):
        say(f"edges: {m.repairs}")
    blocks = f"{m.blocks:,} blocks of {m.width} columns" if m.blocks > 1 else "1 block of columns"
    shards = counted(len(m.shards), "shard")
    say(f"pieces: {blocks}, {shards} of edges, for {m.memory:g} GB of memory")
    say(f"disk: {size(graph.nbytes())}")
    left = graph.left_over()
    if left:
        say(
            f"unfinished steps: {size(left)} in {graph.work}; the command that was interrupted "
            "goes on from there, or delete it"
        )


def verify(folder: Path, /, *, traceback: Flag = False) -> None:
    """Compare every byte of a graph folder with the checksums of its import.

    Parameters
    ----------
    folder
        The graph's folder.
    traceback
        When it fails, print where.
    """
    from undrift.scale.graph_folder import GraphFolder

    graph = GraphFolder(folder)
    with working("verifying") as progress:
        graph.verify(progress)
    say(f"{folder}: {len(graph.manifest.files):,} files have the checksums of their import")


def _examples(*commands: str) -> str:
    return "For example:\n\n" + "".join(f"    undrift graph {c}\n" for c in commands)


_IMPORT = "import nodes.parquet edges.parquet --out papers"
graph = App(
    name="graph",
    help_epilogue=_examples(_IMPORT, "show papers", "verify papers"),
    help_format="plaintext",
)
graph.command(
    import_tables,
    name="import",
    help_epilogue=_examples(
        _IMPORT,
        "import nodes.csv edges/ --out papers --id paper --label field --directed",
        "import nodes.parquet edges.parquet --out papers --memory 16",
    ),
)
graph.command(show, name="show", help_epilogue=_examples("show papers"))
graph.command(verify, name="verify", help_epilogue=_examples("verify papers"))
