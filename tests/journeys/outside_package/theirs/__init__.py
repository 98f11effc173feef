"""Somebody else's method, merging rule, dataset, metric and figures."""
