"""Tests, and `tests.harness` with what they and `make torture` share. In no wheel."""
