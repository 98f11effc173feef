"""For propagation and hybrid: features that are a fixed function of the graph, and their banks."""
