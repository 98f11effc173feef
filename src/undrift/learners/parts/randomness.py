"""Where randomness comes from: the seed and the number of the task, nothing else."""

from __future__ import annotations

import numpy as np
import torch

__all__ = ["generator_for"]


def generator_for(seed: int, t: int) -> torch.Generator:
    """The generator of task t: the same after a restart, so no generator is ever saved."""
    word = np.random.SeedSequence([seed, t]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(word))
