"""Any graph in: PyG, NetworkX, arrays, SciPy matrices and tables."""

import contextlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from undrift import (
    Graph,
    InputError,
    Learner,
    LearnerFolder,
    Propagation,
    TaskStream,
    evaluate,
    load,
    read_tables,
)
from undrift.learners.acil import Acil
from undrift.streams.any_graph import as_batch, as_graph
from undrift.streams.task import Task, as_task

X = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
EDGES = np.array([[0, 1], [1, 2]])
ADJACENCY = sp.csr_matrix([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])  # a row per receiver
Y = [4, 2, 4]
MASK = {name: torch.arange(3) == place for place, name in enumerate(("train", "val", "test"))}


def pyg(**parts: Any) -> Any:
    pytest.importorskip("networkx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own import is not free of warnings
        data = pytest.importorskip("torch_geometric.data")
    given = {"x": torch.from_numpy(X).float(), "edge_index": torch.from_numpy(EDGES), **parts}
    return data.Data(**{name: part for name, part in given.items() if part is not None})


def check(graph: Graph, labels: list[int] | None = Y, undirected: bool = False) -> None:
    wanted = ADJACENCY + ADJACENCY.T if undirected else ADJACENCY
    assert graph.features.to_dense().tolist() == X.tolist()
    assert graph.adjacency.to_dense().tolist() == wanted.toarray().tolist()
    assert (None if graph.labels is None else graph.labels.tolist()) == labels


def test_our_own_graphs_and_tasks_are_themselves() -> None:
    graph = Graph.from_arrays(X, EDGES, Y)
    task = Task(graph, MASK["train"])
    assert as_graph(graph) is as_graph(task) is as_batch(graph) is graph
    assert as_batch(task) is as_task(task, 0) is task


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("layout", [None, "to_sparse_coo", "to_sparse_csr", "to_sparse_csc"])
@pytest.mark.filterwarnings("ignore:.*beta state")
def test_a_pyg_data(sparse: bool, layout: str | None) -> None:
    parts: dict[str, Any] = {"y": torch.tensor(Y)}
    if sparse:
        parts["x"] = torch.from_numpy(X).float().to_sparse()
    if layout is not None:  # what the transform ToSparseTensor leaves behind
        adjacency = torch.from_numpy(ADJACENCY.toarray()).float()
        parts |= {"edge_index": None, "adj_t": getattr(adjacency, layout)()}
    check(as_graph(pyg(**parts)))


@pytest.mark.parametrize("y", [torch.tensor([4, -7, 4]), torch.tensor([4.0, torch.nan, 4.0])])
def test_a_negative_or_missing_y_is_unlabelled(y: torch.Tensor) -> None:
    check(as_graph(pyg(y=y)), [4, -1, 4])
    check(as_graph(pyg()), None)


def test_a_batch_hides_labels_outside_the_training_and_validation_masks() -> None:
    data = pyg(y=torch.tensor(Y), train_mask=MASK["train"], test_mask=~MASK["train"])
    task = as_batch(data)
    assert isinstance(task, Task)
    assert task.labels.tolist() == [4, -1, -1]
    assert task.train.tolist() == [True, False, False]
    assert as_graph(data).labelled().tolist() == Y  # what predictions are compared with
    val = as_batch(pyg(y=torch.tensor([4, 4, 2]), train_mask=MASK["train"], val_mask=MASK["val"]))
    assert val.labels.tolist() == [4, 4, -1]
    assert val.val.tolist() == [False, True, False]
    assert torch.equal(as_task(data, 0).train, task.train)


def test_masks_that_leave_something_open() -> None:
    """No training mask, a training node without label, a class in validation alone."""
    open_task = as_batch(pyg(y=torch.tensor(Y), test_mask=MASK["test"]))
    assert open_task.train.tolist() == [True, True, False]
    nameless = as_batch(pyg(y=torch.tensor([4, -1, 2]), train_mask=~MASK["test"]))
    assert nameless.train.tolist() == [True, False, False]
    alone = as_batch(pyg(y=torch.tensor(Y), train_mask=MASK["train"], val_mask=MASK["val"]))
    assert not alone.val.any()
    assert alone.labels.tolist() == [4, -1, -1]


def test_other_kinds_of_pyg_are_refused_with_a_way_out() -> None:
    pyg()
    from torch_geometric.data import HeteroData

    split = pyg(y=torch.tensor(Y), train_mask=torch.ones(3, 10, dtype=torch.bool))
    with pytest.raises(InputError, match=r"10 columns.*train_mask\[:, 0\]"):
        as_batch(split)
    for many in (HeteroData(), [HeteroData(), HeteroData()]):
        with pytest.raises(InputError, match=r"HeteroData.*to_homogeneous"):
            as_graph(many)
    with pytest.raises(InputError, match=r"one label for all its nodes.*as in \[data\]"):
        as_graph(pyg(y=torch.tensor([1])))
    weighted = {"x": X.tolist(), "edge_weight": torch.ones(2)}
    check(as_graph(pyg(**weighted)), None)


@pytest.mark.parametrize("label", ["label", "y"])
def test_a_networkx_graph(label: str) -> None:
    nx = pytest.importorskip("networkx")
    g = nx.DiGraph()
    for node in range(3):
        g.add_node(node, x=X[node].tolist(), **{label: Y[node]})
    g.add_edges_from(EDGES.T.tolist())
    check(as_graph(g))
    check(as_graph(nx.Graph(g)), undirected=True)


@pytest.mark.parametrize(
    "parts",
    [
        (X, EDGES),
        (X.tolist(), EDGES.tolist()),
        (torch.from_numpy(X), torch.from_numpy(EDGES)),
        (sp.csr_matrix(X), EDGES),
        (ADJACENCY, X),
        (ADJACENCY, sp.csr_matrix(X)),
        (X, ADJACENCY),
        (sp.csr_matrix(X), ADJACENCY),
    ],
)
def test_tuples_of_arrays(parts: tuple[Any, Any]) -> None:
    check(as_graph(parts), None)
    check(as_graph((*parts, Y)))
    check(as_graph([*parts, np.array(Y)]))


def tables(kind: str, nodes: dict[str, Any], edges: dict[str, Any]) -> tuple[Any, Any]:
    if kind == "dict":
        return nodes, {name: np.array(cells) for name, cells in edges.items()}
    made = pytest.importorskip(kind)
    make = made.table if kind == "pyarrow" else made.DataFrame
    return make(nodes), make(edges)


NODES = {"id": [7, 8, 9], "a": X[:, 0].tolist(), "label": ["x", None, "w"], "b": X[:, 1].tolist()}
LINKS = {"source": [7, 8], "target": [8, 9]}


@pytest.mark.parametrize("kind", ["dict", "pyarrow", "pandas", "polars"])
def test_two_tables(kind: str) -> None:
    check(as_graph(tables(kind, NODES, LINKS)), [1, -1, 0], undirected=True)
    plain = {"id": ["7.0", "8", "9"], "v": X.tolist()}  # a column of lists, two columns of edges
    wanted = {"from": [7.0, 8.0], "to": ["8", "9"]}
    if kind == "dict":
        plain["id"] = [7.0, "8", 9]
        check(as_graph(tables(kind, plain, wanted)), None, undirected=True)


@pytest.mark.parametrize(
    ("nodes", "edges", "why"),
    [
        ({"name": [1]}, LINKS, "no column 'id'.*rename"),
        (NODES, {"a": [7], "b": [8], "c": [9]}, "a, b, c; name two of them 'source' and 'target'"),
        ({**NODES, "id": [7, 7, 9]}, LINKS, "node id '7' stands twice in the table of nodes"),
        (NODES, {"source": [7], "target": [1]}, "1 of the 1 edges.*'1' in row 1; add the node"),
        ({"id": [7, 8, 9]}, LINKS, "no column of features"),
        ({**NODES, "a": ["red", 1, 2]}, LINKS, "column 'a'.*turn words into numbers"),
        ({**NODES, "a": [None, 1, 2]}, LINKS, "column 'a'.*fill the gaps"),
        ({**NODES, "b": [1, 2]}, LINKS, "table of nodes have 3 in 'label' and 2 in 'b' rows"),
        (NODES, {"source": [float(2**60)], "target": [8]}, "'source'.*lost the last digits.*text"),
    ],
)
def test_tables_that_are_no_graph(nodes: Any, edges: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        as_graph((nodes, edges))


@pytest.mark.parametrize(
    ("x", "named"),
    [
        (3, r"builtins\.int"),
        (X, r"numpy\.ndarray"),
        ((X,), r"tuple of 1 \(ndarray\)"),
        ((NODES, X), r"tuple of 2 \(dict, ndarray\)"),
    ],
)
def test_what_is_no_graph_is_named_with_all_that_is_taken(x: Any, named: str) -> None:
    for read in (as_graph, as_batch):
        with pytest.raises(InputError, match=rf"{named}; give .*PyG Data.*NetworkX.*tables"):
            read(x)


def test_one_table_is_no_graph_yet_and_neither_are_parts_of_data() -> None:
    with pytest.raises(InputError, match=r"builtins\.dict is one table.*Graph\.from_table"):
        as_graph(NODES)
    twice = pytest.importorskip("pandas").DataFrame([[1, 2, 3]], columns=["id", "b", "b"])
    with pytest.raises(InputError, match="two columns 'b'"):
        as_graph((twice, LINKS))
    for path in ("nodes.csv", ("nodes.csv", "edges.csv"), Path("nodes.csv")):
        with pytest.raises(InputError, match=r"nodes.csv.* is no graph but a path; .*read_tables"):
            as_graph(path)
    with pytest.raises(InputError, match=r"Propagation cannot merge with dict; give another"):
        Propagation().merge(NODES)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"DataLoader.*give.*Data"):
        as_graph(torch.utils.data.DataLoader([1]))  # type: ignore[arg-type]
    data = pyg(y=torch.tensor(Y))
    with pytest.raises(InputError, match=r"give dataset\[0\]"):
        as_graph([data])
    from torch_geometric.data import Batch

    with pytest.raises(InputError, match=r"y of this PyG Batch are of nodes.*Data\(x=batch.x"):
        as_graph(Batch.from_data_list([data, data]))
    with pytest.raises(InputError, match=r"sparse tensor.*data\.adj_t"):
        as_graph(pyg(edge_index=torch.eye(3).to_sparse()))


def test_a_learner_refuses_classes_by_name() -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.path_graph(2)
    for node, name in enumerate(("mule", "fine")):
        graph.nodes[node].update(x=[1.0], label=name)
    tables = {"id": ["a", "b"], "label": ["mule", "2"], "age": [1, 2]}, {"s": ["a"], "t": ["b"]}
    learner = Propagation().observe(([[1.0], [0.0]], [[0], [1]], [0, 1]))
    task = Task(as_graph(tables), torch.tensor([True, True]))
    for batch in (graph, tables, as_graph(graph), as_graph(tables), task):
        for verb in (as_batch, learner.score):
            with pytest.raises(InputError, match=r"'mule' is a name.*LearnerFolder"):
                verb(batch)
    assert as_graph(tables).labelled().tolist() == [1, 0]
    assert as_batch(as_graph(tables).with_labels(torch.tensor([1, 0]))) is not None
    for label in (torch.tensor(1), True):
        graph.nodes[0]["label"] = graph.nodes[1]["label"] = label
        graph.nodes[0]["x"] = torch.ones(1, requires_grad=True)
        assert as_batch(graph).labelled().tolist() == [1, 1]  # type: ignore[union-attr]


def test_nodes_go_by_their_ids_where_a_batch_has_some() -> None:
    rows = {"id": [5, 4, 3, 2, 1, 0], "x": list(range(6)), "label": [0, 1] * 3}
    edges = {"source": [5, 3, 1], "target": [4, 2, 0]}
    learner = Propagation(gamma=0.1).observe((rows, edges))
    every = learner.predict((rows, edges))
    for nodes in (["0"], ["0", "4"], np.array(["4"]), [False] * 5 + [True]):
        at = [5] if isinstance(nodes[0], bool) else [5 - int(n) for n in nodes]
        assert learner.predict((rows, edges), nodes).tolist() == every[at].tolist()
        assert len(learner.novelty((rows, edges), nodes)) == len(at)
        assert 0 <= learner.score((rows, edges), nodes) <= 1
    for nodes, why in (([0], "node number 5.*has another; write '0'"), ([9], "no node 9 .*'5'")):
        with pytest.raises(InputError, match=why):
            learner.forget((rows, edges), nodes)
    assert learner.forget((rows, edges), ["0"]).class_rows() == {0: 3, 1: 2}
    named = {**rows, "id": list("abcdef")}, {"source": ["a"], "target": ["b"]}
    assert learner.predict(named, [1]).tolist() == learner.predict(named, ["b"]).tolist()


def test_columns_keep_the_order_that_was_learned(tmp_path) -> None:
    rows = {"id": [0, 1, 2], "a": [0, 1, 2], "b": [5, 3, 1], "label": [0, 1, 1]}
    edges = {"source": [0], "target": [1]}
    learner = Propagation(gamma=0.1, hops=1).observe((rows, edges))
    learner.save(tmp_path / "learner", least_rows=1)
    turned = {name: rows[name] for name in ("id", "b", "a", "label")}, edges
    for known in (learner, load(tmp_path / "learner"), learner.sibling()):
        assert known.columns_ == ("a", "b")
        with pytest.raises(InputError, match=r"b, a, .*a, b; .*columns_"):
            known.observe(turned)
    with pytest.raises(InputError, match=r"b, a, .*a, b; .*columns_"):
        learner.predict(turned)


def test_a_word_for_a_missing_label_is_no_class() -> None:
    with pytest.warns(UserWarning, match="1 label read as missing"):
        found = as_graph(({**NODES, "label": ["NA", "1", "0"]}, LINKS))
    assert found.labelled().tolist() == [-1, 1, 0]
    asked = read_tables({**NODES, "label": ["NA", "1", "0"]}, LINKS, classes=["NA"])
    assert asked.class_names == {0: "0", 1: "1", 2: "NA"}


def forms() -> dict[str, Any]:
    """One batch of 24 nodes in every form that a verb reads."""
    rng, y = np.random.default_rng(0), np.arange(24) % 2
    x = rng.normal(size=(24, 3)) + 3 * np.eye(3)[y]
    ends = np.stack([np.arange(24), (np.arange(24) + 2) % 24])
    plain = Graph.from_arrays(x, ends, y, undirected=True)
    edges = torch.stack([plain.adjacency.row_of_entry(), plain.adjacency.indices]).flip(0).numpy()
    adjacency = plain.adjacency.to_scipy()
    nodes = {"id": list(range(24)), "label": y, **{f"x{j}": x[:, j] for j in range(3)}}
    links = {"source": ends[0], "target": ends[1]}
    made = {
        "Graph": plain,
        "Task": as_task(plain, 0, validation=False),
        "arrays": (x, edges, y),
        "SciPy": (adjacency, x, y),
        "dict": {"x": x, "edge_index": edges, "y": y},
        "columns": (nodes, links),
    }
    for kind in ("pandas", "polars"):
        with contextlib.suppress(pytest.skip.Exception):
            made[kind] = tables(kind, nodes, links)
    with contextlib.suppress(pytest.skip.Exception):
        made["Data"] = pyg(x=torch.from_numpy(x), y=torch.from_numpy(y), edge_index=edges)
        g = pytest.importorskip("networkx").Graph()
        g.add_nodes_from((i, {"x": x[i].tolist(), "y": int(y[i])}) for i in range(24))
        g.add_edges_from(ends.T.tolist())
        made["NetworkX"] = g
    return made


FORMS = forms()
ANSWERS = "predict scores predict_proba score novelty strangeness ranking judged groups embed"


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_graph(form: str) -> None:
    found, wanted = as_graph(FORMS[form]), FORMS["Graph"]
    torch.testing.assert_close(found.features.to_dense(), wanted.features.to_dense())
    assert found.adjacency.to_dense().equal(wanted.adjacency.to_dense())
    assert found.labelled().equal(wanted.labelled())


@pytest.mark.parametrize(
    ("learner", "form"),  # every verb asks `as_graph` or `as_batch`
    [
        (Propagation(gamma=0.1), "columns"),
        (Propagation(gamma=0.1), "dict"),
        (Acil(epochs=2, hidden=4), "SciPy"),
    ],
)
def test_every_verb_reads_every_form(learner: Learner, form: str, tmp_path) -> None:
    batch, known = FORMS[form], learner.clone().observe(FORMS["Graph"])
    for answer in ANSWERS.split():
        if (answer == "predict_proba" and isinstance(learner, Acil)) or not hasattr(known, answer):
            continue
        found, wanted = (getattr(known, answer)(each) for each in (batch, FORMS["Graph"]))
        pairs = zip(found, wanted, strict=True) if answer == "judged" else [(found, wanted)]
        for one, other in pairs:
            torch.testing.assert_close(torch.as_tensor(one), torch.as_tensor(other))
    fresh = learner.clone().observe(batch)
    if isinstance(learner, Propagation):
        torch.testing.assert_close(fresh.scores(batch), known.scores(FORMS["Graph"]))
        fresh.revise(batch, batch)
        fresh.forget(batch, [3]).forget(batch, [4])
        assert fresh.forget(batch).classes_ == ()
    stream = TaskStream.from_graph(batch, 1, 1)
    folder = LearnerFolder.new(tmp_path / "folder", learner.clone())
    folder.observe(batch)
    assert folder.classes_ == ("0", "1")
    predictions = folder.predict(batch)
    labels = as_graph(batch).labelled()
    assert folder.score(batch) == (predictions == labels).mean()
    wanted = folder.learner().scores(batch)
    torch.testing.assert_close(folder.scores(batch, [5, 3]), wanted[[5, 3]])
    if isinstance(learner, Propagation):
        assert folder.novelty(batch).shape == (24,)
        assert folder.predict_proba(batch).argmax(dim=1).tolist() == wanted.argmax(dim=1).tolist()
        folder.revise(batch, batch)
        folder.forget(batch, [3])
    else:
        with pytest.raises(InputError, match=r"scores but no probabilities.*take propagation"):
            folder.predict_proba(batch)
    assert evaluate(learner.clone(), stream).tasks == 2


PLAIN = list(range(24))
NOT_THERE = r"there is no node {} among the 24 of .*give "


# by the id of the first node: some nodes, and their places or what is said of them
NAMED: list[tuple[Any, Any, Any]] = [
    *((0, nodes, [3]) for nodes in ([3], np.array([3]), torch.tensor([3]), (3,), ["3"])),
    (0, range(3), [0, 1, 2]),
    (0, np.arange(24) < 2, [0, 1]),
    (0, [], []),
    (0, {3}, r"write sorted\(nodes\)"),
    (0, 3, r"write \[3\] for one node"),
    (0, ["a"], NOT_THERE.format("'a'") + "numbers from 0, as these nodes have no ids"),
    (0, [99], "node 99 is not there: the 24 nodes are numbered from 0"),
    (0, [True], "a node mask needs 24 entries"),
    ("n0", ["n3"], [3]),
    ("n0", np.array(["n3"]), [3]),
    ("n0", [3], [3]),
    ("n0", np.arange(24) == 3, [3]),
    ("n0", ["3"], NOT_THERE.format(r"'3' \(did you mean 'n3'\?\)") + "ids such as 'n0'"),
    ("n0", [99], "node 99 is not there"),
    ("n0", {"n3"}, r"write sorted\(nodes\)"),
    (100, [103], [3]),
    (100, ["103"], [3]),
    (100, [3], NOT_THERE.format("3.*") + "ids such as '100'"),
]


@pytest.mark.parametrize("ids", [PLAIN, [100 + i for i in PLAIN], [f"n{i}" for i in PLAIN]])
@pytest.mark.parametrize("where", ["memory", "folder"])
def test_nodes_are_named_in_one_way(ids: list[Any], where: str, tmp_path) -> None:
    rows, links = FORMS["columns"]
    batch = {**rows, "id": ids}, {end: [ids[i] for i in links[end]] for end in links}
    known: Any = Propagation(gamma=0.1)
    if where == "folder":
        known = LearnerFolder.new(tmp_path / "folder", known)
    known.observe(batch)
    every = np.asarray(known.predict(batch))
    for first, nodes, found in NAMED:
        if first != ids[0]:
            continue
        if isinstance(found, str):
            for verb in (known.predict, known.forget):
                with pytest.raises(InputError, match=found):
                    verb(batch, nodes)
            continue
        assert np.asarray(known.predict(batch, nodes)).tolist() == every[found].tolist()
        if found and where == "memory":
            less = known.clone().load(known.state()).forget(batch, nodes)
            with pytest.raises(InputError, match=r"taken out of|not in"):
                less.forget(batch, nodes)
    known.forget(batch, [ids[3]])
    with pytest.raises(InputError, match=r"taken out of|not in"):
        known.forget(batch, [ids[3]])
