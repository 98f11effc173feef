"""Hyperparameters of a learner: by name, as plain values, as scikit-learn users know them."""

from __future__ import annotations

import inspect
from abc import ABCMeta
from collections import ChainMap, Counter
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar, NamedTuple, Self, final, get_args, get_origin

from undrift.checks import checked, field_types
from undrift.errors import InputError, unknown_name
from undrift.machine import check_device
from undrift.plugins import note_once

_LONG = 200  # characters of a hyperparameter that no error repeats, such as a plan
_TRAINING = {"epochs", "lr", "learning_rate", "batch_size", "dropout", "hidden", "patience"}


class _TakesAll(ABCMeta):
    """Lets a class take the settings of its parts as arguments: `Adr(epochs=30, hidden=64)`."""

    def __call__(cls, *args: Any, **given: Any) -> Any:
        if args and all(f.kw_only for f in fields(cls) if f.init):  # type: ignore[arg-type]
            raise InputError(f"{cls.__name__} takes settings by name, as in {cls.__name__}(seed=0)")
        one_width = isinstance(given.get("hidden"), int)
        if args or (given.keys() <= field_types(cls).keys() and not one_width):
            return super().__call__(*args, **given)
        return cls.from_params(**given)  # type: ignore[attr-defined]

    def __dir__(cls) -> list[str]:
        """What `help` lists: a learner's verbs. An instance lists everything."""
        every = super().__dir__()
        listed = getattr(cls, "listed", ())
        return [name for name in every if name in listed] if listed else list(every)

    @property
    def __signature__(cls) -> inspect.Signature:
        try:
            defaults, places = cls.defaults(), _places(cls)  # type: ignore[attr-defined]
        except Exception as error:  # an abstract class, or one that is being made
            raise AttributeError("__signature__") from error
        kind = inspect.Parameter.KEYWORD_ONLY
        return inspect.Signature(
            [
                inspect.Parameter(name, kind, default=defaults[name], annotation=place.plain)
                for name, place in places.items()
            ]
        )


