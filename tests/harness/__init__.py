"""What holds undrift to its promises: slow twins, faults, kills, crowds, changed files.

`python -m tests.harness.torture` from the root runs all of it at length; tests take small parts.
"""
