"""For people who write methods: conformance checks and small graphs."""

from undrift.testing.check_learner import LEARNER_CHECKS, check_learner
from undrift.testing.graphs import tiny_graph, tiny_stream
from undrift.typing import public_names

__all__ = ["LEARNER_CHECKS", "check_learner", "tiny_graph", "tiny_stream"]
__dir__ = public_names(__name__)
