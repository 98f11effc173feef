"""Where graphs come from: one module per source format, and a generator."""

from undrift.datasets.catalogue import Dataset, RemoteFile
from undrift.typing import public_names

__all__ = ["Dataset", "RemoteFile"]
__dir__ = public_names(__name__)
