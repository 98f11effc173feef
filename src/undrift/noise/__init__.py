"""Differential privacy of sums: how much noise, its sampling, one joint release, an account."""
