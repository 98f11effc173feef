"""Methods: one module each, the same four verbs; each class is imported when first asked for."""

from importlib import import_module
from typing import Any

from undrift.learners.registry import REGISTRY, method_class
from undrift.typing import public_names

_PRIVATE = "PrivatePropagation"  # `propagation` by name, with noise
_NAMES = {where.partition(":")[2]: name for name, where in REGISTRY.own.items()}

__all__ = list(_NAMES) + ["PrivatePropagation"]  # noqa: RUF005  # a name that is no method
__dir__ = public_names(__name__)


def __getattr__(name: str) -> Any:
    if name == _PRIVATE:
        return import_module("undrift.learners.private_propagation").PrivatePropagation
    if name not in _NAMES:
        raise AttributeError(f"module 'undrift.learners' has no attribute {name!r}")
    return method_class(_NAMES[name])
