"""Two ranks that learn together come to what one comes to alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from undrift import Adr, Learner, Propagation, ranks
from undrift.learners import Lwf
from undrift.learners.parts.backbone import OngoingBackbone
from undrift.testing import tiny_stream

SOME = OngoingBackbone(epochs=6, hidden=(8, 8))
FEW = OngoingBackbone(
    epochs=3, hidden=(8, 8), batch_size=3
)  # a last batch of fewer nodes than ranks
LEARNERS: dict[str, Learner] = {
    "adr": Adr(backbone=SOME, balanced=True),
    "batches": Adr(backbone=FEW, nodes="all"),
    "lwf": Lwf(backbone=SOME),  # its loss looks at more than the embeddings
    "propagation": Propagation(),
}


def taught(name: str) -> Learner:
    learner = LEARNERS[name].clone()
    for task in tiny_stream():
        learner.observe(task)
    return learner.settle()


@pytest.fixture(scope="module")
def together(tmp_path_factory) -> Path:
    """The states that the first of two ranks came to; this file is their program."""
    folder = tmp_path_factory.mktemp("ranks")
    run = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    told = subprocess.run(
        [sys.executable, *run, __file__, str(folder)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert told.returncode == 0, told.stderr[-2000:]
    return folder


@pytest.mark.parametrize("name", LEARNERS)
def test_two_ranks_come_to_what_one_does(name: str, together: Path) -> None:
    alone = taught(name).state().tensors
    for number in (0, 1):
        found = torch.load(together / f"{name}-{number}.pt", weights_only=True)
        assert found.keys() == alone.keys()
        for key, wanted in alone.items():
            scale = max(float(wanted.double().norm()), 1e-30)
            error = float((found[key].double() - wanted.double()).norm()) / scale
            # sums over rows that no training moved are exact; what training led to is in float32
            assert error < (1e-12 if name == "propagation" and "sums" in key else 1e-6), key


def test_shares_cover_everything_once() -> None:
    for count in (0, 1, 2, 7):
        parts = [ranks._share(count, r, 3) for r in range(3)]
        assert [i for part in parts for i in range(part.start, part.stop)] == list(range(count))


if __name__ == "__main__":
    ranks.join()
    for each in LEARNERS:
        torch.save(taught(each).state().tensors, Path(sys.argv[1]) / f"{each}-{ranks.rank()}.pt")
    ranks.leave()
