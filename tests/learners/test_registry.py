"""Methods by name: ours, an entry point's, one spelled out, and those that are broken."""

from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from undrift import Adr, Bare, InputError, Learner, make_learner, plugins
from undrift.learners.registry import METHODS, REGISTRY, known_method, method_class, recorded_name

ADR = "undrift.learners.adr:Adr"


@pytest.fixture
def bring(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], None]:
    """Lets a test say which methods other packages have."""

    def brought(values: dict[str, str]) -> None:
        entries = {name: EntryPoint(name, value, REGISTRY.group) for name, value in values.items()}
        monkeypatch.setattr(
            plugins, "_outside", lambda group: entries if group == REGISTRY.group else {}
        )

    return brought


def test_the_list_is_ours_then_the_others() -> None:
    assert next(iter(METHODS)) == "bare"
    assert len(METHODS) == len(list(METHODS)) == 21
    assert METHODS["adr"].display == "ADR"
    assert METHODS.get("nobody") is None


def test_a_broken_package_is_listed_with_the_reason(bring: Callable[..., None]) -> None:
    bring({"broken": "no.such.module:Thing", "number": "math:pi", "misnamed": ADR})
    assert list(METHODS)[-3:] == ["broken", "misnamed", "number"]
    assert METHODS["broken"].family == "broken"
    assert "No module named 'no'" in METHODS["broken"].keeps
    assert "3.14159" in METHODS["number"].keeps
    assert "no learner" in METHODS["number"].keeps
    assert "whose class is called 'adr'" in METHODS["misnamed"].keeps
    with pytest.raises(InputError, match="No module named 'no'"):
        method_class("broken")


def test_a_method_spelled_out() -> None:
    here = f"{Bare.__module__}:Bare"
    assert here not in METHODS  # so far nobody has asked for it, and it is not imported
    assert method_class(ADR) is Adr
    assert ADR in METHODS
    assert known_method(here) == "bare"
    assert make_learner(Adr, epochs=3).params()["epochs"] == 3
    assert METHODS[here].display == "Bare"
    assert here not in list(METHODS)
    for wrong in ("no.such:Thing", "math:pi"):
        assert wrong not in METHODS
        with pytest.raises(InputError):
            known_method(wrong)


def test_what_is_recorded_is_the_short_name_where_there_is_one(bring: Callable[..., None]) -> None:
    assert known_method("adr") == known_method(ADR) == recorded_name(Adr) == "adr"
    bring({"theirs": "their.package:Theirs"})
    assert recorded_name("their.package:Theirs") == "theirs"
    assert recorded_name("their.package:Other") == "their.package:Other"


def test_a_class_without_a_name_is_refused() -> None:
    with pytest.raises(InputError, match="has no name"):
        method_class(f"{__name__}:Nameless")


class Nameless(Learner):
    """All that a learner does, and no name."""

    def _learn(self, task: Any, progress: Any) -> Any: ...

    def _scores(self, learned: Any, graph: Any, nodes: Any) -> Any: ...
