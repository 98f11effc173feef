"""Pieces that several methods are composed of."""
