"""Thinning: as skewed as asked for, and nothing else changes."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from paper.thin import ARXIV_EXTREMES, thin, thinned_sizes
from tests.harness.check_stream import check_stream
from undrift import InputError, load_stream
from undrift.testing import tiny_stream


@settings(max_examples=50, deadline=None, derandomize=True)
@given(had=st.lists(st.integers(1, 3000), min_size=2, max_size=6), rho=st.floats(1, 80))
def test_sizes_never_grow_never_vanish_and_have_the_skew(had: list[int], rho: float) -> None:
    kept = thinned_sizes(had, rho)
    assert all(1 <= k <= h for k, h in zip(kept, had, strict=True))
    least = max(kept) / rho  # rounded to whole nodes, at least one
    assert min(kept) <= max(1, round(least))
    if len(had) == 2:
        assert min(kept) == max(1, round(least)) or max(kept) == int(rho * min(kept))


def test_nodes_taken_out_are_in_no_task_and_test_nodes_stay() -> None:
    plain = tiny_stream(nodes=240)
    thinned = thin(plain, (6.0,))
    gone = plain.train & ~thinned.train
    assert int(gone.sum()) == 2 * 20
    assert (thinned.task_of[gone] == -1).all()
    assert torch.equal(thinned.test, plain.test)
    assert torch.equal(thinned.val, plain.val)
    assert thinned.task(1).graph.num_nodes == plain.task(1).graph.num_nodes - 20
    check_stream(thinned, lambda seed: thin(tiny_stream(seed, nodes=240), (6.0,)))


@pytest.mark.parametrize("skew", [(), (0.5,), (float("nan"),), (float("inf"),)])
def test_bad_skews(skew: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="ratios of at least 1"):
        thin(tiny_stream(), skew)


def test_by_name() -> None:
    stream = load_stream("synthetic@thin", seed=3)
    assert stream.name == "synthetic@thin"
    assert "17.7, 51.5, 61.9" in stream.provenance["thinned"]
    counts = stream.graph.labelled()[stream.train].bincount()
    for classes, rho in zip(stream.classes[1:], ARXIV_EXTREMES, strict=False):
        least, most = sorted(counts[list(classes)].tolist())
        assert least == max(1, round(most / rho))
