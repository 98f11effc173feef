"""`NextItem` and `Ease`: any history of verbs gives the sums and scores of one training."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.references import next_item_scores
from undrift.errors import InputError
from undrift.learners.registry import RECOMMENDERS, make_learner
from undrift.recommend import Ease, Interactions, ItemKnn, LastItem, NextItem, as_interactions
from undrift.recommend.solve import System, inverse
from undrift.storage.files import load_state

visits = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6)
sessions_of = st.lists(visits, min_size=2, max_size=9)


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


def test_forgetting_a_session_costs_its_own_pairs(monkeypatch) -> None:
    batch = table({"mine": ["a", "b", "c"], **{f"s{i}": list("abcdefgh") for i in range(99)}})
    shop, made = NextItem().observe(batch), []
    real = NextItem._pairs
    monkeypatch.setattr(NextItem, "_pairs", lambda s, b: made.append(real(s, b)) or made[-1])
    shop.forget(batch, ["mine"])
    assert [each.values.numel() for each in made[0].values()] == [6, 3, 3, 1, 3]
    assert len(made) == 1  # three items, two cuts: past of (a, b), next of (b, c), however many


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
    assert 0 < found.residual_ <= found.tolerance
    with pytest.raises(InputError, match="above the tolerance"):
        found.set_params(tolerance=1e-30).scores(histories)
    rough = System(sp.csr_matrix([[2.0, 0.5], [0.5, 3.0]]))
    whole = rough.matrix.to_dense()
    rough._lower = torch.linalg.cholesky(whole.float())  # refined by the loop
    found = rough.solve(torch.eye(2))
    torch.testing.assert_close(found, torch.linalg.inv(whole), rtol=1e-11, atol=1e-12)


def test_contributions_add_up_to_the_score() -> None:
    batch = table({"s": list("abcab"), "t": list("bad")})
    history = ["d", "a", "unknown", "b", "a"]
    # what is too old adds nothing, or in a set what comes a second time
    for shop, nothing in (
        (NextItem(last=3, ridge=1.0), {0, 2}),
        (ItemKnn(last=3), {0, 2}),
        (Ease(ridge=1.0), {2, 4}),
    ):
        told = shop.observe(batch).explain(history, "c")
        assert [name for name, _ in told] == history
        assert {i for i, (_, part) in enumerate(told) if part == 0.0} >= nothing
        score = shop.scores([history])[0, shop.items_.index("c")]
        assert sum(part for _, part in told) == pytest.approx(float(score), rel=1e-9)
    with pytest.raises(InputError, match="no way to explain"):
        LastItem().observe(batch).explain(["a"], "b")


def test_ease_is_the_regression_without_a_diagonal(monkeypatch) -> None:
    draw = np.random.default_rng(1)
    X = (draw.random((40, 6)) < 0.4).astype(float)
    shop = Ease(ridge=3.0).observe(sp.csr_matrix(X))
    found = shop.scores([["0", "2"]])[0]
    for item in range(6):  # each item from the others alone
        alone = X * (np.arange(6) != item)
        weights = np.linalg.solve(alone.T @ alone + 3.0 * np.eye(6), alone.T @ X[:, item])
        assert float(found[item]) == pytest.approx(weights[0] + weights[2], rel=1e-9)
    kept = sp.csr_matrix(X.T @ X + np.eye(6))
    monkeypatch.setattr("undrift.recommend.solve._BAND", 4)
    np.testing.assert_allclose(inverse(kept, "cpu"), np.linalg.inv(kept.toarray()))
    monkeypatch.setattr("undrift.recommend.solve.available_bytes", lambda: 300)  # 6 x 6 x 8 is 288
    with pytest.raises(InputError, match=r"6 items takes .* take NextItem\(mix=1.0\)"):
        shop.set_params(ridge=1.0).settle()


def test_sets_are_learned_where_the_order_does_not_count() -> None:
    sets = sp.csr_matrix([[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    shop = NextItem(mix=1.0, ridge=2.0).observe(sets)
    rows = table({"0": ["0", "1"], "1": ["0", "1", "2"], "2": ["1", "2"]})
    wanted = NextItem(mix=1.0, ridge=2.0).observe(rows).scores([["0"]])
    torch.testing.assert_close(shop.scores([["0"]]), wanted)
    assert shop.set_params(mix=0.6).forget(sets).items_ == ()  # they go out nevertheless


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
    with pytest.raises(InputError, match="say guarded=True"):
        shop.merge(guarded)
    assert shop.clone().observe(batch).merge(guarded, again=True, guarded=True).guarded_ == 5
    with pytest.raises(InputError, match="lacks the pairs of fewer than 5 sessions"):
        guarded.forget(batch, ["rare"])
    with pytest.raises(InputError, match="decay"):
        NextItem(decay=2.0).load(load_state(tmp_path / "whole"))
    state = shop.state()
    key = next(key for key in state.tensors if key.endswith("together.columns"))
    state.tensors[key] = state.tensors[key] + 99
    with pytest.raises(InputError, match="damaged"):
        NextItem().load(state)


def spread(shop, key: str, items: tuple[str, ...]) -> np.ndarray:
    places = [shop.items_.index(name) if name in shop.items_ else -1 for name in items]
    return shop.sums().pairs[key].select(places).whole().toarray() != 0


@pytest.mark.parametrize("name", ["next-item", "last-item"])
@settings(max_examples=25, deadline=None)
@given(sessions=sessions_of, least=st.integers(2, 4), decay=st.sampled_from([0.1, 0.3, 0.7]))
def test_a_guarded_number_of_a_pair_has_sessions_behind_it(name, sessions, least, decay) -> None:
    shop = make_learner(name, **({"decay": decay} if name == "next-item" else {}))
    alone = [shop.clone().observe(table({"s": clicks})) for clicks in sessions]  # who has what
    shop.observe(table({f"s{i}": clicks for i, clicks in enumerate(sessions)}))
    guarded = shop.sums().guarded(least).pairs
    for key, pairs in shop.sums().pairs.items():
        behind, kept = sum(spread(one, key, shop.items_) for one in alone), guarded[key].whole()
        assert ((kept != 0).toarray() == (behind >= least))[~np.eye(len(behind), dtype=bool)].all()
        if pairs.symmetric and not key.endswith("sessions"):
            lowest = np.linalg.eigvalsh(kept.toarray().astype(float)).min()
            assert lowest >= -1e-9 * max(1.0, abs(kept).max())


@pytest.mark.parametrize("name", RECOMMENDERS.names())
def test_a_guarded_state_tells_nothing_of_a_rare_pair(name: str) -> None:
    often = {f"s{i}": ["abcd"[i % 4]] for i in range(24)}
    often |= {f"p{i}": ["a", "b", "c", "d"] for i in range(5)}

    def told(*rare: str) -> list[list[int]]:
        visits = {f"r{i}": list(visit) for i, visit in enumerate(rare)}
        shop = make_learner(name).observe(table(often | visits))
        return [part.tolist() for part in shop.state(least_sessions=7).tensors.values()]

    # who had two items, and in which order
    assert told("ab", "c", "d") == told("ba", "c", "d") == told("cd", "a", "b")
    # nor of the order or the end of one session within a frequent pair, or of when it came
    often |= {f"q{i}": ["a", "b"] for i in range(7)}
    assert told("abc", "abd") == told("abd", "abc")
    shop = make_learner(name).observe(table(often | {"r": list("dba")}))
    shop = shop.clone().load(shop.state(least_sessions=7))
    assert shop.batches_ is None
    assert shop.items_ == ("a", "b", "c", "d")


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
    assert shop.items_ == ("b", "c")  # an item vanishes with its last session
    other = table({"v": ["b", "d", "a"]})
    assert shop.observe(other).items_ == ("b", "c", "a", "d")  # and no column moves
    shop.forget(other, items=["a"])
    with pytest.raises(InputError, match="without some of its rows"):
        shop.forget(other, ["v"])
    shop.forget(other.without(items=["a"]), items=["b", "d"])
    assert len(shop.batches_.held) == 1  # nothing is left of the other
    shop.forget(batch)
    assert (shop.items_, shop.sessions_) == ((), 0)


def test_what_cannot_be_counted_or_listed_gets_a_sentence(tmp_path) -> None:
    shop = NextItem().observe(table({"s": ["a", "b"]}))
    assert [len(shop.recommend(["a", "x"], k=k, exclude=["x"])) for k in (1, 99)] == [1, 2]
    assert shop.recommend(["a"], exclude=np.array(["a", "b"])) == shop.recommend([]) == []
    assert shop.scores(each for each in [["a"], []]).shape == (2, 2)
    batch, listed = table({"s": ["a", "b"]}), "exclude is a list of items or 'history'"
    for told, ask, wrong in (
        ("greater than 0", lambda k: shop.recommend(["a"], k=k), [0]),
        ("a whole number", lambda k: shop.recommend(["a"], k=k), [1.5, "3"]),
        ("a whole number", lambda k: shop.save(tmp_path / "shop", least_sessions=k), [1.5, "3"]),
        (listed, lambda names: shop.recommend(["a"], exclude=names), ["abc", 3]),
        ("give a list of histories", shop.scores, [["a"], None, [3]]),
        ("give a list of histories", lambda history: shop.explain(history, "a"), ["ab"]),
        ("give sessions as a list of names", lambda names: shop.forget(batch, names), ["s", 3]),
        ("without an order", NextItem().observe, [sp.csr_matrix([[1, 1]])]),
        ("no proof", lambda epsilon: NextItem(epsilon=epsilon), [1.0]),
        ("unknown device", lambda device: NextItem(device=device), ["abacus"]),
        ("must be greater than 0", lambda reach: NextItem(reach=reach), [0, -3]),
        ("cannot merge with", shop.merge, [Ease(), 3]),
        ("nothing is known", NextItem().recommend, [["a"]]),
        (r"as in \['ab'\]", shop.recommend, ["ab"]),
        ("one text or number", shop.recommend, [[["ab"]]]),
    ):
        for each in wrong:
            with pytest.raises(InputError, match=told):
                ask(each)
    assert shop.forget(batch, []).sessions_ == 1
    more = table({"s": ["a", "b"], "t": ["b"], "u": ["a"]})
    assert shop.observe(more).forget(more, np.array(["t", "u"])).sessions_ == 2
    state = (aged := NextItem(half_life=1.0)).observe(batch).state()
    tensors, values = (
        {key.replace("0.", "soon.", 1): value for key, value in part.items()}
        for part in (state.tensors, state.values)
    )
    with pytest.raises(InputError, match="damaged"):
        aged.clone().load(replace(state, tensors=tensors, values=values | {"#": ["soon"]}))


@pytest.mark.parametrize("name", RECOMMENDERS.names())
def test_a_file_in_which_no_item_may_stand_recommends_nothing(name: str, tmp_path) -> None:
    shop = make_learner(name).observe(table({"s": ["a", "b"]}))
    shop.save(tmp_path / "shop")
    guarded = type(shop).opened(tmp_path / "shop")
    assert (guarded.items_, guarded.recommend(["a"])) == ((), [])
    state = shop.state()
    key = next(key for key in state.tensors if key.endswith("counts"))
    state.tensors[key] = state.tensors[key][:1]
    with pytest.raises(InputError, match="damaged"):
        shop.clone().load(state)
