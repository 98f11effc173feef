"""A recommender in a folder: who is forgotten, what leaves, and what is refused."""

from typing import Any

import pytest

from undrift import InputError, LearnerFolder
from undrift.cli.app import start
from undrift.folder import RecommenderFolder, kinds
from undrift.learners.registry import RECOMMENDERS, method_class
from undrift.privacy.rare import audit_items
from undrift.recommend import Ease, NextItem, as_interactions
from undrift.typing import silent


def clicks(*sessions: str, user: str = "u", start: int = 0) -> dict[str, list[Any]]:
    """A session per word, its letters the items."""
    rows = [(f"s{start + i}", f"{user}{i}", item) for i, w in enumerate(sessions) for item in w]
    return dict(zip(("session", "user", "item"), map(list, zip(*rows, strict=True)), strict=True))


OFTEN = clicks(*["abc"] * 6, "adc")
HOW: Any = {"in_order": True, "user": "user"}


@pytest.fixture
def shop(tmp_path) -> RecommenderFolder:
    made = RecommenderFolder.new(tmp_path / "shop", remember_nodes=True)
    made.observe(OFTEN, **HOW)
    return made


@pytest.mark.parametrize("who", ["session s6", "user u6", "item d"])
def test_somebody_is_forgotten_as_if_never_there(shop: RecommenderFolder, who: str) -> None:
    shop.observe(clicks("ab", "bc", start=20, user="v"))
    kind, _, name = who.partition(" ")
    assert shop.forget_node(f"{kind}  {name} \0").outcome == "waiting"  # as tables would read it
    assert shop.forget_node(who, [OFTEN]).outcome == "erased"
    assert shop.forget_node(who).outcome == "never here"
    given: Any = {f"{kind}s": [name]}
    left = as_interactions(OFTEN, time=None, user="user").without(**given)
    wanted = NextItem().observe(left).observe((list("xxyy"), list("abbc")))
    assert shop.learner().scores([["a"]]).tolist() == wanted.scores([["a"]]).tolist()
    assert shop.history()[-1].verb == f"forget-{kind}"
    (erased,) = shop.audit().erased
    assert f"step 3 of {shop.history()[-1].time[:10]}: forget-{kind}, 1 batch out, 1 in" in erased
    with pytest.raises(InputError, match="already in a corrected version"):
        shop.observe(OFTEN)
    shop.forget(OFTEN if kind == "user" else left)  # as it was, or as it is now
    assert shop.learner().sessions_ == 2


def test_a_table_of_before_an_erasure_is_known(shop: RecommenderFolder, tmp_path) -> None:
    plain = RecommenderFolder.new(tmp_path / "plain")  # without hashes of names
    plain.observe(OFTEN, **HOW)
    for who in ("user u0", "item d", "session s3"):
        assert shop.forget_node(who, [OFTEN]).outcome == "erased"
    assert shop.forget_node("session s3", [OFTEN]).outcome == "never here"
    more = {name: [*cells, new] for (name, cells), new in zip(OFTEN.items(), "xya", strict=True)}
    shop.revise(OFTEN, more)  # who was erased stays out
    left = as_interactions(more, time=None, user="user")
    left = left.without(["s3"], users=["u0"], items=["d"])
    assert shop.learner().sums().counts.tolist() == NextItem().observe(left).counts_.tolist()
    plain.forget_node("session s3", [OFTEN])
    with pytest.raises(InputError, match="session was taken out of it in step 2, so leave out"):
        plain.forget(OFTEN)


def test_a_batch_is_found_by_the_columns_it_was_read_with(tmp_path) -> None:
    shop = RecommenderFolder.new(tmp_path / "shop", remember_nodes=True)
    march = OFTEN | {"month": [3] * len(OFTEN["item"])}
    april = clicks("bc", start=20, user="v")
    april |= {"month": [4, 4], "visit": april.pop("session")}
    shop.observe(march, in_order=True)
    shop.observe(april, user="user", period="month", session="visit")
    with pytest.raises(InputError, match="already in a corrected version, or read in another way"):
        shop.observe(march, session="session")
    assert shop.forget_node("session s1", [march]).outcome == "erased"
    assert shop.forget_node("user u6", [march]).outcome == "erased"
    assert shop.forget_node("user u6").outcome == "never here"  # users are known from now on
    with pytest.raises(InputError, match="no column 'visit'"):
        shop.forget({name: march[name] for name in ("session", "item")})
    shop.revise(march, march, period="", session="session")
    left = as_interactions(march, time=None).without(["s1", "s6"])
    shop.forget(april)
    assert shop.learner().sums().counts.tolist() == NextItem().observe(left).counts_.tolist()
    (held,) = shop.show().record.batches
    assert (held.users, held.columns["period"], held.columns["session"]) == (True, None, "session")


