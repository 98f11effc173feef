"""The command line: one command per module, imports only when a command runs."""
