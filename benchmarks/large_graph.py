"""A graph of any size as Parquet tables, drawn by DuckDB without ever being in memory.

Generated data, not a benchmark of the field: 20 classes with a mean each and noise around it;
seven of ten edges stay within a class.
"""

from pathlib import Path

CLASSES = 20


def write_large_graph(
    folder: Path,
    nodes: int,
    edges: int,
    features: int = 64,
    *,
    labelled: int = 10,
    classes: int = CLASSES,
    memory: int = 2,
) -> tuple[Path, Path]:
    """`nodes.parquet` and `edges.parquet`; a node in `labelled` has its class.

    Every number is a hash of its place, so the same sizes give the same tables. Ids are 64-bit.
    """
    import duckdb

    folder.mkdir(parents=True, exist_ok=True)
    to_nodes, to_edges = folder / "nodes.parquet", folder / "edges.parquet"
    columns = ", ".join(
        f"(0.35 * sin((i % {classes}) * 12.9898 + {j} * 78.233) "
        f"+ {_uniform(f'i * {features} + {j}')} - 0.5)::FLOAT AS x{j}"
        for j in range(features)
    )
    label = f"CASE WHEN hash(i + 77) % {labelled} = 0 THEN 'kind ' || (i % {classes}) END"
    start = f"(hash(e) % {nodes})::BIGINT"
    anyone = f"(hash(e + 1000000007) % {nodes})::BIGINT"
    alike = f"((hash(e + 1000000007) % {nodes // classes}) * {classes})::BIGINT + s % {classes}"
    friend = f"CASE WHEN {_uniform('e + 5')} < 0.7 THEN {alike} ELSE {anyone} END"
    numbers = f"SELECT range AS i FROM range({nodes})"
    drawn = f"SELECT s, {friend} AS t FROM (SELECT range AS e, {start} AS s FROM range({edges}))"
    queries = {
        to_nodes: f"SELECT {_id('i')} AS id, {label} AS label, {columns} FROM ({numbers})",
        to_edges: f"SELECT {_id('s')} AS source, {_id('t')} AS target FROM ({drawn})",
    }
    with duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = '{memory}GB'")
        connection.execute("SET preserve_insertion_order = false")
        for path, query in queries.items():
            if not path.is_file():
                part = path.with_suffix(".part")
                connection.execute(f"COPY ({query}) TO '{part}' (FORMAT parquet)")
                part.rename(path)
    return to_nodes, to_edges


def _uniform(value: str) -> str:
    """A number in 0..1 for every value."""
    return f"((hash({value}) % 16777216) / 16777216.0)"


def _id(node: str) -> str:
    """An id that is neither small nor from 0."""
    return f"(({node} * 7919 + 13) * 1000003)"
