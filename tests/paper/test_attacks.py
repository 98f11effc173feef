"""The parts of the study of attacks, on a small stream."""

import pytest

from paper.attack_figures import best_of_one_row, read_attacks
from paper.attack_membership import by_known_rows, membership
from paper.attack_rows import beside_known, small_classes, two_states_by, unknown_words
from paper.attack_validation import validation_moments
from undrift import InputError, Propagation
from undrift.testing import tiny_stream


def test_results_that_are_not_there_say_how_to_make_them(tmp_path) -> None:
    with pytest.raises(InputError, match="python -m paper attacks"):
        read_attacks(tmp_path)


def test_every_part_runs_on_a_small_stream() -> None:
    stream = tiny_stream(features=40, sparse=True)
    learner = Propagation(sketch=0, fourier=0)
    for task in stream:
        learner.observe(task)
    attacked = next(iter(membership(learner, stream)))
    assert attacked["rows"] < attacked["columns"]
    assert best_of_one_row(attacked)[1]["auc"] > 0.95
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
