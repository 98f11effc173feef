"""Attacks on what a learner keeps: what can be read out of a state, measured.

Threat model. The attacker holds a state file, or two of one learner (before and after a batch),
and knows the code, the seed and the hyperparameters, so that every random map is theirs too. They
also know the graph a batch came with, its edges and unlabelled nodes, and can compute the row of a
node whose features they know as the learner did, in the graph of its batch. What is not known is
which nodes were learned from, or what the features of some were. No attack asks the learner
anything: all read the file. Nothing here needs more than a laptop.

What is attacked are sums. Every learner says which it keeps, as a list of `KeptSum` (`kept_sums`):
a Gram matrix `R = sum z z^T`, class means, or both, with the function that makes rows. Each attack
is a pure function of tensors, so it is the same for every method:

- `rows`: rows that are read out of the mean of a small class, out of a thin column, out of a sum
  of few rows, or beside rows that are known;
- `membership`: whether a row is in a Gram matrix, by span, leverage and likelihood; which of all
  candidates add up to it; and the baseline, how sure plain weights are of a node;
- `completions`: which word makes a known node's row fit the sum.

`attack_state` runs them on a learner and returns what they achieved; `predicted` says from counts
alone what they would.
"""

from undrift.learners.kept import KeptSum
from undrift.privacy.attacks.attack import (
    Candidates,
    attack_state,
    kept_sums,
    membership_statistics,
    predicted,
    two_states,
)
from undrift.privacy.attacks.finding import Finding

__all__ = [
    "Candidates",
    "Finding",
    "KeptSum",
    "attack_state",
    "kept_sums",
    "membership_statistics",
    "predicted",
    "two_states",
]
