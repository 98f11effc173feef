"""Tables of clicks: what is read from them, the rules, and the sentences."""

from datetime import timedelta

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from undrift.errors import InputError
from undrift.recommend import as_interactions

GOOD = {"session": ["t", "s", "s"], "item": ["cup", "cup", "tea"], "time": [1.0, 9.0, 3.0]}


def clicks(x, **how):
    found = as_interactions(x, **how)
    items = found.items[found.item].tolist()
    return list(zip(found.sessions[found.session].tolist(), items, strict=True))


def test_the_same_clicks_from_any_table(tmp_path) -> None:
    wanted = [("s", "tea"), ("s", "cup"), ("t", "cup")]
    text = "session,item,time\nt,cup,2021-01-01\ns,cup,2021-01-09\ns,tea,2021-01-03\n"
    (tmp_path / "march.csv").write_text(text)
    arrays = {name: np.array(column) for name, column in GOOD.items()}
    moments = arrays["time"].astype("datetime64[D]")
    tensors = as_interactions(([0, 1, 1], [0, 0, 1], torch.tensor(GOOD["time"]).requires_grad_()))
    assert tensors.item.tolist() == [0, 1, 0]
    for x in (GOOD, arrays, tuple(GOOD.values()), {**arrays, "time": moments}):
        assert clicks(x) == wanted
    assert clicks(tmp_path / "march.csv") == wanted
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table(GOOD), tmp_path / "march.parquet")
    assert clicks(tmp_path / "march.parquet") == clicks(pa.table(GOOD)) == wanted


def test_rules_for_imperfect_tables() -> None:
    twice = {name: [*column, column[0]] for name, column in GOOD.items()}
    assert clicks(twice) == clicks(GOOD)  # one click, written twice
    assert clicks((["s", "s"], ["tea", "tea"])) == [("s", "tea")] * 2  # without times: two clicks
    assert clicks((["s", "s"], ["tea", "cup"], [1, 1])) == [("s", "tea"), ("s", "cup")]
    graph = as_interactions(sp.csr_matrix([[0, 1], [0, 0], [2, 1]]))
    assert (graph.ordered, graph.sessions.tolist()) == (False, ["0", "2"])
    edges = np.array([[0, 2, 2], [1, 0, 1]])  # the same edges, as PyG has them
    assert as_interactions(edges).digest == graph.digest
    # a text that is filled up with NULs, as C has it; NumPy cannot tell it from the other
    assert as_interactions((["s", "s"], ["tea", "tea\0"])).items.tolist() == ["tea"]
    # one way to write a name: 1.0 of a CSV is the 1 of another file, and two forms of é are one
    names = as_interactions((["s"] * 6, [1, "1.0", "01", "é", "e\u0301", "x" * 10**5]))
    assert names.items.tolist() == ["01", "1", "x" * 10**5, "é"]
    assert names.items.nbytes < 100  # a long name costs the others nothing
    # the digest knows the order of clicks, not of the rows of a table
    digests = {as_interactions(x).digest for x in (GOOD, twice, {**GOOD, "time": [1, 3, 9]})}
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("x", "told"),
    [
        ((["s", "s"], ["a", np.datetime64("NaT")]), "row 2 of the arrays names no item"),
        ((["s", "s"], [["a"], ["b"]]), "a name is one text or number"),
        ([["tea", "cup"], ["tea", "pot"]], "a basket is a row per item"),
        (np.array([[1, 1, 0], [1, 1, 1]]), "scipy.sparse.csr_matrix"),
        (np.eye(3), "scipy.sparse.csr_matrix"),
        ({**GOOD, "time": [1.0, float("nan"), 2.0]}, "row 2 of the table has no finite time"),
        ({**GOOD, "time": ["", "2021-01-01", "7"]}, "row 1 of the table has no finite time"),
        ((["s"], ["a"], [[1.0]]), "times must be a list"),
        ({**GOOD, "item": ["a", "\0", "b"]}, "row 2 of the table names no item"),
        ({**GOOD, "session": [None, "s", "s"]}, "row 1 of the table names no session"),
        ({"session": ["s"], "item": ["a"]}, "say time=None"),
        ({"session": [], "item": [], "time": []}, "has no rows"),
        ((["s"], ["a", "b"]), "different lengths"),
        ((np.array([0, -1]), np.array([1, 2])), "session -1 in row 2 of the arrays is negative"),
        (sp.csr_matrix([[1, -1]]), "not above 0"),
        (3, "cannot read interactions from a int"),
    ],
)
def test_each_bad_table_gets_one_sentence(x, told) -> None:
    with pytest.raises(InputError, match=told) as caught:
        as_interactions(x)
    assert "\n" not in str(caught.value)


def test_a_bipartite_graph_of_pyg() -> None:
    data = pytest.importorskip("torch_geometric.data")
    edges, graph = torch.tensor([[0, 2, 2], [1, 0, 1]]), data.HeteroData()
    graph["user", "likes", "item"].edge_index = edges
    alike = edges, graph, data.Data(edge_index=edges)
    assert len({as_interactions(x).digest for x in alike}) == 1
    graph["item", "liked", "user"].edge_index = edges.flip(0)
    with pytest.raises(InputError, match="2 kinds of edges"):
        as_interactions(graph)


def test_periods_by_column_by_time_and_by_batch() -> None:
    rows = {**GOOD, "month": [1, 2, 2]}
    assert as_interactions(rows, period="month").periods.tolist() == [2, 1]
    assert as_interactions(GOOD, period=3.0).periods.tolist() == [1, 0]  # of the first click
    assert as_interactions(GOOD).in_period(7).periods.tolist() == [7, 7]
    with pytest.raises(InputError, match="must be whole numbers"):
        as_interactions(GOOD).in_period(1.5)  # type: ignore[arg-type]
    for months in (["1", "inf", "2"], [1, 1e300, 2]):
        with pytest.raises(InputError, match=r"must be whole numbers|lost the last digits"):
            as_interactions({**GOOD, "month": months}, period="month")
    for rows, period in (((["s"], ["a"]), 2.0), (GOOD, timedelta(30))):
        with pytest.raises(InputError, match="needs a time for every click"):
            as_interactions(rows, period=period)


def test_cases_are_all_clicks_after_the_first() -> None:
    found, targets = as_interactions((list("sssst"), list("abcab"))).cases(most=2)
    assert [found.names(i) for i in range(len(found))] == [["a"], ["a", "b"], ["b", "c"]]
    assert targets.tolist() == [1, 2, 0]
