"""What survives: learner state and results on disk, written whole or not at all."""
