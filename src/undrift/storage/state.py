"""What a learner knows, as named tensors and plain values.

`pack` takes a dataclass apart and `unpack` builds it again from its type hints. Nothing is
pickled, so nothing loaded can execute code. Of symmetric matrices half is kept.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from itertools import repeat
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

from undrift.errors import InputError

# A field of one of these types may hold a value of those. None: as in `tuple[int, None]`.
_PLAIN: dict[Any, Any] = {kind: kind for kind in (NoneType, bool, int, str)}
_PLAIN |= {None: NoneType, float: (float, int)}
# Names beside the parts of a thing: no field is called so, and `_join` escapes them in dict keys.
_COUNT = "#"  # the length of a tuple, or the keys of a dict
_CLASS = "@"  # the class of a dataclass: tells the members of a union apart
SCALING = "@scaling"  # the value of a state with the centres and spreads of scaled columns
_HOW = "use tensors, plain values, tuples, dicts with str keys, dataclasses and unions of these"
_BLOCK = 1024  # rows of a symmetric matrix at a time: the transpose of a large one is slow to read


@dataclass(frozen=True)
class State:
    """Everything a learner needs to go on.

    `method` and `params` rebuild it; `tensors` and `values` hold what it learned, keyed by dotted
    field paths such as `sums.variants.mix.diagonal`.

    >>> from undrift import Propagation
    >>> from undrift.testing.graphs import tiny_stream
    >>> first, *_ = tiny_stream()
    >>> state = Propagation().observe(first).state()
    >>> isinstance(state, State), state.nbytes > 0
    (True, True)
    """

    method: str
    params: dict[str, Any]
    tensors: dict[str, Tensor]
    values: dict[str, Any]

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors: the size of what is kept."""
        return sum(tensor.nbytes for tensor in self.tensors.values())


def half_of(matrix: Tensor) -> Tensor:
    """The entries on and under the diagonal, row after row; all of it if it is not symmetric."""
    if matrix.dim() != 2 or matrix.shape[0] != matrix.shape[1]:
        return matrix
    strips = (slice(i, i + _BLOCK) for i in range(0, matrix.shape[0], _BLOCK))
    if not all(torch.equal(matrix[strip], matrix[:, strip].T) for strip in strips):
        return matrix
    rows = [matrix[i, : i + 1] for i in range(matrix.shape[0])]
    return torch.cat(rows) if rows else matrix.new_zeros(0)


