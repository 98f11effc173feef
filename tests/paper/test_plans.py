"""The plans of the paper hold what they promise, with and without data."""

import pytest

from paper.merging import ABLATION
from paper.plans import MORE_STREAMS, TABLE1
from undrift.experiments.plans import PARTS, PLANS, chosen_plans, named_plan
from undrift.experiments.search import settings_of
from undrift.learners.registry import make_learner


@pytest.fixture
def nothing(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))


@pytest.mark.parametrize("name", ["carried", *(name for name in PLANS if "public" in name)])
def test_rows_of_public_code_are_those_of_the_tables_and_can_be_made(name: str) -> None:
    plan = named_plan(name)
    known = {*TABLE1, *ABLATION, "fisher floor first"}
    assert {row.label for row in plan.rows} <= known
    for row in plan.rows:
        if row.label not in ("cat", "joint", "acil", "ds-al"):
            wanted = "fresh" if name == "public-fresh" else "carried"
            assert row.params.get("optimiser", "fresh") == wanted
        for setting in settings_of(row.grid):
            make_learner(row.method, **{**setting, **row.params})
    trains = {row.label for row in named_plan("carried").rows}
    assert trains == {*TABLE1, *ABLATION} - {"ham", "joint", "cat", "acil", "ds-al"}


@pytest.mark.usefixtures("nothing")
@pytest.mark.parametrize("name", [name for name in PLANS if name.startswith("paper")])
def test_without_data_everything_is_skipped_and_said(name: str) -> None:
    plan = named_plan(name)
    assert plan.streams == ()
    assert plan.skipped
    assert all("undrift data fetch" in skip.why for skip in plan.skipped)


@pytest.mark.usefixtures("nothing")
def test_stand_ins_take_the_place_of_absent_streams() -> None:
    plan = named_plan("paper-table1", stand_ins=True)
    assert all("stand-in" in name for name in plan.streams)
    assert "reddit-cl-stand-in@0.05" in plan.streams
    assert {skip.stream for skip in plan.skipped} >= set(MORE_STREAMS)
    assert all("--stand-ins" not in skip.why for skip in plan.skipped)


@pytest.mark.usefixtures("nothing")
def test_skewed_streams_are_real_unless_a_stand_in_is_asked_for() -> None:
    assert named_plan("skewed").streams == ()
    assert named_plan("skewed", stand_ins=True).streams == ("arxiv-cl-stand-in",)


def test_paper_is_all_of_the_papers() -> None:
    names = [plan.name for plan in chosen_plans(["paper", "smoke", "paper-grid"])]
    assert names == [*PARTS["paper"], "smoke"]
