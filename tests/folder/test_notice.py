"""What a folder says of nodes that look like no known class."""

import numpy as np
import pytest

from undrift import Graph, InputError, LearnerFolder
from undrift.folder.notice import sentences
from undrift.folder.record import Noticed

RATE = 0.05


def batch(kinds: list[int], hidden: tuple[int, ...] = (), seed: int = 0) -> Graph:
    """40 nodes of each kind, linked within it; a fifth of them and hidden kinds without a label."""
    rng = np.random.default_rng(seed)
    kind = np.repeat(kinds, 40)
    x = rng.normal(size=(kind.size, 8))
    x[np.arange(kind.size), kind] += 4
    ends = rng.integers(0, kind.size, (2, 2000))
    labels = np.where(np.isin(kind, hidden) | (np.arange(kind.size) % 5 == 0), -1, kind)
    return Graph.from_arrays(x, ends[:, kind[ends[0]] == kind[ends[1]]], labels, undirected=True)


@pytest.fixture
def folder(tmp_path) -> LearnerFolder:
    made = LearnerFolder.new(tmp_path / "desk", settings={"hops": 2})
    assert made.observe(batch([0, 1, 2])).line.noticed is None  # nothing was known before
    return made


def test_a_kind_without_labels_is_counted_before_the_batch_is_learned(folder) -> None:
    calm = folder.observe(batch([0, 1, 2], seed=1)).line.noticed
    assert (calm.unlabelled, calm.rate) == (24, RATE)
    assert calm.strange < 5
    step = folder.observe(batch([0, 3], hidden=(3,), seed=2))
    noticed = step.line.noticed
    assert noticed.unlabelled == 48
    assert noticed.strange > 35
    # a class that comes with its labels is judged by what was known before it
    new = folder.observe(batch([0, 4], seed=3)).line.noticed
    assert new.strange > 6
    told = sentences(noticed)[0]
    assert told.startswith(
        f"{noticed.strange} of 48 unlabelled nodes look like no known class; 2.4"
    )
    foretold = folder.history()[-1].foretold
    assert foretold.detected > 0.5
    card = (folder.path / "README.md").read_text()
    assert f"{new.strange} of 16 unlabelled nodes look like no known class" in card
    assert f"about {100 * foretold.detected:.0f} % would be called unknown" in card
    assert [line.classes for line in folder.history()] == [None, 3, 3, 3, 4]
    assert folder.history()[-1].rows == sum(held.rows for held in folder.show().record.batches)


def test_unknown_nodes_and_their_groups(folder: LearnerFolder, tmp_path) -> None:
    asked = batch([0, 3, 1], seed=5)
    found = folder.predict(asked, unknown=RATE, groups=True)
    frame, learner = found.to_frame(), folder.learner()
    names = folder.show().record.names
    plain = [names.get(c, "unknown") for c in learner.predict(asked, unknown=RATE).tolist()]
    assert frame["class"] == plain
    np.testing.assert_allclose(frame["novelty"], learner.novelty(asked).numpy(), atol=1e-5)
    groups = np.array(frame["group"])
    assert ((groups != "") == (np.array(plain) == "unknown")).all()
    assert (groups[40:80] != "").mean() > 0.9
    strange = np.flatnonzero(groups)
    numbers = learner.groups(asked, strange).tolist()
    assert groups[strange].tolist() == [f"group {n + 1}" for n in numbers]
    some = folder.predict(asked, [50, 3, 70], unknown=RATE, groups=True).to_frame()
    assert some["class"] == [plain[50], plain[3], plain[70]]
    assert folder.predict(asked, unknown=RATE, groups=True, out=tmp_path / "p.parquet") == 120
    calm = folder.predict(asked)
    assert list(calm.to_frame()) == ["id", "class", "probability", "runner_up"]
    assert calm.noticed == found.noticed
    with pytest.raises(InputError, match=r"between 0\.001 and 1.*1\.5"):
        folder.predict(asked, unknown=1.5)
    with pytest.raises(InputError, match=r"unknown=0\.05"):
        folder.predict(asked, groups=True)


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("ewc", {"epochs": 1}),
        ("propagation", {"epsilon": 5.0, "delta": 1e-5, "class_list": ["0", "1", "2"]}),
    ],
)
def test_where_it_cannot_be_told_nothing_is_said_and_asking_is_refused(method, settings, tmp_path):
    folder = LearnerFolder.new(tmp_path / "desk", method, settings=settings)
    line = folder.observe(batch([0, 1])).line
    if method == "propagation":
        line = folder.observe(batch([0, 1], seed=1)).line
        assert (line.classes, line.rows) == (None, None)
    assert (line.noticed, line.foretold) == (None, None)
    assert folder.predict(batch([0, 1])).noticed is None
    why = "epsilon" if method == "propagation" else r"no sums.*take propagation"
    with pytest.raises(InputError, match=why):
        folder.predict(batch([0, 1]), unknown=RATE)


def test_of_a_few_nodes_nothing_is_told(folder: LearnerFolder) -> None:
    few = batch([0, 1], seed=6)
    labels = few.labelled().clone()
    labels[labels < 0] = 0
    labels[:4] = -1  # as few as would tell of each
    line = folder.observe(Graph(few.features, few.adjacency, labels)).line
    assert (line.noticed or Noticed()).unlabelled == 0
