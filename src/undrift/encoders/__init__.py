"""From node to vector: layers that aggregate, apply a linear map and activate; training."""
