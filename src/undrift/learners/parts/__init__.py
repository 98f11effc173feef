"""Pieces that several methods are composed of; a piece of one method stands in its file."""
