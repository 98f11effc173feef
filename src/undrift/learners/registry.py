"""Every method by its name, ours and other packages'; what tables say of it is on its class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from inspect import isabstract
from typing import TYPE_CHECKING, Any, cast

from undrift.errors import InputError
from undrift.machine import check_device
from undrift.plugins import Registry, importing_nothing

if TYPE_CHECKING:
    from pathlib import Path

    from undrift.learners.base import Learner
    from undrift.learners.parameters import Parameters
    from undrift.storage.state import State

REGISTRY = Registry(
    "method",
    "undrift.methods",
    {
        "bare": "undrift.learners.bare:Bare",
        "joint": "undrift.learners.joint:Joint",
        "lwf": "undrift.learners.lwf:Lwf",
        "ewc": "undrift.learners.ewc:Ewc",
        "mas": "undrift.learners.mas:Mas",
        "twp": "undrift.learners.twp:Twp",
        "er-gnn": "undrift.learners.er_gnn:ErGnn",
        "cat": "undrift.learners.cat:Cat",
        "polo": "undrift.learners.polo:Polo",
        "efc": "undrift.learners.efc:Efc",
        "acil": "undrift.learners.acil:Acil",
        "ds-al": "undrift.learners.ds_al:DsAl",
        "dpcr": "undrift.learners.dpcr:Dpcr",
        "adr": "undrift.learners.adr:Adr",
        "adr-plus": "undrift.learners.adr_plus:AdrPlus",
        "propagation": "undrift.propagation.learner:Propagation",
        "hybrid": "undrift.learners.hybrid:Hybrid",
        "sgc-ridge": "undrift.learners.sgc_ridge:SgcRidge",
        "gacl": "undrift.learners.gacl:Gacl",
    },
)
"""Where a method's class is; another package's entry points in `undrift.methods` come after."""

FIRST_NAMES = {"adr": {"merge": "merging"}}
"""By method: parameters by the first name they had, which ids of runs keep, with today's."""

_TWO: dict[str, tuple[float, ...]] = {"gamma": (0.1, 1.0), "alpha": (1, 8)}
SMOKE = {"joint": {}, "bare": {}, "acil": _TWO, "ds-al": _TWO, "adr": _TWO}
"""What the plan `smoke` runs, and what it searches there."""

FORMS = Registry(
    "other form of method",
    "undrift.forms",
    {"propagation": "undrift.learners.private_propagation:PrivatePropagation"},
)
"""A second class of a method, by the name of the method: `class_for` says when it is taken."""

RECOMMENDERS = Registry(
    "method",
    "undrift.recommenders",
    {
        "next-item": "undrift.recommend.next_item:NextItem",
        "ease": "undrift.recommend.next_item:Ease",
        "item-knn": "undrift.recommend.baselines:ItemKnn",
        "last-item": "undrift.recommend.baselines:LastItem",
        "popularity": "undrift.recommend.baselines:Popularity",
    },
)
"""The same for methods that learn sessions of items."""

DEFAULT = "propagation"
"""The method for those who have not chosen one: see docs/choosing-a-method.md."""


@dataclass(frozen=True)
class Method:
    """What tables say about a method, read from its class; of a broken one, why in `keeps`."""

    name: str
    display: str
    family: str = "other"
    paper: str = "-"
    keeps_examples: bool = False
    keeps: str = "-"
    returns: bool = False
    forgets: bool = False
    merges: bool = False
    verbs_need: str = ""  # the setting without which it neither returns, forgets nor merges
    learns: str = "graphs"  # or sessions


class _Methods(Mapping[str, Method]):
    """Every method by name, those of graphs in order; those of sessions are known too.

    One spelled out as `module:Class` is known once it was loaded, or a result has `described` it.
    """

    def __iter__(self) -> Iterator[str]:
        return iter(REGISTRY.names())

    def __len__(self) -> int:
        return len(REGISTRY.names())

    def __contains__(self, name: object) -> bool:
        known = name in _SPELLED_OUT or name in _DESCRIBED
        return isinstance(name, str) and (known or name in registry_of(name))

    def __getitem__(self, name: str) -> Method:
        if name not in self:
            raise KeyError(name)
        registry = registry_of(name)
        if name not in _SPELLED_OUT and name not in registry:
            return _DESCRIBED[name]
        try:
            if not registry.is_ours(name):
                method_class(name)  # for its checks
            facts = registry.facts(name, [f.name for f in fields(Method)])
            return Method(**facts | {"name": name})
        except InputError as error:
            return Method(name, name, family="broken", keeps=str(error))


