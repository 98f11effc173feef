"""The only loop over tasks, the test protocols, the accuracy matrix and its metrics, cost."""
