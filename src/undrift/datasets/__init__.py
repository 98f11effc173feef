"""Where graphs come from: one module per source format, and a generator."""
