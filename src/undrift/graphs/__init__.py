"""What a graph is: `Graph`, its normalised operators, and exact K-hop batches."""

from undrift.graphs.batches import Hop, full_hops, receptive_field
from undrift.graphs.graph import Graph
from undrift.graphs.normalise import NORMALISATIONS, Normalisation, normalise

__all__ = [
    "NORMALISATIONS",
    "Graph",
    "Hop",
    "Normalisation",
    "full_hops",
    "normalise",
    "receptive_field",
]
