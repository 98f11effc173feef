"""The ADR paper beside our runs: its claims, the compact tables, and `docs/results.md`.

Not a part of the package: `make results`, or from the repository's root `python -m paper`.
"""
