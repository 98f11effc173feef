"""For people who write methods and streams: conformance checks, small graphs, slow twins."""