def size_of_half(matrix: Tensor) -> Tensor:
    """A tensor without memory that has the size of `half_of` a sum, which is symmetric."""
    d = matrix.shape[0]
    return torch.empty(d * (d + 1) // 2, dtype=matrix.dtype, device="meta")


def whole_of(half: Tensor) -> Tensor | None:
    """The matrix, bit by bit; what is not a half comes back; None if it is one of nothing."""
    if half.dim() != 1:
        return half
    d = (math.isqrt(8 * half.numel() + 1) - 1) // 2
    if d * (d + 1) // 2 != half.numel():
        return None
    whole = half.new_empty(d, d)
    for i in range(d):
        whole[i, : i + 1] = whole[: i + 1, i] = half[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2]
    return whole


def pack(
    thing: Any, prefix: str = "", halved: Callable[[Tensor], Tensor] = half_of
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and plain values of a dataclass, a tuple, a dict or a leaf, keyed by their path.

    Beside its parts a tuple keeps its length (`path.#`), a dict its keys (`path.#`) and a
    dataclass the name of its class (`path.@`). Tensors are shared, not copied, but for fields in
    a dataclass's `stored_as_half`. What `unpack` could not build again is a `TypeError`.
    """
    if isinstance(thing, Tensor) and thing.layout == torch.strided:
        return {prefix: thing.detach() if thing.requires_grad else thing}, {}
    if thing is None or isinstance(thing, bool | int | float | str):
        return {}, {prefix: thing}
    tensors: dict[str, Tensor] = {}
    values: dict[str, Any] = {}
    if is_dataclass(thing) and not isinstance(thing, type):
        if not getattr(type(thing), "__parameters__", ()):  # else checked with its types
            _hints(type(thing))
        parts = {f.name: getattr(thing, f.name) for f in fields(thing) if f.init}
        parts |= {name: halved(parts[name]) for name in getattr(thing, "stored_as_half", ())}
        values[_join(prefix, _CLASS)] = type(thing).__name__
    elif isinstance(thing, tuple) and not hasattr(thing, "_fields"):  # no named tuples
        parts = {str(i): part for i, part in enumerate(thing)}
        values[_join(prefix, _COUNT)] = len(thing)
    elif isinstance(thing, dict) and all(isinstance(key, str) for key in thing):
        parts = {_escaped(key): part for key, part in thing.items()}
        values[_join(prefix, _COUNT)] = list(thing)
    else:
        raise TypeError(f"cannot keep {type(thing).__name__} at {prefix!r} in a state; {_HOW}")
    for name, part in parts.items():
        inner, plain = pack(part, _join(prefix, name), halved)
        tensors |= inner
        values |= plain
    return tensors, values


def packed_bytes(thing: Any) -> int:
    """Bytes of the tensors that `pack` gives; no half is copied to know its size."""
    return sum(tensor.nbytes for tensor in pack(thing, halved=size_of_half)[0].values())


def unpack(
    kind: Any,
    tensors: dict[str, Tensor],
    values: dict[str, Any],
    prefix: str = "",
    kinds: Mapping[Any, type] = MappingProxyType({}),
) -> Any:
    """The thing of type `kind` that `pack` took apart.

    `kinds` says which class is meant by a protocol among the hints. A missing part is an
    `InputError`, but for fields in a dataclass's `added_later`: those fall back to their default.
    """

    def part(kind: Any, *steps: str) -> Any:
        return unpack(kind, tensors, values, _join(prefix, *steps), kinds)

    kind = kinds.get(kind, kind)
    _check_hint(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    count = _join(prefix, _COUNT)
    if origin in (Union, UnionType):
        members = tuple(kinds.get(member, member) for member in arguments)
        return part(_member(members, tensors, values, prefix))
    if kind is Tensor:
        return _get(tensors, prefix)
    if origin is tuple:
        parts, endless = _get(values, count), arguments[-1:] == (Ellipsis,)
        if type(parts) is not int or parts < 0 or (not endless and parts != len(arguments)):
            raise _damaged(count, f"is {parts!r}, which is not the number of parts")
        inner = repeat(arguments[0], parts) if endless else arguments
        return tuple(part(each, str(i)) for i, each in enumerate(inner))
    if origin is dict:
        keys = _get(values, count)
        if not isinstance(keys, list) or any(not isinstance(key, str) for key in keys):
            raise _damaged(count, "is no list of keys")
        return {key: part(arguments[1], _escaped(key)) for key in keys}
    if is_dataclass(origin or kind):
        later, parts = getattr(kind, "added_later", ()), {}
        for name, hint in _hints(kind).items():
            path = _join(prefix, name)
            places = {path, _join(path, _CLASS), _join(path, _COUNT)}
            if name not in later or path in tensors or places & values.keys():
                parts[name] = part(hint, name)
        for name in getattr(kind, "stored_as_half", ()):
            parts[name] = whole_of(parts[name])
            if parts[name] is None:
                raise _damaged(_join(prefix, name), "is no half of a symmetric matrix")
        return cast(Any, kind)(**parts)
    value = _get(values, prefix)
    if not _holds(kind, value):
        raise _damaged(prefix, f"is {value!r}, not {_name(kind)}")
    return value


def _member(
    arguments: tuple[Any, ...], tensors: dict[str, Tensor], values: dict[str, Any], path: str
) -> Any:
    """The member of a union that was packed at this path."""
    fits: list[Any]
    if path in tensors:
        fits = [kind for kind in arguments if kind is Tensor]
    elif path in values:
        fits = [kind for kind in arguments if _holds(kind, values[path])]
    elif (counted := _join(path, _COUNT)) in values:
        wanted = dict if isinstance(values[counted], list) else tuple
        fits = [kind for kind in arguments if get_origin(kind) is wanted]
    elif (named := _join(path, _CLASS)) in values:
        fits = [a for a in arguments if is_dataclass(a) and _name(a) == values[named]]
    else:
        raise _damaged(path, "is missing")
    if not fits:
        raise _damaged(path, f"is none of {', '.join(_name(kind) for kind in arguments)}")
    return fits[0]


def _holds(kind: Any, value: Any) -> bool:
    literal = get_origin(kind) is Literal
    return value in get_args(kind) if literal else isinstance(value, _PLAIN.get(kind, ()))


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """The type of each field of a dataclass; a `TypeError` if one cannot be kept."""
    origin = get_origin(kind) or kind
    chosen = dict(zip(getattr(origin, "__parameters__", ()), get_args(kind), strict=True))
    hints = get_type_hints(origin)
    kept = {}
    for name in (f.name for f in fields(origin) if f.init):
        hint = chosen.get(hints[name], hints[name])  # a type for a generic class's variable
        if free := getattr(hint, "__parameters__", ()):
            hint = hint[tuple(chosen[each] for each in free)]
        try:
            _check_hint(hint)
        except TypeError as error:
            raise TypeError(f"field {name!r} of {kind.__name__}: {error}") from None
        kept[name] = hint
    return kept


@cache
def _check_hint(kind: Any) -> None:
    """Refuse a type whose parts could not be told from each other when they are read back."""
    origin, arguments = get_origin(kind), get_args(kind)
    plain = kind in _PLAIN or kind is Tensor or origin is Literal
    # whoever unpacks a protocol says which class it stands for
    if plain or is_dataclass(origin or kind) or getattr(kind, "_is_protocol", False):
        return
    if origin is tuple:
        inner = arguments[:1] if Ellipsis in arguments else arguments
    elif origin is dict and arguments[0] is str:
        inner = arguments[1:]
    elif origin in (Union, UnionType):
        inner = arguments
        names = [get_origin(a) or _name(a) for a in arguments if get_origin(a) is not Literal]
        if len(set(names)) != len(names):
            raise TypeError(f"the members of {kind} cannot be told apart in a state")
    else:
        raise TypeError(f"cannot keep {kind} in a state; {_HOW}")
    for part in inner:
        _check_hint(part)


def _name(kind: Any) -> str:
    return str(getattr(kind, "__name__", kind))


def _join(*steps: str) -> str:
    return ".".join(step for step in steps if step)


def _escaped(key: str) -> str:
    """A dict's key as one step of a path: `a.b` must not look like `b` within `a`."""
    for sign in "%.#@":  # the per cent sign first: it marks what is escaped
        key = key.replace(sign, f"%{ord(sign):02X}")
    return key or "%"  # an empty step would be no step


def _get(parts: dict[str, Any], key: str) -> Any:
    if key not in parts:
        raise _damaged(key, "is missing")
    return parts[key]


def _damaged(path: str, how: str) -> InputError:
    what = f"the state is damaged: {path!r} {how}"
    return InputError(f"{what}; restore it from a copy or learn again")
