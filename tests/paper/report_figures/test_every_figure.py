"""The figures of a report in a clone: ours, and those after the paper's."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from undrift.experiments.store import Records
from undrift.reporting.figures.figure import all_figures
from undrift.reporting.figures.sheet import write_figure

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'undrift[figures]'")

NAMES = "learning-curves accuracy-bytes accuracy-seconds drift imbalance matrices-cs-cl "
NAMES += "matrices-corafull-cl matrices-arxiv-cl matrices-reddit-cl-stand-in plasticity surface-adr"


class Found:
    """The figures of some records: those that can be drawn, and why others cannot."""

    def __init__(
        self, results: dict[str, Any], manifests: list[Any], searches: list[Any], folder: Path
    ) -> None:
        records = Records(results, manifests, searches, [], folder)
        every = all_figures(records)
        self.makers = {f.name: partial(f.draw, records) for f in every if not f.left_out}
        self.figures = {f.name: f for f in every if not f.left_out}
        self.left_out = [(f.name, f.left_out) for f in every if f.left_out]


def with_imbalance(results: dict[str, Any]) -> dict[str, Any]:
    return {
        run: result.model_copy(update={"imbalance": [3.0, 1.5]}) for run, result in results.items()
    }


def embed(fakes: Any, results: dict[str, Any], folder: Path, streams: tuple[str, ...]) -> None:
    for run, result in results.items():
        if result.spec.stream in streams and result.spec.method in ("efc", "dpcr", "adr"):
            (folder / run).mkdir(parents=True, exist_ok=True)
            np.savez(folder / run / "embedding.npz", **fakes.points(result.drift[-1]))


@pytest.fixture
def paper(fakes: Any, tmp_path: Path) -> Found:
    results, plan = fakes.folder(seeds=2)
    embed(fakes, results, tmp_path, tuple(fakes.streams))
    searches = [fakes.search(stream) for stream in fakes.streams]
    return Found(with_imbalance(results), [plan], searches, tmp_path)


def test_every_figure_of_the_paper_and_more_is_there(paper: Found) -> None:
    assert list(paper.makers) == NAMES.split()
    assert all(figure.title and figure.caption for figure in paper.figures.values())
    assert paper.left_out == []


def test_every_figure_can_be_read_in_print(paper: Found, in_print: Any) -> None:
    for make in paper.makers.values():
        in_print.check(make())


def test_a_figure_is_written_the_same_twice(paper: Found, tmp_path: Path) -> None:
    for name, suffix in (("drift", "svg"), ("accuracy-bytes", "pdf")):
        files = [tmp_path / f"{name}-{k}.{suffix}" for k in (1, 2)]
        for file in files:
            write_figure(paper.makers[name](), file)
        first, second = (file.read_bytes() for file in files)
        assert first == second
        assert b"dc:date" not in first
        assert b"CreationDate" not in first
        assert len(first) < 800_000


def test_names_are_safe_in_any_file_system(fakes: Any, tmp_path: Path) -> None:
    run = fakes.result()
    spec = run.spec.model_copy(update={"stream": "My Data/Gräph: v2?", "stream_sha256": "a" * 64})
    found = Found({"a": run.model_copy(update={"spec": spec})}, [], [], tmp_path)
    assert all(re.fullmatch(r"[a-z0-9.-]+", name) for name in found.makers)
    assert len(found.makers) == 5


def test_without_runs_every_figure_is_left_out_with_its_reason(tmp_path: Path) -> None:
    found = Found({}, [], [], tmp_path)
    assert found.makers == {}
    assert dict(found.left_out) == {
        "plasticity": "there is no finished run of ADR, ACIL, DS-AL, Bare",
        "drift": "there is no finished run of EFC, DPCR, ADR",
        "surface-adr": "there is no finished search of ADR",
        "learning-curves": "there is no finished run of any method",
        "matrices": "there is no finished run of ACIL, DS-AL, ADR",
        "imbalance": "there is no finished run",
        "accuracy-bytes": "there is no finished run of any method",
        "accuracy-seconds": "there is no finished run of any method",
    }


def test_embeddings_that_are_missing_or_damaged_are_named(fakes: Any, tmp_path: Path) -> None:
    results, plan = fakes.folder(seeds=1)
    embed(fakes, results, tmp_path, ("cs-cl", "corafull-cl"))
    run = fakes.result("cs-cl", "dpcr").spec.id
    (tmp_path / run / "embedding.npz").write_bytes(b"PK nothing")
    found = Found(results, [plan], [], tmp_path)
    whys = [why for name, why in found.left_out if name == "drift"]
    assert len(whys) == 2
    assert re.match(r"DPCR on CS-CL: .*embedding.npz is damaged", whys[0])
    assert "there is no embedding.npz of EFC on Arxiv-CL, DPCR on Arxiv-CL" in whys[1]
    assert "did not record" in dict(found.left_out)["imbalance"]
    figure = found.makers["drift"]()
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [
        *("EFC: drift 132 %", "DPCR", "ADR: drift 0 %"),
        *("EFC: drift 132 %", "DPCR: drift 73 %", "ADR: drift 0 %"),
    ]


def test_a_surface_per_method_and_what_its_trials_share(fakes: Any, tmp_path: Path) -> None:
    search = fakes.search()
    base = search.spec.base.model_copy(update={"params": {"merging": "average"}})
    other = search.model_copy(update={"spec": search.spec.model_copy(update={"base": base})})
    searches = [
        *(search, other, fakes.search(method="ewc", strength=(1, 2, 3))),
        fakes.search(method="efc", damping=(1, 2, 3), strength=(1, 2)),
    ]
    found = Found({}, [], searches, tmp_path)
    shared = "surface-adr-merging-average"
    assert set(found.makers) == {"surface-adr", shared, "surface-efc-damping-strength"}
    assert "surface" not in " ".join(name for name, _ in found.left_out)
    assert "with merging=average" in found.figures[shared].title
    alone = Found({}, [], [fakes.search(gamma=(0.1, 1.0))], tmp_path)
    assert "varies gamma" in dict(alone.left_out)["surface-adr"]


def test_stand_ins_are_marked_in_every_figure(fakes: Any, in_print: Any, tmp_path: Path) -> None:
    results = {}
    for method in ("efc", "dpcr", "adr", "acil", "ds-al", "bare"):
        run = fakes.result(method=method).model_copy(update={"provenance": {"stand_in": True}})
        results[run.spec.id] = run
    embed(fakes, results, tmp_path, ("cs-cl",))
    found = Found(with_imbalance(results), [], [fakes.search()], tmp_path)
    assert len(found.makers) == 8
    for name, make in found.makers.items():
        words = " ".join(text for text, _, _ in in_print.texts(make()))
        assert "stand-in" in words, name


def test_bare_is_called_a_bound_only_where_it_is_one(fakes: Any, tmp_path: Path) -> None:
    def caption(bare: float) -> str:
        results = {}
        for method, score in (("adr", 80.0), ("bare", bare)):
            run = fakes.result(method=method)
            metrics = run.metrics.by_class.model_copy(update={"a_l": score})
            graded = run.metrics.model_copy(update={"by_class": metrics})
            results[run.spec.id] = run.model_copy(update={"metrics": graded})
        return Found(results, [], [], tmp_path).figures["plasticity"].caption

    assert caption(90.0).endswith("Bare, which only fits the newest task, is the upper bound.")
    assert caption(70.0).endswith("is the best on 0 of 1 streams.")


@pytest.mark.parametrize("name", ["plasticity", "matrices-cs-cl", "drift"])
def test_a_figure_of_some_methods_says_which_and_why(fakes: Any, tmp_path: Path, name: str) -> None:
    runs = [fakes.result(method=method) for method in ("adr", "propagation", "joint")]
    results = {run.spec.id: run for run in runs}
    embed(fakes, results, tmp_path, ("cs-cl",))
    caption = Found(results, [], [], tmp_path).figures[name].caption
    assert "in the paper's figure: ADR." in caption
    assert "Left out: Joint, Propagation" in caption
    assert "not run here: " in caption
