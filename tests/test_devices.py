"""A device is checked where it is given, in one sentence."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from undrift import Bare, InputError, LearnerFolder, default_learner, make_learner
from undrift.experiments.bench import bench
from undrift.experiments.plan import BenchPlan, PlanRow
from undrift.machine import check_device
from undrift.testing import tiny_graph, tiny_stream


@pytest.fixture
def gpus(monkeypatch) -> Callable[[int], None]:
    """As many GPUs as a test says, by what torch tells of them."""

    def are_there(count: int) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)

    return are_there


ODD = ["gpu", "", "CUDA", "cuda:", "cuda:x", "cpu:", "meta", "mps", "os:system"]


@pytest.mark.parametrize("device", ODD)
def test_an_unknown_device_is_told_what_there_is(device: str, gpus: Callable[[int], None]) -> None:
    gpus(2)
    for there in ("cpu", "cpu:0", "cuda", "cuda:1", torch.device("cpu")):
        check_device(there)
    with pytest.raises(InputError, match=r"'cuda:2'; choose one of: cpu, cuda, cuda:0, cuda:1$"):
        check_device("cuda:2")
    with pytest.raises(InputError, match=f"unknown device {device!r}; choose cpu, or cuda"):
        check_device(device)


def _set(device: str) -> None:
    Bare().set_params(device=device)


def _assigned(device: str) -> None:
    learner = Bare()
    try:
        learner.device = device
    finally:
        assert learner.device == "cpu"


def _benched(device: str) -> None:
    plan = BenchPlan("p", "P", (PlanRow("bare", "bare"),), ("synthetic",), device=device)
    bench([plan], "nowhere")


GIVEN: dict[str, Callable[[str], Any]] = {
    "a constructor": lambda device: Bare(device=device),
    "by name": lambda device: make_learner("propagation", device=device),
    "by default": lambda device: default_learner(device=device),
    "set": _set,
    "assigned": _assigned,
    "a graph": lambda device: tiny_graph().to(device),
    "a task": lambda device: tiny_stream().task(0).to(device),
    "a stream": lambda device: tiny_stream().to(device),
    "a plan": _benched,
    "a folder": lambda device: LearnerFolder.new("desk", settings={"device": device}),
}


@pytest.mark.parametrize("where", GIVEN)
def test_it_is_checked_where_it_is_given(where, gpus, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    gpus(0)
    with pytest.raises(InputError, match="unknown device 'gpu'"):
        GIVEN[where]("gpu")
    with pytest.raises(InputError, match="no CUDA GPU is usable; choose cpu"):
        GIVEN[where]("cuda")
    assert list(tmp_path.iterdir()) == []
