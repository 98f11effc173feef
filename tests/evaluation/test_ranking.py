"""Ranking sessions: the measures by hand, both protocols, runs that were cut off, refusals."""

from math import log2, nan

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.experiments.made import gone_on
from undrift import InputError, Propagation, evaluate, load_stream, load_stream_file
from undrift.evaluation.ranking import evaluate_ranking, rank_sessions
from undrift.experiments import RunSpec, execute, prepare
from undrift.experiments.result import load_result, result_path
from undrift.experiments.search import SearchSpec, search
from undrift.learners.reading import EXACT
from undrift.recommend import NextItem, Popularity, SessionStream, as_interactions
from undrift.recommend.stream import generate

sessions_of = st.lists(
    st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5), min_size=1, max_size=6
)


def table(sessions, prefix="s"):
    rows = [(f"{prefix}{i}", item) for i, clicks in enumerate(sessions) for item in clicks]
    return as_interactions(([r[0] for r in rows], [r[1] for r in rows]))


def small(**how) -> SessionStream:
    return SessionStream.of(generate(periods=4, sessions=30), **how)


@settings(max_examples=20, deadline=None)
@example(first=[["a", "b"], ["b", "c"], ["d", "b"]], second=[["b", "d"]])  # ties but for rounding
@given(first=sessions_of, second=sessions_of)
def test_measures_are_those_by_hand(first, second) -> None:
    shop = NextItem(ridge=2.0).observe(table(first))
    found = rank_sessions(shop, table(second, "t")).measures(len(shop.items_))
    ranks, left_out = [], 0
    for clicks in second:
        known = [item for item in clicks if item in shop.items_]
        left_out += len(clicks) - len(known)
        for i in range(1, len(known)):
            scores = shop.scores([known[:i]])[0]
            own = scores[shop.items_.index(known[i])]
            ranks.append(int((scores >= own - EXACT * scores.abs().max()).sum()))
    hits = [rank for rank in ranks if rank <= 20]
    wanted = [len(hits), sum(1 / r for r in hits), sum(1 / log2(1 + r) for r in hits)]
    wanted = [100 * each / len(ranks) if ranks else nan for each in wanted]
    measured = [found[key] for key in ("recall_20", "mrr_20", "ndcg_20")]
    np.testing.assert_allclose(measured, wanted, rtol=1e-9)
    clicks = sum(map(len, second))
    assert found["cases"] == len(ranks)
    assert found["left_out"] == pytest.approx(100 * left_out / clicks)


def test_ties_and_coverage_of_popular_items() -> None:
    shop = Popularity().observe(table(["ab", "ab", "c"]))
    found = rank_sessions(shop, table(["ab", "ac"], "t"), frozenset("c")).measures(3)
    assert found["mrr_20"] == pytest.approx(100 * (1 / 2 + 1 / 3) / 2)  # a and b tie
    assert (found["coverage"], found["new_recall_20"]) == (100.0, 100.0)
    assert found["popularity"] == pytest.approx(100 * (2 + 2 + 1) / 3 / 3)


def test_a_score_that_is_not_a_number_ranks_last(monkeypatch) -> None:
    shop = Popularity().observe(table(["ab", "c"]))
    nothing = torch.full((1, 3), nan)
    monkeypatch.setattr(Popularity, "scores", lambda *_: nothing)
    found = rank_sessions(shop, table(["ab"], "t")).measures(3)
    assert (found["mrr_20"], found["coverage"]) == (pytest.approx(100 / 3), 0.0)


def test_batches_are_tested_before_they_are_learned() -> None:
    stream = small()
    whole, online = Popularity(), Popularity()
    by_period = evaluate_ranking(whole, stream)
    batched = stream.arranged("online:batch=7")
    by_batch = evaluate_ranking(online, batched)
    assert by_period.tasks == by_batch.tasks == len(stream) == 3
    learned = sum(len(each.sessions) for each in stream.periods)
    assert whole.sessions_ == learned - 30
    assert online.sessions_ == learned - 2  # the last batch of 30 by 7
    for t in range(1, 4):
        some = list(batched.batches(t))
        names = [name for each in some for name in each.sessions.tolist()]
        assert sorted(names) == stream.periods[t].sessions.tolist()
    # what came earlier in a period is known: fewer clicks are left out
    left_out = by_batch.series["left_out"], by_period.series["left_out"]
    assert all(a < b for a, b in zip(*left_out, strict=True))
    huge = stream.arranged("online:batch=1000")
    assert evaluate_ranking(Popularity(), huge).series == by_period.series


def test_a_run_that_was_cut_off_goes_on(tmp_path) -> None:
    stream, both = small().arranged("online:batch=11"), (NextItem(), NextItem())
    found = gone_on(both, stream, tmp_path, evaluate=evaluate_ranking)
    assert found.series == evaluate_ranking(NextItem(), stream).series


def test_a_run_writes_series_and_no_matrix(tmp_path) -> None:
    spec = RunSpec(stream="shop", method="item-knn", arrive="online:batch=90")
    execute(prepare(spec), tmp_path)
    result = load_result(result_path(spec, tmp_path))
    assert (result.matrix.by_class, result.steps) == ([], 7)
    assert 50 < result.value("recall_20") < 90
    assert result.imbalance is None
    assert "generate" in str(result.provenance["generator"])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"stream": "shop", "method": "adr"}, "learns graphs.*holds sessions; take one of: next"),
        ({"method": "ease"}, "learns sessions, and stream 'synthetic' holds graphs; take one of"),
        ({"stream": "shop", "method": "ease", "arrive": "blurry"}, "take online:batch=64"),
    ],
)
def test_what_does_not_fit_is_refused(how, message: str) -> None:
    with pytest.raises(InputError, match=message):
        prepare(RunSpec(**how))


def test_other_refusals() -> None:
    with pytest.raises(InputError, match="take one of: next-item"):
        evaluate(Propagation(), small())
    with pytest.raises(InputError, match="leave the protocol out"):
        evaluate_ranking(Popularity(), small(), protocol="local")
    with pytest.raises(InputError, match="1 period"):
        SessionStream.of(generate(periods=1, sessions=3))
    with pytest.raises(InputError, match="in which period"):
        SessionStream.of((["s"], ["a"]))
    spec = SearchSpec(base=RunSpec(stream="shop", method="ease"), grid={"ridge": (1.0, 2.0)})
    with pytest.raises(InputError, match="give settings in place of a search"):
        search(spec)
    assert load_stream("shop").provenance["generator"]


@pytest.mark.parametrize("cut", ['period = "month"\ntime = ""', "periods = 2", "periods = [3]"])
def test_a_table_of_clicks_is_a_stream_file(tmp_path, cut: str) -> None:
    rows = "session,item,time,month\na,tea,1,1\na,cup,2,1\nb,tea,4,2\nb,pot,5,2\n"
    (tmp_path / "clicks.csv").write_text(rows)
    text = f'name = "mine"\n[sessions]\ntable = "clicks.csv"\n{cut}\n'
    (tmp_path / "stream.toml").write_text(text)
    stream = load_stream_file(tmp_path / "stream.toml")
    assert [each.sessions.tolist() for each in stream.periods] == [["a"], ["b"]]
    assert evaluate_ranking(Popularity(), stream).series["left_out"] == (50.0,)
    spec = RunSpec(stream=str(tmp_path / "stream.toml"), method="last-item")
    assert prepare(spec).spec.stream_sha256 == stream.provenance["content_sha256"]
