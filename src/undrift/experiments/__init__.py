"""Which runs: a spec, the run it describes, and its result."""
