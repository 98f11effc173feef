"""States that the version before wrote load, and everything goes on; older ones are refused."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from undrift import InputError, load, make_learner
from undrift.storage.files import load_state
from undrift.testing.graphs import tiny_stream

STATES = sorted((Path(__file__).parent / "states").glob("*.safetensors"))


@pytest.mark.parametrize("path", STATES, ids=lambda path: path.stem)
def test_a_state_of_before_loads_and_goes_on(path: Path) -> None:
    learner, graph = load(path), tiny_stream().graph
    fresh = make_learner(learner.name, **learner.params())
    for task in tiny_stream():
        fresh.observe(task)
    assert learner.classes_ == fresh.classes_
    exact = not hasattr(fresh, "backbone")  # a trained encoder differs between machines
    near = 1e-7 if exact else 1e-2
    assert torch.allclose(learner.scores(graph), fresh.scores(graph), rtol=near, atol=near)
    if learner.can("forgets"):
        learner.forget(tiny_stream().task(1))
        assert learner.classes_ == (0, 1, 4, 5)
    again = make_learner(learner.name, **learner.params()).load(learner.state())
    assert torch.allclose(learner.scores(graph), again.scores(graph), rtol=1e-7, atol=1e-7)


def test_an_older_one_says_how_to_go_on() -> None:
    state = load_state(STATES[0])
    older = replace(state, values={"fixed.@": "Fixed"})
    with pytest.raises(InputError, match=r"load and save it once with version 0\.2\.0"):
        make_learner(state.method, **state.params).load(older)
    inverse = replace(state, method="gacl", tensors={**state.tensors, "inverse": torch.eye(2)})
    with pytest.raises(InputError, match="make a new learner"):
        make_learner("gacl").load(inverse)
