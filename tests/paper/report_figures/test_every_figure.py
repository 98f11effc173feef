"""The figures of a report in a clone: ours, and those after the paper's."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from undrift.experiments.store import Records
from undrift.reporting.figures.figure import all_figures

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[figures]'")

NAMES = "learning-curves accuracy-bytes accuracy-seconds drift imbalance matrices-cs-cl "
NAMES += "matrices-corafull-cl matrices-arxiv-cl matrices-reddit-cl-stand-in plasticity surface-adr"


class Found:
    """The figures of some records: those that can be drawn, and why others cannot."""

    def __init__(self, results: Any, folder: Path, plans: Any = (), searches: Any = ()) -> None:
        records = Records(results, list(plans), list(searches), [], folder)
        every = all_figures(records)
        self.makers = {f.name: partial(f.draw, records) for f in every if not f.left_out}
        self.figures = {f.name: f for f in every if not f.left_out}
        self.left_out = [(f.name, f.left_out) for f in every if f.left_out]


def with_imbalance(results: dict[str, Any]) -> dict[str, Any]:
    more = {"imbalance": [3.0, 1.5]}
    return {run: result.model_copy(update=more) for run, result in results.items()}


def embed(fakes: Any, results: dict[str, Any], folder: Path, streams: tuple[str, ...]) -> None:
    for run, result in results.items():
        if result.spec.stream in streams and result.spec.method in ("efc", "dpcr", "adr"):
            (folder / run).mkdir(parents=True, exist_ok=True)
            np.savez(folder / run / "embedding.npz", **fakes.points(result.drift[-1]))


@pytest.fixture
def paper(fakes, tmp_path) -> Found:
    results, plan = fakes.folder(seeds=2)
    embed(fakes, results, tmp_path, tuple(fakes.streams))
    searches = [fakes.search(stream) for stream in fakes.streams]
    return Found(with_imbalance(results), tmp_path, [plan], searches)


def test_every_figure_of_the_paper_and_more_is_there(paper: Found) -> None:
    assert list(paper.makers) == NAMES.split()
    assert all(figure.title and figure.caption for figure in paper.figures.values())
    assert paper.left_out == []


def test_every_figure_can_be_read_in_print(paper: Found, in_print) -> None:
    for name, make in paper.makers.items():
        if not name.startswith("matrices"):  # test_maps.py has those
            in_print.check(make())


def test_names_are_safe_in_any_file_system(fakes, tmp_path) -> None:
    run = fakes.result()
    spec = run.spec.model_copy(update={"stream": "My Data/Gräph: v2?", "stream_sha256": "a" * 64})
    found = Found({"a": run.model_copy(update={"spec": spec})}, tmp_path)
    assert all(re.fullmatch(r"[a-z0-9.-]+", name) for name in found.makers)
    assert len(found.makers) == 5


def test_without_runs_every_figure_is_left_out_with_its_reason(tmp_path) -> None:
    found = Found({}, tmp_path)
    assert found.makers == {}
    names = "plasticity drift surface-adr learning-curves matrices imbalance accuracy-bytes"
    assert {name for name, _ in found.left_out} == {*names.split(), "accuracy-seconds"}
    why = "there is no finished (run|search)|no finished run of a method has what it shows"
    assert all(re.match(why, said) for _, said in found.left_out)


def test_embeddings_that_are_missing_or_damaged_are_named(fakes, tmp_path) -> None:
    results, plan = fakes.folder(seeds=1)
    embed(fakes, results, tmp_path, ("cs-cl", "corafull-cl"))
    run = fakes.result("cs-cl", "dpcr").spec.id
    (tmp_path / run / "embedding.npz").write_bytes(b"PK nothing")
    found = Found(results, tmp_path, [plan])
    whys = [why for name, why in found.left_out if name == "drift"]
    assert len(whys) == 2
    assert re.match(r"DPCR on CS-CL: .*embedding.npz is damaged", whys[0])
    assert "there is no embedding.npz of EFC on Arxiv-CL, DPCR on Arxiv-CL" in whys[1]
    assert "did not record" in dict(found.left_out)["imbalance"]
    figure = found.makers["drift"]()
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[:3] == ["EFC: drift 132 %", "DPCR", "ADR: drift 0 %"]


def test_a_surface_per_method_and_what_its_trials_share(fakes, tmp_path) -> None:
    search = fakes.search()
    base = search.spec.base.model_copy(update={"params": {"merging": "average"}})
    other = search.model_copy(update={"spec": search.spec.model_copy(update={"base": base})})
    searches = [
        *(search, other, fakes.search(method="ewc", strength=(1, 2, 3))),
        fakes.search(method="efc", damping=(1, 2, 3), strength=(1, 2)),
    ]
    found = Found({}, tmp_path, searches=searches)
    shared = "surface-adr-merging-average"
    assert set(found.makers) == {"surface-adr", shared, "surface-efc-damping-strength"}
    assert "surface" not in " ".join(name for name, _ in found.left_out)
    assert "with merging=average" in found.figures[shared].title
    alone = Found({}, tmp_path, searches=[fakes.search(gamma=(0.1, 1.0))])
    assert "varies gamma" in dict(alone.left_out)["surface-adr"]


def test_stand_ins_are_marked_in_every_figure(fakes, in_print, tmp_path) -> None:
    results = {}
    for method in ("efc", "dpcr", "adr", "acil", "ds-al", "bare"):
        run = fakes.result(method=method).model_copy(update={"provenance": {"stand_in": True}})
        results[run.spec.id] = run
    embed(fakes, results, tmp_path, ("cs-cl",))
    found = Found(with_imbalance(results), tmp_path, searches=[fakes.search()])
    assert len(found.makers) == 8
    for name, make in found.makers.items():
        words = " ".join(text for text, _, _ in in_print.texts(make()))
        assert "stand-in" in words, name


def test_bare_is_called_a_bound_only_where_it_is_one(fakes, tmp_path) -> None:
    def caption(bare: float) -> str:
        results = {}
        for method, score in (("adr", 80.0), ("bare", bare)):
            run = fakes.result(method=method)
            metrics = run.metrics.by_class.model_copy(update={"a_l": score})
            graded = run.metrics.model_copy(update={"by_class": metrics})
            results[run.spec.id] = run.model_copy(update={"metrics": graded})
        return Found(results, tmp_path).figures["plasticity"].caption

    assert caption(90.0).endswith("Bare, which only fits the newest task, is the upper bound.")
    assert caption(70.0).endswith("is the best on 0 of 1 streams.")


@pytest.mark.parametrize("name", ["plasticity", "matrices-cs-cl", "drift"])
def test_a_figure_of_some_methods_says_which_and_why(fakes, tmp_path, name: str) -> None:
    runs = [fakes.result(method=method) for method in ("adr", "propagation", "joint")]
    results = {run.spec.id: run for run in runs}
    embed(fakes, results, tmp_path, ("cs-cl",))
    caption = Found(results, tmp_path).figures[name].caption
    assert "in the paper's figure: ADR." in caption
    assert "Left out: Joint, Propagation" in caption
    assert "not run here: " in caption
