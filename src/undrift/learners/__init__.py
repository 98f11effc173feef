"""Methods: one module each, the same four verbs. `registry` lists them without importing torch."""
