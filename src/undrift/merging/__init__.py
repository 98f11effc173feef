"""Many encoders, one result: each merging rule in its own module."""