METHODS: Mapping[str, Method] = _Methods()
_SPELLED_OUT: set[str] = set()
_DESCRIBED: dict[str, Method] = {}


def described(method: Method) -> None:
    """Let tables say this of a method spelled out, for as long as it is not loaded here."""
    _DESCRIBED[method.name] = method


def registry_of(name: str) -> Registry:
    """Where a method of this name is listed."""
    return RECOMMENDERS if name in RECOMMENDERS else REGISTRY


def method_class(name: str) -> type[Learner]:
    """The class behind a method's name; an unknown name prints the list, a broken one says why."""
    from undrift.learners.parameters import Parameters

    if name not in METHODS and ":" not in name:
        raise REGISTRY.unknown(name, (*REGISTRY.names(), *RECOMMENDERS.names()))
    found = registry_of(name).load(name)
    verbs = all(hasattr(found, verb) for verb in ("observe", "settle", "state"))
    if not (isinstance(found, type) and issubclass(found, Parameters) and verbs):
        raise InputError(
            f"method {name!r} is {found!r}, which is no learner; name a subclass of undrift.Learner"
        )
    if isabstract(found):
        lacks = ", ".join(sorted(found.__abstractmethods__))
        raise InputError(
            f"method {name!r} is an abstract class, it lacks {lacks}; name a class that has all of "
            "a learner's methods (see docs/adding-a-method.md)"
        )
    if not isinstance(getattr(found, "name", None), str):
        raise InputError(
            f"method {name!r} has no name; write in its class: name: ClassVar[str] = 'my-method'"
        )
    if ":" in name:
        _SPELLED_OUT.add(name)
    elif found.name != name:
        package = registry_of(name).origin(name)
        raise InputError(
            f"the package {package} brings method {name!r}, whose class is called "
            f"{found.name!r}; give the entry point the name of the class"
        )
    return cast("type[Learner]", found)


def known_method(name: str) -> str:
    """The name of a method to record; only one spelled out as `module:Class` is loaded."""
    if name not in registry_of(name):
        method_class(name)
    return recorded_name(name)


def recorded_name(method: str | type[Parameters]) -> str:
    """The name under which a method can be found again: short where it has one."""
    where = method if isinstance(method, str) else f"{method.__module__}:{method.__qualname__}"
    lists = ((name, each) for each in (REGISTRY, FORMS, RECOMMENDERS) for name in each.names())
    return next((name for name, each in lists if each.where(name) == where), where)


def default_learner(seed: int = 0, device: str = "cpu") -> Learner:
    """The learner to begin with: the most accurate one here that keeps no example.

    >>> learner = default_learner()
    >>> learner.name, learner.keeps_examples
    ('propagation', False)
    """
    return make_learner(DEFAULT, seed=seed, device=device)


def load(path: str | Path, *, device: str | None = None) -> Learner:
    """The learner that `Learner.save` wrote, ready to go on; `device` other than it had if given.

    A file imports nothing: one that names `module:Class` needs that module imported before.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     make_learner("adr", gamma=0.1).save(f"{folder}/learner")
    ...     load(f"{folder}/learner").params()["gamma"]
    0.1
    """
    from undrift.storage.files import load_state

    return learner_of(load_state(path), path, device=device)


def learner_of(state: State, path: str | Path, *, device: str | None = None) -> Learner:
    """The learner of a state that was read from `path`; see `load`."""
    params = state.params if device is None else {**state.params, "device": device}
    saved = params.get("device")
    if device is None and isinstance(saved, str):  # another type is named later
        try:
            check_device(saved)
        except InputError as error:
            raise InputError(
                f"{path} was saved on the device {saved!r}, which is not usable here; give "
                "another, as in undrift.load(path, device='cpu')"
            ) from error
    with importing_nothing(path):
        try:
            return make_learner(state.method, **params).load(state)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error


def make_learner(name: str | type[Learner], /, **params: Any) -> Learner:
    """A learner by its name or class, with some hyperparameters set.

    >>> make_learner("adr", gamma=0.1).params()["gamma"]
    0.1
    """
    if isinstance(name, type):
        return name.from_params(**params)
    return class_for(name, params).from_params(**params)


def class_for(name: str, params: Mapping[str, Any]) -> type[Learner]:
    """The class behind a method's name that takes these settings: its own, or its other form.

    >>> class_for("propagation", {"epsilon": 1.0}).__name__
    'PrivatePropagation'
    """
    kind = method_class(name)
    here, form = kind.other_form, kind.name
    other = any(params[name] != here[name] for name in params.keys() & here.keys())
    if other and (form in FORMS or FORMS.in_a_clone(form)):
        kind = FORMS.load(form)
    return kind
