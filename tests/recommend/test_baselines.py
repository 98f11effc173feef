"""The baselines: what they score, by hand; and the verbs, which every recommender has."""

from itertools import pairwise
from math import exp, sqrt

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from undrift.learners.registry import make_learner
from undrift.recommend import as_interactions

sessions_of = st.lists(
    st.lists(st.sampled_from("abcde"), min_size=1, max_size=5), min_size=2, max_size=6
)


def by_hand(name: str, sessions: list[list[str]], history: list[str], item: str) -> float:
    count = {i: sum(i in s for s in sessions) for s in sessions for i in s}
    known = [i for i in history if i in count]
    if name == "popularity":
        return count[item]
    if name == "last-item":
        steps = [pair for s in sessions for pair in pairwise(s)]
        followed = steps.count((known[-1], item)) if known else 0
        return followed + count[item] / (1 + max(count.values()))
    return sum(
        exp(-age / 4)
        * sum(i in s and item in s for s in sessions)
        / sqrt((count[i] + 20) * (count[item] + 20))
        for age, i in enumerate(reversed(known))
    )


@pytest.mark.parametrize("name", ["popularity", "last-item", "item-knn"])
@settings(max_examples=15, deadline=None)
@given(sessions=sessions_of)
def test_scores_are_those_by_hand(name: str, sessions) -> None:
    rows = [(f"s{i}", item) for i, clicks in enumerate(sessions) for item in clicks]
    learner = make_learner(name).observe(as_interactions(tuple(zip(*rows, strict=True))))
    histories = [*sessions, ["a", "unknown"], []]
    wanted = [[by_hand(name, sessions, h, i) for i in learner.items_] for h in histories]
    torch.testing.assert_close(learner.scores(histories), torch.tensor(wanted).double())
