"""`undrift graph`: graphs larger than memory, in folders."""

from pathlib import Path

from undrift.cli.console import say, working
from undrift.cli.options import GraphColumns, group

AT_FIRST = GraphColumns()


def import_(
    nodes: Path, edges: Path, /, *, out: Path, columns: GraphColumns = AT_FIRST, memory: float = 4.0
) -> None:
    """Make a graph folder of a table of nodes and a table of edges, of any size.

    Nothing is held in memory as a whole. After an interruption, whatever its cause, the same
    command goes on. Ids are numbers or names. Without --label the column "label" holds the
    classes, where there is one.

    :param nodes: A .parquet, .csv or .tsv file with a row per node, or a folder of such files.
    :param edges: The same with a row per edge.
    :param out: The folder to make.
    :param memory: GB that this command, and later each worker, may use; it decides the sizes of
        pieces.
    """
    from undrift.scale.importing import import_graph

    how = {name: value for name, value in columns.given().items() if value is not None}
    with working("importing") as progress:
        import_graph(nodes, edges, out, **how, memory=memory, progress=progress)
    show(out)
    say(f"next: undrift learner observe LEARNER {out}")


def show(folder: Path, /) -> None:
    """Show what is in a graph folder: nodes, edges, classes, pieces, left-overs.

    :param folder: The graph's folder.
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
    if left := graph.left_over():
        say(
            f"unfinished steps: {size(left)} in {graph.work}; the command that was interrupted "
            "goes on from there, or delete it"
        )


def verify(folder: Path, /) -> None:
    """Compare every byte of a graph folder with the checksums of its import.

    :param folder: The graph's folder.
    """
    from undrift.scale.graph_folder import GraphFolder

    graph = GraphFolder(folder)
    with working("verifying") as progress:
        graph.verify(progress)
    say(f"{folder}: {len(graph.manifest.files):,} files have the checksums of their import")


graph = group(
    "graph",
    (import_, show, verify),
    """
import nodes.parquet edges.parquet --out papers
import nodes.csv edges/ --out papers --id paper --label field --directed
import nodes.parquet edges.parquet --out papers --memory 16
show papers
verify papers
""",
)
