"""`NextItem` and `Ease`: any history of verbs gives the sums and scores of one training."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.references import next_item_scores
from undrift.errors import InputError
from undrift.recommend import Ease, Interactions, NextItem, as_interactions
from undrift.recommend.solve import System
from undrift.storage.files import load_state

NAMES = "abcdefgh"
sessions_of = st.lists(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=6), min_size=2, max_size=9
)


def table(sessions: dict[str, list[str]], period: int = 0) -> Interactions:
    rows = [(name, item) for name, clicks in sessions.items() for item in clicks]
    named = {"s": [r[0] for r in rows], "i": [r[1] for r in rows], "p": [period] * len(rows)}
    return as_interactions(named, session="s", item="i", time=None, period="p")


def agree(shop: NextItem, sessions: list[list[str]], weights: list[float] | None = None) -> None:
    histories = [*sessions, ["a", "b", "unknown"], []]
    wanted = next_item_scores(
        sessions, histories, shop.items_, weights=weights, ridge=shop.ridge, mix=shop.mix
    )
    found = shop.scores(histories)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-9 * float(wanted.abs().max()))


@settings(max_examples=20, deadline=None)
@given(sessions_of, sessions_of, sessions_of, st.randoms(use_true_random=False))
def test_any_history_of_verbs_equals_one_training(first, second, third, random) -> None:
    # two shops; a batch is revised, sessions and a batch are forgotten, the shops merge
    one = {f"s{i}": clicks for i, clicks in enumerate(first)}
    two = {f"s{i}": clicks for i, clicks in enumerate(second)}
    corrected = {**one, "s0": [*reversed(one["s0"]), "h"]}
    gone = random.sample(sorted(two), random.randint(1, len(two)))
    other = {f"t{i}": clicks for i, clicks in enumerate(third)}
    lost = other["t0"][0]

    shop, sister = NextItem(ridge=2.0), NextItem(ridge=2.0)
    shop.observe(table(two)).observe(table({**one, "s99": ["g"]}))
    shop.revise(table({**one, "s99": ["g"]}), table(corrected))
    for name in gone:
        shop.forget(table(two), [name])
    sister.observe(table({"x": ["a", "h"]})).observe(table(other))
    sister.forget(table(other), items=[lost]).forget(table({"x": ["a", "h"]}))
    shop.merge(sister)

    left = [*corrected.values(), *(clicks for name, clicks in two.items() if name not in gone)]
    left += [rest for c in other.values() if (rest := [item for item in c if item != lost])]
    assert set(shop.items_) == {item for clicks in left for item in clicks}
    agree(shop, left)
    pooled = NextItem(ridge=2.0).observe(table({f"p{i}": c for i, c in enumerate(left)}))
    order = [pooled.items_.index(name) for name in shop.items_]
    for name, pairs in shop.sums().pairs.items():  # the same bits, not only near
        wanted = pooled.sums().pairs[name].select(order)
        assert (pairs.half() != wanted.half()).nnz == 0


@settings(max_examples=15, deadline=None)
@given(sessions_of, sessions_of)
def test_half_life_weighs_periods_and_forgets_exactly(old, new) -> None:
    before = {f"s{i}": clicks for i, clicks in enumerate(old)}
    after = {f"s{i}": clicks for i, clicks in enumerate(new)}
    shop = NextItem(half_life=2.0, ridge=2.0)
    shop.observe(table(before, 3)).observe(table({**after, "x": ["a"]}, 5))
    shop.forget(table({**after, "x": ["a"]}, 5), ["x"])
    agree(shop, [*old, *new], [0.5] * len(old) + [1.0] * len(new))
    shop.half_life = 1.0  # a choice made when solving
    agree(shop, [*old, *new], [0.25] * len(old) + [1.0] * len(new))
    with pytest.raises(InputError, match="half_life cannot become None"):
        shop.half_life = None


def test_each_solver_gives_the_same_scores_and_its_residual() -> None:
    draw = np.random.default_rng(0)
    clicks = as_interactions((np.repeat(np.arange(300), 4), draw.integers(0, 60, 1200)))
    histories = clicks.cases()[0][:50]
    wanted = NextItem(solver="cholesky").observe(clicks)
    found = NextItem(solver="cg").observe(clicks)
    exact = wanted.scores(histories)
    near = 1e-9 * float(exact.abs().max())
    torch.testing.assert_close(found.scores(histories), exact, rtol=0, atol=near)
    assert 0 < found.residual_ <= 1e-8
    rough = System(sp.diags([1.0, 2.0]) + sp.csr_matrix([[1.0, 0.5], [0.5, 1.0]]))
    rough._lower = torch.linalg.cholesky(rough.matrix.to_dense().float())  # refined by the loop
    right = torch.eye(2, dtype=torch.float64)
    exact = torch.linalg.solve(rough.matrix.to_dense(), right)
    torch.testing.assert_close(rough.solve(right), exact, rtol=1e-11, atol=1e-12)


def test_contributions_add_up_to_the_score() -> None:
    shop = NextItem(last=3, ridge=1.0).observe(table({"s": list("abcab"), "t": list("bad")}))
    history = ["d", "a", "unknown", "b", "a"]
    told = shop.explain(history, "c")
    assert [name for name, _ in told] == history
    assert told[0][1] == told[2][1] == 0.0
    score = shop.scores([history])[0, shop.items_.index("c")]
    assert sum(part for _, part in told) == pytest.approx(float(score), rel=1e-9)


def test_ease_is_the_regression_without_a_diagonal() -> None:
    draw = np.random.default_rng(1)
    X = (draw.random((40, 6)) < 0.4).astype(float)
    X = X[X.sum(axis=1) > 0]
    found = Ease(ridge=3.0).observe(sp.csr_matrix(X)).scores([["0", "2"]])[0]
    for item in range(6):  # each item from the others alone
        others = [i for i in range(6) if i != item]
        gram = X[:, others].T @ X[:, others] + 3.0 * np.eye(5)
        weights = np.linalg.solve(gram, X[:, others].T @ X[:, item])
        wanted = sum(weights[others.index(i)] for i in (0, 2) if i != item)
        assert float(found[item]) == pytest.approx(wanted, rel=1e-9)


def test_a_saved_learner_goes_on_and_a_guarded_one_does_not_forget(tmp_path) -> None:
    often = {f"s{i}": ["a", "b", "c"] for i in range(5)}
    batch = table({**often, "rare": ["a", "d", "c"]})
    shop = NextItem().observe(batch)
    shop.save(tmp_path / "whole", least_sessions=1)
    shop.save(tmp_path / "guarded")
    whole, guarded = (NextItem.opened(tmp_path / name) for name in ("whole", "guarded"))
    assert torch.equal(whole.scores([["a"]]), shop.scores([["a"]]))
    assert whole.forget(batch, ["rare"]).items_ == ("a", "b", "c")
    assert guarded.items_ == ("a", "b", "c")  # nothing of the rare item
    assert b'"d"' not in (tmp_path / "guarded").read_bytes()
    guarded.recommend(["a"])
    with pytest.raises(InputError, match="lacks the pairs of fewer than 5 sessions"):
        guarded.forget(batch, ["rare"])
    with pytest.raises(InputError, match="decay"):
        NextItem(decay=2.0).load(load_state(tmp_path / "whole"))
    state = shop.state()
    key = next(key for key in state.tensors if key.endswith("together.columns"))
    state.tensors[key] = state.tensors[key] + 99
    with pytest.raises(InputError, match="damaged"):
        NextItem().load(state)


@settings(max_examples=30, deadline=None)
@given(sessions_of, st.integers(2, 4))
def test_guarded_sums_stay_positive_definite(sessions, least) -> None:
    shop = NextItem().observe(table({f"s{i}": clicks for i, clicks in enumerate(sessions)}))
    for name in ("together", "past"):
        kept = shop.sums().guarded(least).pairs[name].whole().toarray().astype(float)
        assert np.linalg.eigvalsh(kept).min() >= -1e-9 * max(1.0, abs(kept).max())


def test_a_batch_is_counted_once_and_forgotten_once() -> None:
    batch = table({"s": ["a", "b"], "t": ["b", "c"]})
    shop = NextItem().observe(batch)
    with pytest.raises(InputError, match="in already"):
        shop.observe(batch)
    with pytest.raises(InputError, match="not in"):
        shop.forget(table({"u": ["a", "b"]}))
    shop.forget(batch, ["s"])
    with pytest.raises(InputError, match="session 's' was taken out"):
        shop.forget(batch, ["s"])
    with pytest.raises(InputError, match="fewer sessions than none"):
        shop.forget(table({"u": ["a", "b"]}), again=True)
    assert shop.items_ == ("b", "c")
    shop.forget(batch)
    assert (shop.items_, shop.sessions_) == ((), 0)
    with pytest.raises(InputError, match="nothing was observed"):
        shop.recommend(["a"])
    with pytest.raises(InputError, match="no proof"):
        NextItem(epsilon=1.0)
    with pytest.raises(InputError, match="without an order"):
        NextItem().observe(sp.csr_matrix([[1, 1]]))


def test_a_user_is_forgotten_with_all_sessions() -> None:
    rows = {"session": list("sstt"), "item": list("abbc"), "user": list("uuvv")}
    batch = as_interactions(rows, time=None, user="user")
    shop = NextItem().observe(batch).forget(batch, users=["u"])
    assert shop.items_ == ("b", "c")
    assert shop.recommend(["b"], k=1, exclude="history")[0][0] == "c"
    assert shop.recommend(["unknown"]) == []