@dataclass(kw_only=True)
class Parameters(metaclass=_TakesAll):
    """The fields of a dataclass as hyperparameters, and those of its parts beside them.

    All of them are arguments of the class, by name. What is assigned is checked by its annotated
    type. A learner is one.

    >>> from undrift import Adr
    >>> Adr(epochs=30, hidden=64, layers=3).params()["hidden"]
    [64, 64, 64]
    """

    name: ClassVar[str]
    renamed: ClassVar[dict[str, str]] = {}  # parameters by the names they had, for old records
    gone: ClassVar[dict[str, Any]] = {}  # what went, with the value that stayed; ...: any
    other_form: ClassVar[dict[str, Any]] = {}  # of the method's other class, with the value here
    takes_other: ClassVar[str] = "undrift.make_learner({method!r}, {given}, ...)"  # that class
    why_gone: ClassVar[str] = (
        "any more; leave it out, or take the commit that docs/decisions/0022 names"
    )

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        setattr(cls, "__repr__", Parameters._shown)  # noqa: B010  # before a dataclass sets its own

    @final
    def _shown(self) -> str:
        places = _places(type(self)).items()
        hidden = {f.name for f in fields(self) if not f.repr}
        parts = (f"{n}={p.value(self)!r}" for n, p in places if (p.part or p.field) not in hidden)
        return f"{type(self).__name__}({', '.join(parts)})"

    @final
    def params(self) -> dict[str, Any]:
        """The hyperparameters as plain values; those of a part such as `backbone` stand beside.

        A part's goes by its own name where nothing else has it, else by `backbone__name`.
        """
        found = {name: place.value(self) for name, place in _places(type(self)).items()}
        return {n: list(v) if isinstance(v, tuple) else v for n, v in found.items()}

    @final
    @classmethod
    def from_params(cls, **params: Any) -> Self:
        """The learner with these hyperparameters, parts' among them; an unknown one is named."""
        own = {f.name: f.default for f in fields(cls) if f.init and f.default is not MISSING}
        made = {f.name: f.default_factory for f in fields(cls) if f.init}
        own |= {name: make() for name, make in made.items() if make is not MISSING}
        return cls._changed(own, params)

    @final
    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Each hyperparameter with its default, as plain values."""
        return cls().params()

    @final
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What the constructor takes, as scikit-learn has it; `deep` adds `backbone__lr` and such.

        >>> from undrift.learners.bare import Bare
        >>> sorted(Bare().get_params(deep=False))
        ['backbone', 'device', 'seed']
        """
        own = {name: getattr(self, name) for name in field_types(type(self))}
        parts = {name: part for name, part in own.items() if deep and _is_part(type(part))}
        inner = ((name, part, f.name) for name, part in parts.items() for f in fields(part))
        return own | {f"{name}__{field}": getattr(part, field) for name, part, field in inner}

    @final
    def set_params(self, **params: Any) -> Self:
        """Change hyperparameters by any of their names, all or none, before anything is learned."""
        known = getattr(self, "learned_", None)
        if known is not None and params:
            raise InputError(
                f"{next(iter(params))} cannot be set after {len(known.classes)} classes were "
                "observed; set it on clone(), which has observed nothing"
            )
        made = self._changed(self.get_params(deep=False), params)
        for name in field_types(type(self)):
            setattr(self, name, getattr(made, name))
        return self

    @final
    def clone(self) -> Self:
        """A learner with the same hyperparameters that has observed nothing."""
        return type(self)(**self.get_params(deep=False))

    @classmethod
    def check_param(cls, name: str, value: Any) -> Any:
        """The value as the hyperparameter takes it; an unknown name or wrong type is named."""
        gone = cls._is_gone(name, value)
        return value if gone else checked(name, cls._place(name).hint, value)

    @final
    @classmethod
    def _changed(cls, own: dict[str, Any], params: Mapping[str, Any]) -> Self:
        """The learner of these constructor arguments with some hyperparameters changed."""
        changes: dict[str, dict[str, Any]] = {"": {}}  # of the learner, and of its parts by name
        for name, value in cls._with_layers(params).items():
            if not cls._is_gone(name, value):
                place = _Place(None, name) if name in own else cls._place(name)
                changes.setdefault(place.part or "", {})[place.field] = value
        own |= changes.pop("")
        return cls(**own | {part: replace(own[part], **new) for part, new in changes.items()})

    @final
    @classmethod
    def _with_layers(cls, params: Mapping[str, Any]) -> dict[str, Any]:
        """`hidden=64, layers=3` is `hidden=(64, 64, 64)`; without `layers` there are as usual."""
        given = dict(params)
        one_width = "layers" in given or isinstance(given.get("hidden"), int)
        if "hidden" not in _places(cls) or not one_width:
            return given
        usual = cls.defaults()["hidden"]
        width, layers = given.get("hidden", usual[0]), given.pop("layers", len(usual))
        if not isinstance(width, int) or not isinstance(layers, int) or layers < 1:
            raise InputError(
                f"layers={layers!r} needs one width for all layers, as in hidden=64, not "
                f"hidden={width!r}; or give hidden=(64, 32) alone"
            )
        return {**given, "hidden": (width,) * layers}

    @final
    @classmethod
    def _place(cls, name: str) -> _Place:
        known, asked = _places(cls), name
        name = cls.renamed.get(name, name)
        if name != asked:
            note = f"{asked} of {cls.name} is called {name} now; write {name}"
            note_once(note, note)
        for short, place in known.items():
            if name in (short, f"{place.part}__{place.field}"):
                return place
        if name in _TRAINING and "epochs" not in known:
            way = f"leave out {name}, or take a method that does, such as adr"
            raise InputError(f"{cls.name} does not train a network; {way}")
        raise unknown_name(f"parameter of {cls.name}", name, known)

    @final
    @classmethod
    def _is_gone(cls, name: str, value: Any) -> bool:
        """Whether a parameter went, so that this value, which is how it is now, may be left out."""
        name = cls.renamed.get(name, name)
        stayed = _gone(cls)
        if name not in stayed:
            return False
        if stayed[name] not in (..., value):
            given = f"{name}={value!r}"
            if name in cls.other_form:
                take = cls.takes_other.format(method=cls.name, given=given)
                raise InputError(f"{cls.name} has no setting {name}; take {take}")
            raise InputError(f"{cls.name} has no setting {given} {cls.why_gone}")
        return True

    def __setattr__(self, name: str, value: Any) -> None:
        hint = field_types(type(self)).get(name)
        super().__setattr__(name, value if hint is None else checked(name, hint, value))

    @final
    def _check_same_params(
        self, theirs: Mapping[str, Any], who: str, may_differ: Collection[str] = ()
    ) -> None:
        may_differ = {"device", *may_differ}
        theirs = {
            self.renamed.get(name, name): value
            for name, value in theirs.items()
            if not self._is_gone(name, value)
        }
        for key, mine in self.params().items():
            if key not in may_differ and key in theirs and mine != theirs[key]:
                its, own = (f"{key}={value!r}" for value in (theirs[key], mine))
                if max(len(its), len(own)) > _LONG:
                    raise InputError(f"{who} another {key}; give both the same {key}")
                raise InputError(
                    f"{who} {its}, this learner has {own}; build the learner with {its}"
                )


