"""Where graphs come from: one module per source format, and a generator."""

from undrift.datasets.dataset import Dataset, RemoteFile

__all__ = ["Dataset", "RemoteFile"]
