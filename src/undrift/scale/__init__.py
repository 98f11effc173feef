"""Graphs larger than memory: a graph in a folder, and tasks over blocks of its columns."""
