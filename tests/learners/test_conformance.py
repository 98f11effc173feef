"""Every method in the registry passes every check of the learner contract."""

from itertools import cycle
from typing import Any

import pytest

from undrift.checks import _described as described
from undrift.errors import InputError
from undrift.learners.registry import METHODS, RECOMMENDERS, make_learner, method_class
from undrift.merging import RULES
from undrift.testing.check_learner import LEARNER_CHECKS
from undrift.testing.check_living import LIVING_CHECKS

QUICK: dict[str, Any] = {"epochs": 4, "hidden": (8, 8), "n_encoders": 20}
OTHER_RULES = sorted(set(RULES.names()) - {"ham", "fisher"})  # they stand in other rows
# each value of an option that changes how a method trains or merges stands in a row at least
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in METHODS if name != "gacl"},  # it is acil by another name
    "adr seen logits": ("adr", {"logits": "seen", "nodes": "all", "balanced": True}),
    "ds-al by rows": ("ds-al", {"cleansing": False}),
    "bare carried": ("bare", {"optimiser": "carried"}),
    "bare mini-batch": ("bare", {"batch_size": 7, "encoder": "gat"}),
    "ewc gat": ("ewc", {"encoder": "gat"}),
    "adr mini-batch": ("adr", {"merging": "fisher", "batch_size": 7, "nodes": "all"}),
    "adr-plus seen logits": ("adr-plus", {"logits": "seen", "encoder": "gin"}),
    "adr expanded": ("adr", {"alpha": 3, "optimiser": "carried"}),
    "adr without merge": ("adr", {"merging": "none", "encoder": "sgc"}),
    "adr rule spelled out": ("adr", {"merging": "paper.merging.weights:Ties", "encoder": "sage"}),
    **{
        f"adr {rule} {encoder}": ("adr", {"merging": rule, "encoder": encoder})
        for rule, encoder in zip(OTHER_RULES, cycle(("gcn", "gin", "gcn", "gat")), strict=False)
    },
}
# what is known does not depend on how it trains
ALL_CHECKS = {"adr seen logits", "ds-al by rows", *METHODS}


@pytest.mark.parametrize("variant", VARIANTS)
def test_conformance(variant: str) -> None:
    name, params = VARIANTS[variant]
    known = method_class(name).defaults()  # a method that trains nothing has no epochs
    quick = {key: value for key, value in (QUICK | params).items() if key in known}
    for name_of_check, check in LEARNER_CHECKS.items():
        if variant in ALL_CHECKS or name_of_check not in LIVING_CHECKS:
            check(make_learner(name, **quick))


@pytest.mark.parametrize("name", [*METHODS, *RECOMMENDERS.names()])
def test_a_class_says_what_tables_need(name: str) -> None:
    kind, entry = method_class(name), METHODS[name]
    assert kind.name == name == entry.name
    assert entry.family != "other"
    assert entry.keeps != "-"
    verbs = ("returns", "forgets", "merges")
    for fact in ("display", "family", "paper", "keeps", "keeps_examples", "learns", *verbs):
        assert getattr(entry, fact) == getattr(kind, fact)


@pytest.mark.parametrize("name", METHODS)
def test_the_search_grid_holds_valid_values(name: str) -> None:
    kind = method_class(name)
    for key, values in kind.grid.items():
        assert len(set(values)) == len(values) > 1
        for value in values:
            assert kind.from_params(**{key: value}).params()[key] == value


WRONG = {
    "a boolean": (True, ("true or false",)),
    "a text": ("no-such-thing", ("a text", "texts", "one of")),
    "a fraction": (0.123, ("a finite number",)),
    "infinity": (float("inf"), ()),
    "an object": (object(), ()),
}


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_refuses_a_wrong_type_in_one_sentence(name: str) -> None:
    kind = method_class(name)
    for key, default in kind.defaults().items():
        assert kind.check_param(key, default) == (
            tuple(default) if isinstance(default, list) else default
        )
        refused = 0
        for value, fine in WRONG.values():
            try:
                kind.from_params(**{key: value})
            except InputError as error:
                sentence = str(error)
                assert key.rpartition("__")[2] in sentence, sentence
                assert "\n" not in sentence
                refused += 1
            else:
                hint = kind._place(key).hint
                assert any(word in described(hint) for word in fine), (key, value)
        assert refused >= 3, key


@pytest.mark.parametrize("name", METHODS)
def test_parameters_as_scikit_learn_has_them(name: str) -> None:
    learner = make_learner(name, seed=3)
    again = type(learner)(**learner.get_params(deep=False))
    assert again == learner
    assert all(again.get_params()[k] is v for k, v in learner.get_params(deep=False).items())
    assert learner.set_params(**learner.get_params()) == again
    assert learner.set_params(**learner.params()) == again
    with pytest.raises(InputError, match=f"unknown parameter of {name} 'nothing'"):
        learner.set_params(seed=4, nothing=1)
    assert learner.seed == 3


@pytest.mark.parametrize("name", METHODS)
def test_options_that_went_are_read_by_what_stayed_of_them(name: str) -> None:
    kind = method_class(name)
    for key, stayed in kind.gone.items():
        assert kind.from_params(**{key: stayed}).params() == kind.defaults()
        if stayed is not ...:
            with pytest.raises(InputError, match=f"{key}='another'"):
                kind.from_params(**{key: "another"})


OUT_OF_RANGE: dict[int | str, str] = {
    -1: "beta budget classifier_gamma compensation distill drift_weight elastic epochs eta fourier "
    "gamma hops jitter kd loss_strength n_encoders outputs propagations rank topology_strength "
    "weight_decay",
    0: "alpha alpha2 batch_size condense_lr distance draws encoder_width evidence_threshold hidden "
    "lr lr_next neighbours noise patience samples scale shrinkage sigma strength temperature",
    1: "dropout dropout_next gain tolerance",
    2: "homophily",
    "none such": "encoder logits merging mix normalisation sampler",
}


@pytest.mark.parametrize("name", METHODS)
def test_a_setting_out_of_range_is_named(name: str) -> None:
    for value, settings in OUT_OF_RANGE.items():
        for key in method_class(name).defaults().keys() & settings.split():
            with pytest.raises(InputError, match=key.removesuffix("_next")):
                make_learner(name, **{key: value})
