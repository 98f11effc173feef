"""What a graph is: `Graph`, its normalised operators, and exact K-hop batches."""

from undrift.graphs.encoding import Encoding
from undrift.graphs.field import Hop, ReceptiveField, narrowed, receptive_field
from undrift.graphs.graph import Graph, disjoint_union
from undrift.graphs.graph_set import GraphSet, Pooling
from undrift.graphs.normalise import NORMALISATIONS, Normalisation, normalise
from undrift.graphs.scaling import Scaling
from undrift.typing import public_names

__all__ = [
    "NORMALISATIONS",
    "Encoding",
    "Graph",
    "GraphSet",
    "Hop",
    "Normalisation",
    "Pooling",
    "ReceptiveField",
    "Scaling",
    "disjoint_union",
    "narrowed",
    "normalise",
    "receptive_field",
]
__dir__ = public_names(__name__)
