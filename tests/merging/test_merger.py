"""The interface: every rule has it, takes an encoder of the package, and survives a state."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from undrift.encoders.architecture import KINDS, Architecture
from undrift.encoders.encoder import Encoder, Head
from undrift.errors import InputError
from undrift.merging import RULES, merging_rule
from undrift.merging.merger import Adapted, Merger, MergeSettings
from undrift.storage.state import pack
from undrift.testing.graphs import tiny_graph


def adapted(seed: int, kind: Any = "gcn", sparse: bool = False) -> Adapted:
    graph = tiny_graph(seed, sparse=sparse)
    noise = torch.Generator().manual_seed(seed)
    encoder = Encoder.create(Architecture(kind=kind, hidden=(7, 5)), graph.num_features, noise)
    return Adapted(encoder, Head.create(5, 3, noise), graph, torch.arange(0, 60, 2), noise)


def empty(rule: str, like: Adapted | None = None) -> Merger:
    encoder = (like or adapted(0)).encoder
    return merging_rule(rule).empty(encoder, MergeSettings(gamma=0.5))


def test_a_rule_is_found_by_its_name_or_spelled_out() -> None:
    assert merging_rule("undrift.merging.ham:Ham") is merging_rule("ham")
    assert merging_rule("undrift.merging.weights:Ties") is merging_rule("ties")  # as 0.2.0 has it
    with pytest.raises(InputError, match=r"unknown merging rule 'hum' \(did you mean 'ham'"):
        merging_rule("hum")
    with pytest.raises(InputError, match=r"merging rule 'math:pi' has no name; see"):
        merging_rule("math:pi")


@pytest.mark.parametrize("rule", RULES.names())
def test_row_weights_of_one_change_nothing(rule: str) -> None:
    one = adapted(1)
    weighed = replace(adapted(1), row_weights=torch.ones(30, dtype=torch.float64))
    pairs = (empty(rule).observe(each).observe(adapted(2)).merge() for each in (one, weighed))
    for a, b in zip(*pairs, strict=True):
        assert torch.allclose(a, b, rtol=1e-12, atol=0)


@pytest.mark.parametrize("rule", RULES.names())
def test_the_size_of_a_memory_does_not_grow_and_the_old_one_stays(rule: str) -> None:
    once = empty(rule).observe(adapted(1))
    before = {k: t.clone() for k, t in pack(once)[0].items()}
    merged = [w.clone() for w in once.merge()]
    thrice = once.observe(adapted(2)).observe(adapted(3))
    sizes = [{k: t.shape for k, t in kept.items()} for kept in (before, pack(thrice)[0])]
    assert sizes[0] == sizes[1]
    assert all(torch.equal(before[k], t) for k, t in pack(once)[0].items())
    assert all(torch.equal(a, b) for a, b in zip(merged, once.merge(), strict=True))
    assert not torch.allclose(once.merge()[0], thrice.merge()[0])


@pytest.mark.parametrize("rule", RULES.names())
@pytest.mark.parametrize("kind", KINDS)
def test_every_rule_takes_every_encoder(rule: str, kind: str) -> None:
    first, second = adapted(1, kind), adapted(2, kind, sparse=True)
    merged = empty(rule, first).observe(first).observe(second).merge()
    unified = first.encoder.with_weights(merged)
    assert [w.shape for w in unified.weights] == [w.shape for w in first.encoder.weights]
    assert all(bool(torch.isfinite(w).all()) for w in merged)
    assert all(w.dtype == torch.float64 and not w.requires_grad for w in merged)


@pytest.mark.parametrize("rule", RULES.names())
def test_training_on_after_adding_changes_nothing(rule: str) -> None:
    first, second = adapted(1), adapted(2)
    memory = empty(rule, first).observe(first).observe(second)
    before = [w.clone() for w in memory.merge()]
    for weight in (*first.encoder.weights, *second.encoder.weights):
        weight.add_(1.0)
    assert all(torch.equal(a, b) for a, b in zip(before, memory.merge(), strict=True))


@pytest.mark.parametrize("rule", RULES.names())
def test_nothing_to_merge_and_another_shape_are_refused(rule: str) -> None:
    with pytest.raises(InputError, match="nothing to merge yet"):
        empty(rule).merge()
    memory = empty(rule).observe(adapted(1))
    with pytest.raises(InputError):
        memory.observe(adapted(1, "gin"))
