import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyG's own import is not free of warnings
    import torch_geometric.data  # noqa: F401
