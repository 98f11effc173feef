"""Novelty against prediction: of all nodes of a real graph, and of one."""

import torch

from benchmarks.measure import Ratio, interleaved
from undrift import Propagation, load_stream

STREAMS = ("cs-cl", "photo-cl", "coraml-cl")


def run() -> list[Ratio]:
    """The lines of this benchmark."""
    return [line for name in STREAMS for line in _lines(name)]


def _lines(name: str) -> list[Ratio]:
    stream = load_stream(name, seed=0)
    learner = Propagation().observe(stream.task(0)).observe(stream.task(1)).settle()
    graph, known = stream.graph, learner.known
    features = known.plan.feature_map(known.answer.variant)
    every = torch.arange(graph.num_nodes)
    taken = interleaved(
        {
            "novelty": lambda: learner.novelty(graph),
            "probabilities": lambda: learner.predict_proba(graph),
            "predict": lambda: learner.predict(graph),
            "rows": lambda: features.plain(graph, every, torch.float32),
            "one": lambda: learner.novelty(graph, [7]),
        },
        repeats=3,
        warm_up=1,
    )
    shown = ", ".join(f"{key} {seconds:.3g} s" for key, seconds in taken.items())
    ratios = {
        "novelty / probabilities, all nodes": (taken["novelty"] / taken["probabilities"], 1.5),
        "novelty / predict alone, all nodes": (taken["novelty"] / taken["predict"], None),
        "novelty / its rows alone": (taken["novelty"] / taken["rows"], 1.5),
        "novelty of one node / of all": (taken["one"] / taken["novelty"], 1.0),
    }
    return [Ratio(f"{name}: {key}", value, shown, most) for key, (value, most) in ratios.items()]
