"""The page and the figures of attacks are what was measured, and say what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from paper.attack_figures import best_of_one_row, read_attacks
from paper.attack_membership import by_known_rows, membership
from paper.attack_page import attacks_page
from paper.attack_rows import beside_known, small_classes, two_states_by, unknown_words
from paper.attack_validation import validation_moments
from paper.attacks import STREAMS
from undrift.errors import InputError
from undrift.propagation.learner import Propagation
from undrift.testing.graphs import tiny_stream

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_was_measured() -> None:
    made = attacks_page(read_attacks(ROOT / "results"))
    kept = (ROOT / "docs" / "privacy" / "attacks.md").read_text(encoding="utf-8")
    assert made == kept, "run python -m paper attacks-page results docs/privacy/attacks.md"


def test_what_was_measured_shows_the_attacks_that_were_claimed() -> None:
    found = read_attacks(ROOT / "results")
    assert tuple(found) == STREAMS
    cora = found["coraml-cl"]
    assert best_of_one_row(cora["was"]["membership"][0])[1]["auc"] > 0.98
    for parts in found.values():
        assert parts["validation"][0]["cosine"] == 1.0  # one node, as it is
        assert parts["widths"][0]["auc"]["all candidates"] > parts["widths"][0]["auc"]["span"]
    small = [each for each in cora["was"]["two_states"] if 1 < each["nodes"] <= 32]
    assert all(each["read"] == each["nodes"] for each in small)


def test_results_that_are_not_there_say_how_to_make_them(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="python -m paper attacks"):
        read_attacks(tmp_path)


def test_every_part_runs_on_a_small_stream() -> None:
    stream = tiny_stream(features=40, sparse=True)
    learner = Propagation(sketch=0, fourier=0)
    for task in stream:
        learner.observe(task)
    bank = next(iter(membership(learner, stream)))
    assert bank["rows"] < bank["columns"]
    assert best_of_one_row(bank)[1]["auc"] > 0.95
    assert unknown_words(stream, learner, 2, 4)["tried"] == 2
    shares = list(by_known_rows(stream, 8, (0.5, 1.0)))
    assert [each["share"] for each in shares] == [0.5, 1.0]

    def fresh() -> Propagation:
        return Propagation(sketch=0, fourier=0)

    (one,) = two_states_by(stream, fresh(), (2,), 1)
    assert one["nodes"] == 2
    first, *_ = small_classes(stream, fresh(), (1, 4), 1)
    assert first["cosine"] == pytest.approx(1.0)
    assert next(iter(validation_moments(stream, fresh(), (5,), 1)))["cosine"] == 1.0
    known = list(beside_known(stream, fresh(), 4, (1, 2), 1))
    assert [each["cosine"] for each in known] == pytest.approx([1.0, 1.0], abs=1e-3)
