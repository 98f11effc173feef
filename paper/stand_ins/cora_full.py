"""The stand-in for CoraFull: its real links and labels, with generated words."""

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from paper.stand_ins.cache import cached_matrix
from undrift.datasets.archives import open_npz
from undrift.datasets.catalogue import DATASETS
from undrift.datasets.readers import csr_of, undirected
from undrift.datasets.synthetic import draw_words, word_chances
from undrift.graphs import Graph

WORDS_PER_NODE = 66.0
"""Words drawn; about 60 of them are different. A choice: the real features are not at hand."""

TOPIC_SHARE = 0.5
KINSHIP = 0.5


def make(path: Path, *, seed: int) -> tuple[Graph, int]:
    """The graph of `cora_full_topology.npz` with words: Zipf's law, tilted by a topic per class.

    Words come from the class with probability 0.5 and from the background otherwise; class c
    shares half of its topic with class c + 35 (see `undrift.datasets.synthetic.generate`).
    """
    with open_npz(path, "the links and labels of CoraFull are in adj_* and labels") as archive:
        links, labels = undirected(csr_of(archive, "adj")), archive.array("labels", "iu")
    width, classes = DATASETS["cora-full"].features, int(labels.max(initial=0)) + 1

    def draw() -> sp.csr_matrix:
        rng = np.random.default_rng(seed)
        chances = word_chances(rng, classes, width, KINSHIP)
        return draw_words(rng, labels, chances, WORDS_PER_NODE, TOPIC_SHARE)

    words = cached_matrix(f"cora-full-{seed}", labels, (labels.size, width), draw)
    graph = Graph.from_scipy(words, links, labels)
    return graph, graph.num_edges
