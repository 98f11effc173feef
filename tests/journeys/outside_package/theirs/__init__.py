"""Somebody else's method and merging rule."""
