"""A generated graph whose classes link to classes of your choice, to their own or to others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from undrift.datasets.synthetic import draw_words, word_chances
from undrift.graphs import Graph


def patterned_graph(
    follows: Sequence[int | None],
    *,
    per_class: int = 100,
    words: int = 120,
    average_degree: float = 8.0,
    words_per_node: float = 10.0,
    share: float = 0.9,
    seed: int = 0,
) -> Graph:
    """As many classes as `follows`; a node of class c links to class `follows[c]`.

    A `share` of the edges follow it and the others go anywhere, as do all where it is None.
    Classes have `per_class` nodes each.

    >>> patterned_graph([1, 2, 0], per_class=10)
    Graph(30 nodes, 200 edges, 120 features sparse, 3 classes)
    """
    rng = np.random.default_rng(seed)
    classes = len(follows)
    labels = np.repeat(np.arange(classes), per_class)
    features = draw_words(
        rng, labels, word_chances(rng, classes, words, 0.6), words_per_node, topic_share=0.6
    )
    count = round(labels.size * average_degree / 2)
    source = rng.integers(0, labels.size, count)
    anywhere = rng.integers(0, classes, count)
    wanted = np.array([-1 if f is None else f for f in follows])[labels[source]]
    loose = (rng.random(count) >= share) | (wanted < 0)
    target = np.where(loose, anywhere, wanted) * per_class + rng.integers(0, per_class, count)
    kept = source != target
    return Graph.from_arrays(
        features, np.stack([source[kept], target[kept]]), labels, undirected=True
    )
