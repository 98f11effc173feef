"""Tables without edges: what a cell becomes, who is linked, and that rows are forgotten exactly."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from paper.hospitals import COLUMNS, FILES, means
from tests.harness.references import nearest_rows
from undrift import Graph, InputError, Learner, PrivatePropagation, Propagation, load
from undrift.cells import Table
from undrift.graphs import Encoding
from undrift.graphs.encoding import nearest
from undrift.learners.registry import METHODS, make_learner, method_class

Columns = dict[str, list[Any]]
CLASSES = 3


def table(rows: int, seed: int = 0) -> Columns:
    """Patients with ties, gaps and a label; every third row has a missing cell."""
    rng = np.random.default_rng(seed)
    ill = np.arange(rows) % CLASSES
    dose = (rng.integers(0, 4, rows) + 2 * ill).astype(float)
    return {
        "id": [f"p{seed}-{i}" for i in range(rows)],
        "dose": [None if i % 3 == 2 else x for i, x in enumerate(dose.tolist())],
        "sign": [("", "red", "itch", "none")[k] for k in rng.integers(0, 4, rows)],
        "site": [("head", "arm", "leg")[k] for k in np.where(rng.random(rows) < 0.7, ill, 0)],
        "ill": ill.tolist(),
    }


def some(columns: Columns, rows: Any) -> Columns:
    return {name: [cells[i] for i in rows] for name, cells in columns.items()}


FIRST = Graph.from_table(table(30, 99), target="ill", neighbours=3)


def batch(columns: Columns, neighbours: int = 3) -> Graph:
    return Graph.from_table(columns, target="ill", neighbours=neighbours, encoding=FIRST.encoding)


def sibling() -> Propagation:
    return Propagation(gamma=0.1, hops=2).observe(FIRST).sibling()


def assert_same(one: Learner, two: Learner, probe: Graph) -> None:
    order = [two.classes_.index(c) for c in one.classes_]
    a, b = one.scores(probe), two.scores(probe)[:, order]
    assert float((a - b).abs().max()) <= 1e-9 * float(b.abs().max())


def test_later_batches_have_the_same_columns_whatever_they_hold() -> None:
    first = {"age": [30, 40, 50], "sex": ["f", "m", "f"]}
    known = Encoding.of(first)
    odd = known.matrix({"sex": ["m", "x", "?", ""], "age": ["40", None, "NA", 1e9]})
    assert odd.tolist() == [
        [0, 0, 0, 1, 0, 0],
        [0, 1, 0, 0, 0, 1],
        [0, 1, 0, 0, 1, 0],
        [4, 0, 0, 0, 1, 0],
    ]
    again = Encoding.of({"sex": ["x"], "age": [1]}, known.as_plain())
    assert again == known


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([None, "", float("nan"), "?"], ()),
        ([7, 7, 7], (7.0, 7.0)),
        (["1", "n/a", "null", "3"], (1.0, 2.0)),
        ([True, False, None], ("False", "True")),
        (["TRUE", "false", "NULL", "<NA>", "#N/A"], ("False", "True")),
        (["10-19", "20-29", "may", "1:40"], ("10-19", "1:40", "20-29", "may")),
        (["b", "a", ""], ("a", "b")),
    ],
)
def test_kinds(cells: list[Any], kind: tuple[Any, ...]) -> None:
    known = Encoding.of({"x": cells})
    assert tuple(known.columns[0][1]) == kind
    assert np.isfinite(known.matrix({"x": cells})).all()


def test_a_category_is_one_however_it_is_written() -> None:
    told = Encoding.of({}, {"grade": ["1", "2", "3"], "old": [True, False], "code": ["NA", "x"]})
    cells = {"grade": ["2.0", 2, "", "4.0"], "old": ["TRUE", True, "false", "?"]}
    found = told.matrix(cells | {"code": ["NA", "x", "y", "NULL"]})
    assert found[:, :5].argmax(axis=1).tolist() == [1, 1, 3, 4]
    assert found[:, 5:9].argmax(axis=1).tolist() == [0, 0, 1, 2]
    assert found[:, 9:].argmax(axis=1).tolist() == [0, 1, 3, 2]
    number = Encoding.of({}, {"old": {"centre": 0, "spread": 1}})  # as they were learned once
    assert number.matrix({"old": [True, False]})[:, 0].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["2021-03-31", "2020-01-01"], "'x' of the table holds dates.*days since"),
        ([date(2021, 3, 31)], "holds dates"),
        (["red", "31.3.2021"], "holds dates"),
        (["red", timedelta(3)], "holds dates"),
        (["2020-01", "2020-02"], "holds dates.*list of categories"),
        (["3 Jan 2020", "03-feb-20"], "holds dates"),
        (["January 2020"], "holds dates"),
        (["10:30", "11:45"], "holds dates"),
        (["36,5", "37", "37,2", "high"], "numbers with a comma.*'36,5'; write them with a point"),
        (["1,200", "12 300"], "numbers with a comma or gaps, first '1,200'"),
        (np.array(["2021-03-31"], "datetime64[ns]"), "holds dates"),
        (["1", "2", "high"], "holds numbers, but not in 1 of 3 cells.*'high'; empty them, or give"),
        ([10**400, 1, 2], "holds numbers, but not in 1 of 3 cells"),
        ([[1], [2]], "has a list, .1., in a cell"),
        ([b"x"], "has a bytes"),
        ([f"patient {i}" for i in range(40)], "free text, or ids .40 different"),
        (["came in with a cough and " * 4], "free text"),
        ([1, float("inf")], "holds numbers, but one row has 'inf'"),
    ],
)
def test_what_cannot_be_a_column_is_refused(cells: list[Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Encoding.of(Table({"x": cells}, "it"), where="the table")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dose": None}, "lacks 'dose'.*empty cells"),
        ({"more": [1] * 6}, "also has 'more'.*leave it out"),
        ({"dose": ["high"] * 6}, "'dose' of the table holds numbers, but one row has 'high'"),
        ({"ill": ["flu", "flu", 1] * 2}, r"names, first 'flu'; give classes=\['flu'\]"),
    ],
)
def test_another_table_is_refused_in_a_sentence(change: Columns, words: str) -> None:
    odd = {name: cells for name, cells in (table(6) | change).items() if cells is not None}
    with pytest.raises(InputError, match=words) as found:
        batch(odd)
    assert str(found.value).count(". ") == 0


@pytest.mark.parametrize(
    ("frame", "more", "words"),
    [
        ([{"x": 1}], {}, "the table must be a dict of columns.*not a list"),
        ({"x": 1}, {}, "column 'x' of the table must be a list, a cell per row, not 1"),
        ({"x": "high"}, {}, "a cell per row, not 'high'"),
        ({"x": [1, 2]}, {"neighbours": "3"}, "neighbours must be a whole number, not '3'"),
        ({"x": [1, 2]}, {"encoding": "robust"}, "give an Encoding.*not 'robust'"),
        (
            {"x": [1, 2], "y": [1, 2]},
            {"target": "x", "classes": ["1"]},
            "'2', which classes does not list",
        ),
        ({"x": [1], "y": [1]}, {"target": "x", "classes": [1, 1]}, "list of different names"),
        ({"x": [1]}, {"id": "pid"}, "has no column 'pid'"),
        ({"id": ["p", "p"], "x": [1, 2]}, {}, "id 'p' stands twice"),
        ({"id": ["p", ""], "x": [1, 2]}, {}, "column 'id' of the table is empty in row 2"),
        ({"x": [1, 2.5], "y": [1, 2]}, {"target": "x"}, "target 'x' holds '2.5'; write classes"),
    ],
)
def test_what_is_no_table_is_one_sentence(frame: Any, more: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Graph.from_table(frame, **more)


def test_medians_of_the_data_are_not_covered_by_epsilon() -> None:
    learner = PrivatePropagation(epsilon=5.0, class_list=range(CLASSES))
    with pytest.raises(InputError, match=r"'dose'.*encoding="):
        learner.observe(FIRST)
    public = Encoding.of({}, FIRST.encoding.as_plain())  # type: ignore[union-attr]
    learner.observe(Graph.from_table(table(30, 99), target="ill", encoding=public))


def test_what_is_given_is_fixed_before_there_are_data() -> None:
    told = {"dose": {"low": 0, "high": 10}, "sign": ["red", "itch"]}
    known = Encoding.of({"dose": [1], "sign": ["red"], "age": [3, 4]}, told)
    assert known.columns[:2] == (("dose", (5.0, 5.0)), ("sign", ("red", "itch")))
    read = Graph.from_table({"x": [1, 2, 3], "y": [5, 3.0, "3"]}, target="y", classes=["3", "5"])
    assert read.labelled().tolist() == [1, 0, 0]
    for wrong in ({"x": ["a", "a"]}, {"x": [""]}, {"x": {"low": 1}}):
        with pytest.raises(InputError, match="column 'x'"):
            Encoding.of({}, wrong)


@given(st.integers(1, 25), st.integers(0, 30), st.integers(0, 5), st.booleans())
@settings(max_examples=40, deadline=None)
def test_nearest_rows_are_those_of_the_slow_twin(n, count, seed, constant) -> None:
    rng = np.random.default_rng(seed)
    rows = np.zeros((n, 3)) if constant else rng.integers(0, 3, (n, 3)) / 2
    order = rng.permutation(n)
    assert nearest(rows, count, order).tolist() == nearest_rows(
        rows.tolist(), count, order.tolist()
    )


def test_blocks_change_nothing(monkeypatch) -> None:
    rows = np.random.default_rng(0).normal(size=(50, 4))
    whole = nearest(rows, 5, np.arange(50))
    monkeypatch.setattr("undrift.graphs.encoding._AT_ONCE", 120)
    assert (nearest(rows, 5, np.arange(50)) == whole).all()


@given(st.permutations(range(14)), st.integers(0, 6))
@settings(max_examples=20, deadline=None)
def test_the_order_of_lines_does_not_matter(order: list[int], neighbours: int) -> None:
    columns = table(14)
    one, two = batch(columns, neighbours), batch(some(columns, order), neighbours)
    assert torch.equal(one.subgraph(order).adjacency.to_dense(), two.adjacency.to_dense())
    assert one.adjacency.symmetric
    assert bool(one.num_edges) == bool(neighbours)


@given(st.data())
@settings(max_examples=12, deadline=None)
def test_any_order_split_forgetting_and_merging_is_pooled_training(data: st.DataObject) -> None:
    """Batches with neighbours as they came; single rows that go are as if they never came."""
    sizes = data.draw(st.lists(st.integers(4, 9), min_size=2, max_size=4))
    tables = [table(n, seed) for seed, n in enumerate(sizes)]
    gone = [data.draw(st.sets(st.integers(0, n - 4), max_size=2)) for n in sizes]
    left = [
        some(t, [i for i in range(n) if i not in g])
        for t, n, g in zip(tables, sizes, gone, strict=True)
    ]
    pooled, one, two = sibling(), sibling(), sibling()
    for columns in left:
        pooled.observe(batch(columns))
    for place in data.draw(st.permutations(range(len(tables)))):
        site = (one, two)[place % 2]
        site.observe(batch(tables[place]))
        for row in sorted(gone[place]):
            site.forget(batch(tables[place]), nodes=[row])
    probe = batch(table(9, 50))
    assert_same(one.merge(two), pooled, probe)
    for columns in left[1:]:  # known now as it would have come
        one.forget(batch(columns))
    assert_same(one, sibling().observe(batch(left[0])), probe)


@pytest.mark.parametrize("method", [m for m, known in METHODS.items() if known.merges])
@pytest.mark.parametrize("neighbours", [1, 10])
def test_who_is_out_stays_out(method: str, neighbours: int) -> None:
    known = method_class(method).defaults()
    quick = {"epochs": 2, "hidden": (8, 8), "cleansing": False, "sketch": 16, "fourier": 8}
    told = {key: value for key, value in quick.items() if key in known}
    empty = make_learner(method, **told).observe(FIRST).sibling()
    probe, doses = batch(table(9, 50), 0), np.random.default_rng(1).normal(size=40)
    columns = table(40) | {"dose": doses.tolist()}
    right = columns | {"dose": [7.5, *columns["dose"][1:]], "ill": [2, *columns["ill"][1:]]}
    whole, corrected = batch(columns, neighbours), batch(right, neighbours)
    learner = empty.sibling().observe(whole).forget(whole, [3]).forget(whole, [4, 20])
    left = [i for i in range(40) if i not in (3, 4, 20)]
    assert_same(learner, empty.sibling().observe(batch(some(columns, left), neighbours)), probe)
    learner.revise(whole, corrected)
    assert_same(learner, empty.sibling().observe(batch(some(right, left), neighbours)), probe)
    learner.forget(corrected, [30])
    left.remove(30)
    assert_same(learner, empty.sibling().observe(batch(some(right, left), neighbours)), probe)


def test_a_table_counts_once_however_its_rows_are_linked() -> None:
    one, two = sibling().observe(batch(table(24))), sibling().observe(batch(table(24), 0))
    for verb, what in ((one.observe, batch(table(24), 0)), (one.merge, two)):
        with pytest.raises(InputError, match=r"counting (it|them) twice"):
            verb(what)
    with pytest.raises(InputError, match="in another version; give it as it is in now"):
        one.forget(batch(table(24), 0))
    one.revise(batch(table(24)), batch(table(24), 0))
    with pytest.raises(InputError, match="is in already"):
        one.observe(batch(table(24), 5))
    assert one.forget(batch(table(24), 0)).observe(batch(table(24), 5)).classes_


@given(st.permutations(range(18)), st.integers(6, 12))
@settings(max_examples=10, deadline=None)
def test_without_neighbours_any_split_of_rows_is_one_table(order: list[int], cut: int) -> None:
    columns = table(18)
    parts = [batch(some(columns, rows), 0) for rows in (order[:cut], order[cut:])]
    split = sibling().observe(parts[0]).observe(parts[1])
    assert_same(split, sibling().observe(batch(columns, 0)), batch(table(9, 50)))


def test_the_page_of_three_hospitals_has_the_numbers_of_its_file() -> None:
    text = (Path(__file__).parents[2] / "docs" / "disease.md").read_text(encoding="utf-8")
    found = means()
    soybean, dermatology = ([found[name, column] for column in COLUMNS] for name in FILES)
    for column, one, two in list(zip(COLUMNS, soybean, dermatology, strict=True))[3:]:
        assert f"| `{column}` | {one} | {two} |" in text
    assert f"merging has {soybean[2]} on Soybean and {dermatology[2]} on Dermatology" in text
    for name, (alone, merged, *_) in (("Soybean", soybean), ("Dermatology", dermatology)):
        assert any(line.split()[:3] == [name, alone, merged] for line in text.splitlines())


@pytest.mark.parametrize(
    "columns",
    [
        {"x": [5.0], "y": ["a"], "ill": [0]},
        {"x": [5.0] * 4, "y": ["a"] * 4, "ill": [0, 0, 1, 1]},
        {"x": [None] * 4, "y": [""] * 4, "ill": [0, 0, 1, 1]},
    ],
    ids=["one row", "constant", "missing"],
)
def test_tables_that_tell_little(columns: Columns) -> None:
    graph = Graph.from_table(columns, target="ill")
    learner = Propagation().observe(graph)
    assert bool(torch.isfinite(learner.scores(graph)).all())
    odd = {"x": [1.0, 2.0], "y": ["a", "b"], "ill": [0, 1]}
    other = Graph.from_table(odd, target="ill", encoding=graph.encoding)
    alone = learner.sibling().observe(other)
    both = learner.sibling().observe(graph).merge(alone)
    assert_same(both, learner.sibling().observe(other).observe(graph), other)
    assert_same(both.forget(graph), alone, other)
    if len(columns["x"]) > 1:
        learner.forget(graph, nodes=[0])
        again = Graph.from_table(some(columns, [1, 2, 3]), target="ill", encoding=graph.encoding)
        assert_same(learner, Propagation().observe(graph).sibling().observe(again), graph)


def test_the_encoding_is_kept_with_the_learner(tmp_path) -> None:
    learner = sibling().observe(batch(table(24)))
    learner.save(tmp_path / "one.safetensors")
    again = load(tmp_path / "one.safetensors")
    assert again.encoding_ == FIRST.encoding == learner.sibling().encoding_
    wider = table(24, 3) | {"dose": list(range(24)), "sign": list("abcd") * 6}
    other = Graph.from_table(wider, target="ill")
    for verb in (again.observe, again.predict):
        with pytest.raises(InputError, match="encoding=learner"):
            verb(other)
    plain = Graph.from_arrays(FIRST.features, [], FIRST.labels)
    with pytest.raises(InputError, match="encoding=learner"):
        again.observe(plain)
    with pytest.raises(InputError, match="columns were learned as they are"):
        Propagation().observe(plain).predict(other)
    with pytest.raises(InputError, match="encoding= to Graph"):
        other.scaled()
    with pytest.raises(InputError, match="scale their columns differently"):
        again.merge(Propagation(gamma=0.1, hops=2).observe(other))


def test_one_patient_alone_and_against_others() -> None:
    learner = sibling().observe(batch(table(24)))
    alone = batch(some(table(6, 50), [1]))
    beside = batch({name: table(24)[name] + table(6, 50)[name][1:2] for name in table(6)})
    assert alone.num_edges == 0
    assert learner.predict(alone).numel() == learner.predict(beside, [24]).numel() == 1
    numbered = batch(table(24) | {"id": [100 + i for i in range(24)]})  # by ids that are numbers
    for ask in (learner.predict, learner.scores, learner.novelty):
        assert torch.allclose(ask(numbered, [105]).double(), ask(numbered)[5:6].double())
