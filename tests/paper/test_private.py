"""The measurement of privacy's cost does what the learner does, and its file is read as written."""

import json
import re
from pathlib import Path

import pytest
import torch

from paper import private_utility
from paper.private_figure import private_figure, private_table, read_utility
from undrift import PrivatePropagation, evaluate
from undrift.evaluation.protocols import exams
from undrift.testing import tiny_stream

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("form", private_utility.FORMS)
def test_sums_made_once_give_what_a_learner_gives(form):
    stream = tiny_stream()
    exam = next(iter(exams(stream, 2)))
    asked = exam.masks["test"].nonzero().flatten()
    settings = {**private_utility.FORMS[form], "seed": 1, "testing": True}
    known = private_utility._Prepared(stream, exam, asked, settings)
    learner = PrivatePropagation(epsilon=30.0, class_list=tuple(range(6)), **settings)
    graded = evaluate(learner, stream).by_class
    answer = known.predicted(30.0)
    assert torch.equal(answer, learner.predict(exam.graph, asked))
    mean = private_utility._graded(answer, stream, exam, asked)
    assert mean == pytest.approx(sum(graded.rows[-1]) / 3, abs=1e-3)


def test_what_was_measured_is_kept_and_not_measured_again(tmp_path, monkeypatch):
    calls = []

    def once(name, seed):
        calls.append((name, seed))
        keys = [f"{f} {e:g}" for f in private_utility.FORMS for e in private_utility.EPSILONS]
        return dict.fromkeys(keys, 80.0 + seed)

    monkeypatch.setattr(private_utility, "measured", once)
    file = tmp_path / "privacy" / "utility.json"
    for seeds in (["0"], ["0", "1"]):
        assert private_utility.main([str(file), "--streams", "cs-cl", "--seeds", *seeds]) == 0
    assert calls == [("cs-cl", 0), ("cs-cl", 1)]
    table = read_utility(tmp_path)
    assert table == json.loads(file.read_text())
    pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[figures]'")
    assert len(private_figure(table).axes) == 1


def test_the_page_has_the_table_of_what_was_measured():
    page = (ROOT / "docs" / "privacy" / "differential-privacy.md").read_text()
    assert private_table(read_utility(ROOT / "results")) in page


def test_the_line_of_the_default_is_that_of_the_readme():
    """One learner has one accuracy: the line is read from the same runs as the other pages."""
    table = read_utility(ROOT / "results")
    readme = (ROOT / "README.md").read_text()
    cells = re.search(r"^\| `propagation`.*$", readme, re.MULTILINE)
    shown = [float(cell.strip(" *")) for cell in cells[0].split("|")[3:-1]]
    columns = ("cs-cl", "physics-cl", "computers-cl", "photo-cl")
    for stream, number in zip(columns, shown, strict=False):
        mean = sum(run["default"] for run in table[stream].values()) / 5
        assert mean == pytest.approx(number, abs=0.051)
