"""Where graphs come from: one module per source format, and a generator."""

from undrift.datasets.catalogue import Dataset, RemoteFile

__all__ = ["Dataset", "RemoteFile"]
