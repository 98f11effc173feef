"""What leaves a private folder, attacked: two datasets that differ by a node look alike."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import undrift
from tests.folder.conftest import KINDS, written
from undrift import InputError, LearnerFolder
from undrift.folder import kinds, releases, step, store
from undrift.learners.small_classes import MOST_RIGHT
from undrift.noise import release
from undrift.noise.gaussian import best_attack
from undrift.noise.release import ClippedSums, Mechanism
from undrift.privacy.audit import lines
from undrift.storage.files import load_state, read_metadata

EPSILONS = (0.5, 2.0, 8.0)
GAMES = 24
NAMES = ("account", "bot", "crowd")
QUICK = {"hops": 2, "class_list": NAMES}
NOISY = {"epsilon": 8.0, "class_list": KINDS, "hops": 2}


def tables(place: Path, *, odd_one: bool, start: int = 0) -> tuple[Path, Path]:
    """Sixteen nodes of two classes, and with `odd_one` a node whose class sorts before theirs."""
    rng = np.random.default_rng(start)
    rows = [[f"n{start + i}", NAMES[1 + i % 2], *rng.normal(size=4).round(3)] for i in range(16)]
    rows += [[f"n{start + 99}", NAMES[0], 1.0, 1.0, 1.0, 1.0]] if odd_one else []
    pairs = [f"n{start},n{start + 1}"]
    return written(place, f"{start}-{odd_one}", "id,label,a,b,c,d", rows, pairs)


def made(place: Path, epsilon: float, batch: Any, **more: Any) -> LearnerFolder:
    folder = LearnerFolder.new(place, settings={**QUICK, "epsilon": epsilon}, **more)
    folder.observe(batch)
    return folder


@pytest.fixture
def noise(monkeypatch) -> Any:
    """`noise(k)`: the secrets of noise are those of game k, so that a test is the same again."""

    def choose(game: int) -> None:
        rng = np.random.default_rng(game)
        monkeypatch.setattr("secrets.token_hex", lambda n=32: rng.bytes(n).hex())

    return choose


def share_right(place: Path, epsilon: float, noise: Any, look: Any) -> float:
    """How often the best attack tells which of two datasets a file came from.

    It knows both, and takes the one whose sums are nearer to what was released.
    """
    batches = [tables(place / "data", odd_one=odd) for odd in (False, True)]
    exact = [sums_of(place / f"exact-{world}", batches[world]) for world in (0, 1)]
    right = 0
    for game in range(GAMES):
        world = game % 2
        noise(game)
        seen = look(made(place / f"game-{game}", epsilon, batches[world])).learned_
        right += int(np.argmin([distance(seen, each) for each in exact]) == world)
    return right / GAMES


def sums_of(place: Path, batch: Any) -> ClippedSums:
    """The sums of a batch as a folder makes them, before noise."""
    found: list[ClippedSums] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Mechanism, "released", lambda self, sums, draw: found.append(sums) or sums)
        made(place, 1.0, batch)
    return found[0]


def distance(seen: Any, exact: ClippedSums) -> float:
    """Between what was released of some classes and exact sums, in units of the noise."""
    parts = seen.sums.gram - exact.gram, seen.sums.moment - exact.moment[:, seen.classes]
    return float(parts[0].norm() ** 2 / 2 + 2.25 * parts[1].norm() ** 2)


def most(epsilon: float) -> float:
    """What epsilon allows, and two deviations of so few games: under one at every epsilon."""
    right = best_attack(epsilon, 1e-6)
    return right + 2 * (right * (1 - right) / GAMES) ** 0.5


@pytest.mark.parametrize("classes", [(), ("bot", "bot"), ("bot", " bot "), ("", "bot")])
def test_a_private_folder_needs_its_list_of_classes(tmp_path, classes: Any) -> None:
    with pytest.raises(InputError, match="class_list"):
        LearnerFolder.new(tmp_path / "x", settings={"epsilon": 1.0, "class_list": classes})
    assert not (tmp_path / "x").exists()


def test_labels_outside_the_list_are_refused_before_anything_is_learned(tmp_path) -> None:
    folder = LearnerFolder.new(tmp_path / "x", settings={"epsilon": 1.0, "class_list": NAMES[1:]})
    with pytest.raises(InputError, match=r"'account'.*class_list"):
        folder.observe(tables(tmp_path, odd_one=True))
    assert folder.learner().account_.releases == 0  # type: ignore[attr-defined]
    assert releases.read_begun(folder.path) == ()
    folder.observe(tables(tmp_path, odd_one=False))


def everything(folder: LearnerFolder, out: Path) -> dict[str, Any]:
    """All that could be handed out: names and sizes of files, their bytes, the audit."""
    folder.export(out)
    found: dict[str, Any] = {"export": content(out)}
    found["audit"] = lines(folder.audit()), folder.audit().verdict
    found["names"] = sorted(
        (masked(path.name), path.stat().st_size) for path in folder.path.iterdir()
    )
    for name in ("README.md", "learner.json", "history.jsonl", "plan.json"):
        found[name] = masked((folder.path / name).read_text())
    found["metadata"] = {
        name: masked(text)
        for name, text in read_metadata(store.current(folder.path).path).items()
        if name != "sha256"
    }
    return found


def content(path: Path) -> tuple[Any, bytes]:
    """The head of a file, whose order is random, and all of its numbers."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:end]), data[end:]


