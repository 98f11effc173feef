"""Any history of verbs gives the sums and scores of one training, of every recommender."""

from itertools import count
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from undrift.cells import as_text
from undrift.learners.registry import RECOMMENDERS, make_learner
from undrift.recommend import Interactions, as_interactions
from undrift.recommend.base import ranked

ITEMS = ["a", "b", 7, 0.5, "é", "日本", "nan", "two words"]
Sessions = dict[str, tuple[str, list[Any]]]  # by name: the user and the items


def month_of(name: str, period: int) -> int:
    """In which period a session is: some of every batch are in that of the next."""
    return period + int(name[-1]) % 2


def table(sessions: Sessions, period: int, way: int = 0) -> Interactions:
    """Sessions as a table, its columns and the rows of different sessions in any order."""
    rows = [
        (name, user, item, at, month_of(name, period))
        for name, (user, items) in sessions.items()
        for at, item in enumerate(items)
    ]
    rows = [rows, rows[::-1], [*rows[1:], *rows]][way % 3]  # two of them not in order, one doubled
    names = ["session", "user", "item", "time", "month"]
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    if way % 2:
        columns = {name: columns[name] for name in sorted(names)}
    return as_interactions(columns, user="user", period="month")


class Batch:
    """What is in of a batch, and what its user may give again."""

    def __init__(self, sessions: Sessions, period: int) -> None:
        self.given, self.left, self.period = sessions, dict(sessions), period


@pytest.mark.parametrize("name", RECOMMENDERS.names())
@settings(max_examples=16, deadline=None, phases=[Phase.generate])
@given(seed=st.integers(0, 10**9))
def test_any_history_of_verbs_equals_one_training(name: str, seed: int) -> None:
    random, numbers = Random(seed), count()
    made: dict[str, Any] = {"half_life": random.choice([None, 2.0])}
    made |= {"ridge": 2.0} if name in ("next-item", "ease") else {}

    def drawn() -> Sessions:
        # users and names of sessions come in many batches, one of one click in this batch only
        some = {
            f"s{random.randrange(5)}": (
                f"u{random.randrange(3)}",
                random.choices(ITEMS, k=random.randint(1, 5)),
            )
            for _ in range(random.randint(0, 4))
        }
        return some | {f"only{next(numbers)}": ("u0", [random.choice(ITEMS)])}

    def seen(batch: Batch, *, now: bool = False) -> Interactions:
        # as it was observed, or from now on as it is without those who were forgotten
        batch.given = dict(batch.left) if now else batch.given
        return table(batch.given, batch.period, random.randrange(6))

    shops: list[tuple[Any, list[Batch]]] = [(make_learner(name, **made), []) for _ in range(2)]
    for _ in range(random.randint(3, 14)):
        place = random.randrange(2)
        shop, batches = shops[place]
        verb = random.choice(["observe", "batch", "session", "user", "item", "revise", "merge"])
        if verb == "merge":
            sister, theirs = shops[1 - place]
            shop.merge(sister)
            shops = [(shop, batches + theirs), (shop.clone(), [])]
            continue
        if verb == "observe" or not batches:
            batches.append(Batch(drawn(), next(numbers)))
            shop.observe(seen(batches[-1]))
            continue
        batch = random.choice(batches)
        if verb == "batch":
            shop.forget(seen(batch, now=random.random() < 0.5))
            batch.left = {}
        elif verb == "session":
            lost = random.choice(sorted(batch.left))
            shop.forget(seen(batch, now=random.random() < 0.5), [lost])
            del batch.left[lost]
        elif verb == "user":
            lost = random.choice([user for user, _ in batch.left.values()])
            shop.forget(seen(batch, now=True), users=[lost])
            batch.left = {n: s for n, s in batch.left.items() if s[0] != lost}
        elif verb == "item":
            lost = random.choice(next(iter(batch.left.values()))[1])
            without = {n: (u, [i for i in c if i != lost]) for n, (u, c) in batch.left.items()}
            without = {n: s for n, s in without.items() if s[1]}
            shop.forget(seen(batch, now=True), items=[lost])
            batch.given, batch.left = without, dict(without)
        else:
            new = drawn() | dict(random.sample(sorted(batch.left.items()), 1))
            gone = batch.given.keys() - batch.left.keys()
            done = shop.revise(seen(batch), table(new, batch.period))
            assert done.subtracted <= len(batch.left)
            batch.given = new
            batch.left = {n: s for n, s in new.items() if n not in gone}
        batches[:] = [each for each in batches if each.left]
        if random.random() < 0.3:
            shop.load(shop.state())
    (shop, mine), (sister, theirs) = shops
    shop.merge(sister)
    both = [(b.period, n, s) for b in mine + theirs for n, s in b.left.items()]
    left = [(month_of(session, period), s) for period, session, s in both]
    assert {*shop.items_} == {as_text(item) for _, (_, items) in left for item in items}
    assert shop.sessions_ == len(left)
    if not left:
        return
    pooled = make_learner(name, **made)
    for period in {period for period, _ in left}:
        pooled.observe(
            table({f"p{i}0": s for i, (at, s) in enumerate(left) if at == period}, period)
        )
    order = [pooled.items_.index(item) for item in shop.items_]
    for age, sums in pooled.kept_.layers.items():  # the same bits, not only near
        found, wanted = shop.kept_.layers[age], sums.select(order)
        assert torch.equal(found.counts, wanted.counts)
        for key, pairs in found.pairs.items():
            assert (pairs.half() != wanted.pairs[key].half()).nnz == 0
    histories = [[as_text(i) for i in items] for _, (_, items) in left] + [["unknown"], []]
    exact = pooled.scores(histories)[:, order]
    near = 1e-9 * max(1e-9, float(exact.abs().max()))
    torch.testing.assert_close(shop.scores(histories), exact, rtol=0, atol=near)
    for best, same in zip(*(x.recommendations(histories) for x in (shop, pooled)), strict=True):
        assert [item for item, _ in best] == [item for item, _ in same]


def test_ties_go_by_name_whatever_the_history_and_the_rounding() -> None:
    gone = as_interactions((["gone"], ["d"]))
    some = as_interactions((list("xxyz"), list("abcd")))
    shop = make_learner("next-item", ridge=1.0).observe(gone).observe(some).forget(gone)
    assert [item for item, _ in shop.recommend(["a"], k=3)] == ["b", "a", "c"]
    shop = make_learner("popularity").observe(gone).observe(some).forget(gone)
    assert [item for item, _ in shop.recommend(["d"])] == ["a", "b", "c", "d"]
    rounded = torch.tensor([0.5, 0.7, 0.7 + 1e-12, 0.5 - 1e-12], dtype=torch.float64)
    ties = torch.tensor([1, 3, 2, 0])
    assert [ranked(rounded, k, ties) for k in (1, 3, 9)] == [[2], [2, 1, 3], [2, 1, 3, 0]]
