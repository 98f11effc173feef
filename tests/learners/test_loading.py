"""A state is loaded whatever device it was on, and imports nothing."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import undrift
from undrift import InputError, LearnerFolder, make_learner
from undrift.storage.files import load_state, save_state
from undrift.testing.graphs import tiny_graph, tiny_stream


def saved_on(device: str, path: Path, method: str = "propagation", **more: str) -> Path:
    """A state as a machine with that device would have saved it."""
    make_learner(method).observe(tiny_stream().task(0)).save(path, least_rows=1)
    state = load_state(path)
    save_state(path, replace(state, params={**state.params, "device": device, **more}))
    return path


@pytest.mark.parametrize("method", ["propagation", "bare"])
def test_a_device_with_a_colon_comes_back(method: str, tmp_path: Path) -> None:
    task = tiny_stream().task(0)
    learner = make_learner(method, device="cpu:0").observe(task)
    learner.save(tmp_path / "state", least_rows=1)
    again = undrift.load(tmp_path / "state")
    assert again.params() == learner.params()
    assert again.device == "cpu:0"
    assert torch.equal(again.scores(task.graph), learner.scores(task.graph))
    assert undrift.load(tmp_path / "state", device="cpu").device == "cpu"


def test_a_folder_whose_device_has_a_colon(tmp_path: Path) -> None:
    folder = LearnerFolder.new(tmp_path / "desk", settings={"device": "cpu:0", "gamma": 0.1})
    folder.observe(tiny_graph())
    assert folder.verify() == []
    assert folder.learner().device == "cpu:0"
    assert undrift.load(tmp_path / "desk", device="cpu").device == "cpu"


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
@pytest.mark.parametrize("device", ["cuda", "cuda:1", "xpu:0"])
def test_a_state_of_a_machine_with_a_gpu(device: str, tmp_path: Path) -> None:
    path = saved_on(device, tmp_path / "state")
    with pytest.raises(InputError, match=f"{device}.*device='cpu'"):
        undrift.load(path)
    graph = tiny_stream().task(0).graph
    learner = undrift.load(path, device="cpu")
    assert learner.device == "cpu"
    assert learner.predict(graph).shape == (graph.num_nodes,)
    with pytest.raises(InputError, match="unknown device 'gpu'"):
        undrift.load(path, device="gpu")


def test_a_file_with_a_value_that_went_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"old\.state: unknown mix 'went'"):
        undrift.load(saved_on("cpu", tmp_path / "old.state", mix="went"))


def test_a_text_with_a_colon_that_names_no_module(tmp_path: Path) -> None:
    """Only what is looked up as `module:Class` is held to what is imported."""
    path = saved_on("cpu", tmp_path / "state")
    state = load_state(path)
    save_state(path, replace(state, params={**state.params, "budget": "evil:1"}))
    with pytest.raises(InputError) as refused:
        undrift.load(path)
    assert "imports nothing" not in str(refused.value)


def test_what_a_user_spells_out_is_imported_while_a_file_may_not(tmp_path, monkeypatch) -> None:
    code = "from undrift.learners.bare import Bare as Mine\nfrom undrift.merging.ham import Ham"
    (tmp_path / "colon_rules.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "state"
    save_state(path, replace(make_learner("adr").state(), params={"merging": "colon_rules:Ham"}))
    with pytest.raises(InputError, match="a file imports nothing; import colon_rules first"):
        undrift.load(path)
    assert "colon_rules" not in sys.modules
    try:
        made = make_learner("adr", merging="colon_rules:Ham")
        assert made.params()["merging"] == "colon_rules:Ham"
        assert undrift.load(path).params()["merging"] == "colon_rules:Ham"
    finally:
        sys.modules.pop("colon_rules", None)
