"""Mutation testing: small mistakes made on purpose, to see whether a test notices.

Not in the wheel.

    python -m mutants --sample 200 --workers 2 --out build/mutants.jsonl

Every mutant runs in a fork of a process that has loaded torch and pytest: first the tests of its
module, then, if they pass, all tests of its package.
"""
