"""Training a model by backpropagation, task after task: what most methods share."""
