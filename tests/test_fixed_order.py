"""A sparse product on a GPU has the same bits every time; needs a GPU."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from tests.harness.graphs import noisy_stream
from undrift import Adr, Propagation, fixed_order
from undrift.analytic.random_maps import Sketch
from undrift.sparse import Csr


def on_gpu() -> str:
    if not (torch.cuda.is_available() and fixed_order.available()):
        pytest.skip("needs a GPU and Triton; torch for a CPU has neither")
    return "cuda"


def drawn(width: int, dtype: torch.dtype) -> tuple[Csr, torch.Tensor]:
    """A matrix with an empty row and a full one, and a dense one beside it."""
    rng = np.random.default_rng(width)
    dense = (rng.random((300, 5000)) < 0.02) * rng.normal(size=(300, 5000))
    dense[7], dense[8] = 0, rng.normal(size=5000)
    right = torch.from_numpy(rng.normal(size=(5000, width))).to(dtype)
    return Csr.from_scipy(sp.csr_matrix(dense), dtype=dtype), right


@pytest.mark.parametrize("width", [1, 3, 64, 65, 200])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_is_the_product_with_the_same_bits_each_time(width: int, dtype: torch.dtype) -> None:
    device = on_gpu()
    matrix, right = drawn(width, dtype)
    made = [(matrix.to(device) @ right.to(device)).cpu() for _ in range(5)]
    assert all(torch.equal(made[0], other) for other in made)
    exact = matrix.to_dense().double() @ right.double()
    tiny = 1e-5 if dtype == torch.float32 else 1e-13
    assert float((made[0].double() - exact).norm() / exact.norm()) < tiny


def test_a_sketch_has_the_same_bits_each_time() -> None:
    rows = torch.randn(200, 3000, dtype=torch.float64, device=on_gpu())
    made = [Sketch(3000, 16, seed=0)(rows) for _ in range(5)]
    assert all(torch.equal(made[0], other) for other in made)


@pytest.mark.parametrize("kind", ["adr", "propagation"])
def test_a_learner_has_the_same_bits_each_time(kind: str) -> None:
    device = on_gpu()
    states = []
    for _ in range(2):
        learner = Adr(device=device, epochs=20) if kind == "adr" else Propagation(device=device)
        for task in noisy_stream(noise=0.5):
            learner.observe(task)
        states.append(learner.state().tensors)
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())