def test_batches_read_without_users_cannot_tell(tmp_path, capsys) -> None:
    shop = RecommenderFolder.new(tmp_path / "shop", remember_nodes=True)
    april = clicks("bc", start=20)
    assert not shop.observe(OFTEN, in_order=True).notes
    (note,) = shop.observe(april, user="user").notes
    assert "was read with users, unlike the last batch (step 1" in note
    assert not shop.observe(clicks("ab", start=30, user="v")).notes
    (note,) = shop.observe(clicks("ab", start=40, user="v"), user="").notes
    assert "was read without users" in note
    shop.forget(clicks("ab", start=40, user="v"))
    for given, told in ((), "is not erased yet"), ((april,), "and others may hold it"):
        found = shop.forget_node("user u0", given, user="user")
        assert found.outcome == "waiting"
        assert [held.step for held in found.unsure] == [1]
        sentences = " ".join(found.sentences("shop"))
        assert told in sentences
        assert "1 batch read without users holds 'user u0' (--user-column names" in sentences
    assert shop.forget_node("session s99").outcome == "never here"  # of sessions all can tell


def test_what_leaves_is_guarded_and_the_folder_goes_on(shop, tmp_path) -> None:
    found = shop.audit()
    assert found.broken[0] == "items: 1 of 4 with fewer than 5 sessions"
    assert found.broken[1] == "pairs: 2 of 5 with fewer than 5 sessions"
    shop.export(tmp_path / "whole", least_rows=1)
    assert NextItem.opened(tmp_path / "whole").items_ == ("a", "b", "c", "d")
    shop.forget(OFTEN)
    assert (shop.learner().items_, shop.show().record.width) == ((), 0)


@pytest.mark.parametrize("name", RECOMMENDERS.names())
def test_each_recommender_lives_in_a_folder(name: str, tmp_path) -> None:
    shop = RecommenderFolder.new(tmp_path / "shop", name)
    assert "(attacks: none tried)" in shop.audit().verdict  # nothing was observed
    shop.observe(OFTEN, **HOW)
    assert (shop.history()[-1].step, shop.audit().passed, shop.verify()) == (1, False, [])
    shop.export(tmp_path / "out")
    guarded = method_class(name).opened(tmp_path / "out")
    assert (guarded.items_, audit_items(guarded).passed) == (("a", "b", "c"), True)
    assert b'"d"' not in (tmp_path / "out").read_bytes()


def test_a_step_that_was_taken_is_not_an_error(shop: RecommenderFolder, monkeypatch: Any) -> None:
    taken, draft = shop.learner(), shop._loaded()
    monkeypatch.setattr(type(draft), "texts", lambda *x: {}["no card"])
    draft.change(None, draft.take(HOW).read(clicks("ab", start=90)), silent)
    assert "the step is taken" in draft.commit("observe", silent).notes[-1]
    assert shop.learner().sessions_ == taken.sessions_ + 1


def test_age_counts_in_batches_where_no_period_is_named(tmp_path) -> None:
    shop = RecommenderFolder.new(tmp_path / "shop", settings={"half_life": 1.0})
    old, new = clicks("ab", "ba"), clicks("ac", "ca", start=5)
    shop.observe(old, in_order=True)
    shop.observe(new)
    shop.revise(old, clicks("ab", "bd"))  # stays as old as it was
    parts = clicks("ab", "bd"), new
    wanted = NextItem(half_life=1.0)
    for number, part in enumerate(parts, 1):
        wanted.observe(as_interactions(part, time=None).in_period(number))
    names = sorted(wanted.items_)
    for each in (found := shop.learner(), wanted):
        assert sorted(each.items_) == names
    for name in names:
        assert dict(found.recommend([name])) == pytest.approx(dict(wanted.recommend([name])))


def test_sister_shops_merge_and_count_nothing_twice(shop, tmp_path) -> None:
    sister = RecommenderFolder.new(tmp_path / "sister", like=shop)
    sister.observe(OFTEN)
    with pytest.raises(InputError, match="shares 1 of its batches"):
        shop.merge(sister)
    sister.forget(OFTEN)
    sister.observe(clicks("ax", start=50))
    shop.merge(sister)
    assert shop.learner().sessions_ == 8
    other = RecommenderFolder.new(tmp_path / "other", settings={"decay": 2.0})
    with pytest.raises(InputError, match=r"cannot be merged .* decay"):
        shop.merge(other)


def test_each_mistake_gets_one_sentence(shop: RecommenderFolder, tmp_path) -> None:
    with pytest.raises(InputError, match=r"is in .* already"):
        shop.observe(OFTEN)
    with pytest.raises(InputError, match="learns from sessions, not from nodes"):
        LearnerFolder(shop.path)
    with pytest.raises(InputError, match="reads nothing by 'label'"):
        shop.observe(OFTEN, label="kind")
    with pytest.raises(InputError, match="scale is for learners of nodes"):
        RecommenderFolder.new(tmp_path / "x", scale="none")
    for least in (0, 1.5):
        with pytest.raises(InputError, match="least_rows must be"):
            RecommenderFolder.new(tmp_path / "x", least_rows=least)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has no proof for epsilon"):
        RecommenderFolder.new(tmp_path / "x", settings={"epsilon": 1.0})
    plain = RecommenderFolder.new(tmp_path / "plain", "ease")
    plain.observe(OFTEN, in_order=True)
    with pytest.raises(InputError, match="do not say who the users are"):
        plain.forget_node("user u6", [OFTEN])
    for words in (["--node", "s6"], ["--session", "s6", "--user", "u6"]):
        assert start(["learner", "forget", str(shop.path), *words]) == 2
    assert start(["learner", "predict", str(shop.path), "x.csv", "--out", "y.csv"]) == 2
    assert isinstance(kinds.opened(tmp_path / "plain").learner(), Ease)
