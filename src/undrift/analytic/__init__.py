"""Closed-form learning: sums, and pure functions of sums. Knows no graph and no stream."""