class _Place(NamedTuple):
    """Where a hyperparameter is: a field of the learner, or of one of its parts."""

    part: str | None
    field: str
    hint: Any = Any

    @property
    def plain(self) -> Any:
        return get_args(self.hint)[0] if get_origin(self.hint) is Annotated else self.hint

    def value(self, learner: Any) -> Any:
        return getattr(getattr(learner, self.part) if self.part else learner, self.field)


@lru_cache(maxsize=256)
def _places(kind: type) -> dict[str, _Place]:
    """Every hyperparameter of a learner by its shortest name."""
    found: list[_Place] = []
    for name, hint in field_types(kind).items():
        if _is_part(hint):
            found += [_Place(name, inner, type_) for inner, type_ in field_types(hint).items()]
        else:
            found.append(_Place(None, name, hint))
    times = Counter(place.field for place in found)
    return {
        p.field if p.part is None or times[p.field] == 1 else f"{p.part}__{p.field}": p
        for p in found
    }


@lru_cache(maxsize=256)
def _gone(kind: type[Parameters]) -> Mapping[str, Any]:
    """What went of a learner and its parts or is its other form's, unless it has it itself."""
    parts = (getattr(hint, "gone", {}) for hint in field_types(kind).values())
    every, own = ChainMap(kind.gone, kind.other_form, *parts), _places(kind)
    return {name: stayed for name, stayed in every.items() if name not in own}


def _is_part(hint: Any) -> bool:
    return isinstance(hint, type) and is_dataclass(hint)


def check_not_negative(**values: float) -> None:
    """Reject hyperparameters that must be at least zero."""
    for name, value in values.items():
        if not value >= 0:
            raise InputError(f"{name} must be at least 0, not {value}")


def check_positive(**values: float | None) -> None:
    """Reject hyperparameters that must be greater than zero; None is no number."""
    for name, value in values.items():
        if value is not None and not value > 0:
            raise InputError(f"{name} must be greater than 0, not {value}")


def check_seed(**values: int) -> None:
    """Reject seeds that no generator takes."""
    for name, value in values.items():
        if not 0 <= value < 2**63:
            raise InputError(f"{name} must be from 0 to 2**63 - 1, not {value}")


Seed = Annotated[int, check_seed]
Device = Annotated[str, check_device]
Positive = Annotated[float, check_positive]
PositiveInt = Annotated[int, check_positive]
PositiveOrNone = Annotated[float | None, check_positive]
NotNegative = Annotated[float, check_not_negative]
NotNegativeInt = Annotated[int, check_not_negative]
"""Types of hyperparameters that are checked when they are set."""