def masked(text: str) -> str:
    """Without keyed hashes and hashes of states: to whoever lacks the key they are random."""
    return re.sub(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{32}\b", "(hash)", text)


@pytest.mark.parametrize("level", ["node", "row"])
def test_no_byte_that_leaves_depends_on_a_node_but_through_the_release(
    tmp_path, monkeypatch, level: str
) -> None:
    """The release itself is held fixed: all else must be the same with and without a node."""

    def fixed(self: Mechanism, sums: ClippedSums, draw: Any = None) -> ClippedSums:
        rng = np.random.default_rng(0)
        gram = torch.from_numpy(rng.normal(size=sums.gram.shape)) + 9 * torch.eye(sums.width)
        moment = torch.from_numpy(rng.normal(size=sums.moment.shape))
        return ClippedSums(gram + gram.T, moment, torch.full_like(sums.counts, 30.0))

    monkeypatch.setattr(release.Mechanism, "released", fixed)
    for module in (step, kinds):
        monkeypatch.setattr(module, "now", lambda: "2026-01-01T00:00:00+00:00")
    monkeypatch.setattr("secrets.token_bytes", bytes)
    worlds = []
    for odd in (False, True):
        place = tmp_path / f"{odd}"
        place.mkdir()
        folder = LearnerFolder.new(
            place / "desk", settings={**QUICK, "epsilon": 1.0, "level": level}
        )
        folder.observe(tables(place, odd_one=odd))
        folder.observe(tables(place, odd_one=False, start=500))  # grades what is known
        worlds.append(everything(folder, place / "out.safetensors"))
    assert worlds[0] == worlds[1]


def test_sites_with_a_person_in_common_do_not_merge(tmp_path) -> None:
    one = made(tmp_path / "one", 2.0, tables(tmp_path, odd_one=False), remember_nodes=True)
    two, three = (
        LearnerFolder.new(tmp_path / name, like=one, remember_nodes=True) for name in "23"
    )
    two.observe(tables(tmp_path, odd_one=True))
    before = store.current(one.path).sha
    with pytest.raises(InputError, match=r"16 nodes of .* are in both"):
        one.merge(two)
    assert store.current(one.path).sha == before
    three.observe(tables(tmp_path, odd_one=True, start=300))
    step = one.merge(three)
    assert step.line.assumes_disjoint is False
    assert not any("nobody" in note or "check" in note for note in step.notes)
    assert step.line.spent_epsilon == pytest.approx(2.0)


@pytest.mark.parametrize("how", ["neither remembers", "one remembers", "another key"])
def test_what_nobody_can_check_a_merge_says_that_it_assumes(tmp_path, how: str) -> None:
    remember = how != "neither remembers"
    one = made(tmp_path / "one", 2.0, tables(tmp_path, odd_one=False), remember_nodes=remember)
    if how == "another key":  # whatever decides rows is public: no sibling is needed
        settings = {**QUICK, "epsilon": 2.0}
        two = LearnerFolder.new(tmp_path / "two", settings=settings, remember_nodes=True)
    else:
        two = LearnerFolder.new(tmp_path / "two", like=one)
    two.observe(tables(tmp_path, odd_one=True))
    step = one.merge(two)
    assert step.line.assumes_disjoint is True
    assert any("no person is in two" in note for note in step.notes)
    assert "it is assumed" in (one.path / "README.md").read_text()


def test_a_class_that_only_noise_found_merges(tmp_path, monkeypatch) -> None:
    """Its name is in the list, whether or not anyone had it."""
    one = made(tmp_path / "one", 2.0, tables(tmp_path, odd_one=False))
    two = LearnerFolder.new(tmp_path / "two", like=one)
    monkeypatch.setattr(releases, "keyed_normal", lambda key: lambda n: np.full(n, 4.0))
    two.observe(tables(tmp_path, odd_one=False, start=200))
    assert 0 in two.learner().classes_  # no node has it
    one.merge(two)
    assert one.predict(tables(tmp_path, odd_one=False)).classes


class Killed(BaseException):
    """As if the process had died here."""


def killed_before_head(folder: LearnerFolder, batch: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Observe a batch and die after the state is written and before HEAD names it."""
    real = store.write_atomically

    def dying(path: Path, data: bytes) -> None:
        if Path(path).name == store.HEAD:
            raise Killed
        real(path, data)

    there = set(store.states(folder.path))
    with monkeypatch.context() as patch:
        patch.setattr(store, "write_atomically", dying)
        with pytest.raises(Killed):
            folder.observe(batch)
    (left,) = set(store.states(folder.path)) - there
    return left


def test_what_a_kill_left_behind_is_what_the_retry_writes(tmp_path, monkeypatch) -> None:
    """With fresh noise in the retry the mean of both files would tell more than epsilon allows."""
    batch = tables(tmp_path, odd_one=True)
    folder = LearnerFolder.new(tmp_path / "desk", settings={**QUICK, "epsilon": 1.0})
    left = load_state(killed_before_head(folder, batch, monkeypatch))
    folder.observe(batch)
    again = load_state(store.current(folder.path).path)
    assert left.tensors.keys() == again.tensors.keys()
    assert all(torch.equal(left.tensors[k], again.tensors[k]) for k in again.tensors)


def test_the_key_of_a_noise_is_there_before_it_and_gone_after_the_step(tmp_path, monkeypatch):
    batch = tables(tmp_path, odd_one=True)
    folder = LearnerFolder.new(tmp_path / "desk", settings={**QUICK, "epsilon": 1.0})
    assert not (folder.path / releases.BEGUN).exists()
    (folder.path / releases.BEGUN).write_text("[1")
    with pytest.raises(InputError, match=r"begun\.json.*is damaged"):
        folder.observe(batch)
    (folder.path / releases.BEGUN).unlink()
    killed_before_head(folder, batch, monkeypatch)
    assert (folder.path / releases.BEGUN).stat().st_mode & 0o777 == 0o600
    folder.export(tmp_path / "early.safetensors")
    assert (
        releases.read_begun(folder.path)[0].noise_key.encode()
        not in (tmp_path / "early.safetensors").read_bytes()
    )
    folder.observe(batch)
    assert not (folder.path / releases.BEGUN).exists()


def test_another_batch_with_a_node_of_one_that_was_begun_is_refused(tmp_path, monkeypatch) -> None:
    settings = {**QUICK, "epsilon": 1.0}
    folder = LearnerFolder.new(tmp_path / "desk", settings=settings, remember_nodes=True)
    killed_before_head(folder, tables(tmp_path, odd_one=False), monkeypatch)
    with pytest.raises(InputError, match="budget is spent: 16 of the 17"):
        folder.observe(tables(tmp_path, odd_one=True))
    step = folder.observe(tables(tmp_path, odd_one=True, start=400))
    assert any("did not end" in note for note in step.notes)
    folder.observe(tables(tmp_path, odd_one=False))
    assert not (folder.path / releases.BEGUN).exists()


@pytest.mark.parametrize("epsilon", [0.5, 8.0, 20.0, 1e6])
def test_guards_follow_what_epsilon_still_allows(tmp_path, epsilon: float) -> None:
    folder = LearnerFolder.new(tmp_path / "desk", settings={**QUICK, "epsilon": epsilon})
    batch = tables(tmp_path, odd_one=True)
    if best_attack(epsilon, 1e-6) <= MOST_RIGHT:
        folder.observe(batch)
        folder.export(tmp_path / "out")
        assert folder.audit().passed
        assert f"{best_attack(epsilon, 1e-6):.0%}" in folder.audit().verdict
        return
    with pytest.raises(InputError, match="'account' with 1 node"):
        folder.observe(batch)
    folder.observe(batch, small_classes="allow")
    folder.observe(tables(tmp_path, odd_one=False, start=50), small_classes="refuse")
    with pytest.raises(InputError, match="'account' with 1 node"):
        folder.export(tmp_path / "out")
    assert not folder.audit().passed
    if epsilon == 1e6:  # the noisy counts tell how many rows there are
        with pytest.raises(InputError, match="class 0 has 1"):
            folder.learner().save(tmp_path / "saved")


def test_all_ones_are_a_finite_normal_number(monkeypatch) -> None:
    monkeypatch.setattr(release.os, "urandom", lambda n: b"\xff" * n)
    assert 8 < float(release.system_normal(1)[0]) < 9
    monkeypatch.setattr(release.os, "urandom", lambda n: b"\x00" * n)
    assert -9 < float(release.system_normal(1)[0]) < -8


def test_the_history_says_what_was_spent(desk, tmp_path) -> None:
    folder = LearnerFolder.new(tmp_path / "desk", settings=NOISY)
    folder.observe(desk.month(1))
    (note,) = [note for note in folder.observe(desk.month(2)).notes if "unknown nodes" in note]
    assert "label" not in note  # nobody is told to give a node twice
    spent = [line.spent_epsilon for line in folder.history()]
    assert spent == [None, pytest.approx(8.0), pytest.approx(8.0)]
    assert folder.learner().account_.releases == 2  # type: ignore[attr-defined]
    assert set(folder.predict(desk.month(1)).classes) <= {"fine", "mule", "takeover"}
    assert folder.verify() == []


def test_a_batch_and_a_node_are_released_once(desk, tmp_path) -> None:
    folder = LearnerFolder.new(tmp_path / "desk", settings=NOISY, remember_nodes=True)
    folder.observe(desk.month(1))
    with pytest.raises(InputError, match="already"):
        folder.observe(desk.month(1))

    def known(cells: list[list[str]]) -> None:
        cells[0][0] = "a1-3"

    with pytest.raises(InputError, match="budget is spent: 1 of the 24 nodes"):
        folder.observe(desk.month(2, change=known, name="again"))
    folder.observe(desk.month(2))
    assert folder.learner().account_.releases == 2  # type: ignore[attr-defined]


def test_a_release_cannot_be_forgotten(desk, tmp_path) -> None:
    folder = LearnerFolder.new(tmp_path / "desk", settings=NOISY)
    folder.observe(desk.month(1))
    with pytest.raises(InputError, match=r"cannot forget.*is out"):
        folder.forget(desk.month(1))
    with pytest.raises(InputError, match=r"cannot forget.*is out"):
        folder.forget_node("a1-3")
    with pytest.raises(InputError, match=r"cannot revise.*is out"):
        folder.revise(desk.month(1), desk.month(2))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_columns_of_the_export_do_not_tell_which_classes_came(tmp_path, noise, epsilon) -> None:
    def exported(folder: LearnerFolder) -> Any:
        folder.export(tmp_path / "out.safetensors")
        return undrift.load(tmp_path / "out.safetensors")

    found = share_right(tmp_path, epsilon, noise, exported)
    assert found <= most(epsilon)


def test_the_noise_of_these_tests_is_the_only_thing_that_protects(tmp_path, noise, monkeypatch):
    """With a hundredth of the noise the same attack is nearly always right."""
    real = Mechanism.sigma
    monkeypatch.setattr(Mechanism, "sigma", lambda self, d, c: real(self, d, c) / 100)
    found = share_right(tmp_path, 2.0, noise, LearnerFolder.learner)
    assert found > most(2.0)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_what_a_kill_left_behind_tells_no_more_than_the_retry(
    tmp_path, noise: Any, monkeypatch, epsilon: float
) -> None:
    """With fresh noise in the retry the mean of both files would tell more than epsilon allows."""
    batches = [tables(tmp_path, odd_one=odd) for odd in (False, True)]
    exact = [sums_of(tmp_path / f"exact-{world}", batches[world]) for world in (0, 1)]
    right = 0
    for game in range(GAMES):
        noise(game)
        folder = LearnerFolder.new(
            tmp_path / f"game-{game}", settings={**QUICK, "epsilon": epsilon}
        )
        left = load_state(killed_before_head(folder, batches[game % 2], monkeypatch))
        folder.observe(batches[game % 2])
        again = load_state(store.current(folder.path).path)
        assert left.tensors.keys() == again.tensors.keys()
        assert all(torch.equal(left.tensors[k], again.tensors[k]) for k in again.tensors)
        known = folder.learner().learned_
        right += int(np.argmin([distance(known, each) for each in exact]) == game % 2)
    assert right / GAMES <= most(epsilon)
