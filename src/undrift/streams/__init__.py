"""How graphs arrive: `Task`, `TaskStream` and the benchmark streams. Import from the modules."""
