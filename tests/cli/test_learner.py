from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import undrift
from undrift.cli.app import start
from undrift.learners.base import EXACT

Captured = pytest.CaptureFixture[str]
COMMANDS = ("new", "observe", "predict", "forget", "revise", "merge")
COMMANDS += ("show", "history", "verify", "audit", "export")
KINDS = ["fine", "mule"]


def month(place: Path, number: int, kinds: list[str] = KINDS) -> list[str]:
    rows = [
        f"{number}-{i},{kinds[i % 2]},{3 * (i % 2)},{3 - 3 * (i % 2)},{i % 3}" for i in range(16)
    ]
    nodes, edges = place / f"n{number}.csv", place / f"e{number}.csv"
    nodes.write_text("\n".join(["id,label,x,y,z", *rows]))
    pairs = [f"{number}-{i},{number}-{i + 2}" for i in range(14)]
    edges.write_text("\n".join(["source,target", *pairs, f"{number}-0,{number - 1}-0"]))
    return [str(nodes), str(edges)]


def run(*words: object) -> int:
    return start(["learner", *map(str, words)])


@pytest.fixture
def desk(tmp_path: Path, capsys: Captured) -> Path:
    folder = tmp_path / "desk"
    assert run("new", folder, "--set", "hops=1", "--set", "gamma=0.1") == 0
    assert run("observe", folder, *month(tmp_path, 1)) == 0
    shown = capsys.readouterr()
    assert f"{folder}: step 1, observe: 16 labelled of 16 nodes, +1 -0 batches" in shown.out
    assert "note: 1 of 15 edges (7 %) to unknown nodes left out; neighbours help" in shown.err
    return folder


def test_show_and_history_are_tables(desk: Path, capsys: Captured) -> None:
    assert run("show", desk) == 0
    shown = capsys.readouterr().out
    for text in ("propagation", "3: x, y, z", "fine", "mule", "not kept"):
        assert text in shown
    assert run("history", desk) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines[2:]] == ["new", "observe"]


def test_predictions_are_written(desk: Path, tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "some" / "p.csv"
    words = ("predict", desk, *month(tmp_path, 2), "--out", out)
    assert run(*words, "--probabilities") == 0
    assert out.read_text().splitlines()[0] == "id,class,probability,runner_up,p_fine,p_mule"
    capsys.readouterr()
    assert run(*words, "--nodes", "2-3", "2-0") == 0
    shown = capsys.readouterr()
    assert f"2 predictions: {out}" in shown.out
    assert "note: 1 of 15 edges (7 %) to unknown nodes left out; neighbours help" in shown.err
    lines = out.read_text().splitlines()
    assert lines[0] == "id,class,probability,runner_up"
    assert [line.split(",")[:2] for line in lines[1:]] == [["2-3", "mule"], ["2-0", "fine"]]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str, capsys: Captured) -> None:
    assert run(command, "--help") == 0
    shown = capsys.readouterr().out
    assert f"Usage: undrift learner {command}" in shown
    assert f"    undrift learner {command}" in shown


def test_a_class_in_other_letters_is_shown_and_can_be_an_alias(
    desk: Path, tmp_path: Path, capsys: Captured
) -> None:
    files = month(tmp_path, 2, ["fine", "MULE"])
    assert run("observe", desk, *files) == 0
    assert "note: class 'MULE' is new and differs from 'mule'" in capsys.readouterr().err
    assert run("forget", desk, *files) == 0
    assert run("observe", desk, *files, "--alias", "MULE=mule") == 0
    assert "MULE" not in capsys.readouterr().err


def test_verbs_end_to_end(desk: Path, tmp_path: Path, capsys: Captured) -> None:
    site, both, one = tmp_path / "site", tmp_path / "both", tmp_path / "one.safetensors"
    assert run("new", site, "--like", desk) == 0
    assert run("observe", site, *month(tmp_path, 2)) == 0
    assert run("revise", site, *month(tmp_path, 2), *month(tmp_path, 3)) == 0
    assert "rows subtracted" in capsys.readouterr().out
    assert run("merge", both, desk, site) == 0
    assert run("forget", both, "--node", "3-1") == 6
    assert "cannot tell whether 2 batches" in capsys.readouterr().out
    assert run("forget", both, "--node", "3-1", "--batch", *month(tmp_path, 3)) == 0
    assert run("forget", both, *month(tmp_path, 1)) == 0
    assert run("export", both, one) == 0
    assert len(undrift.load(one).classes_) == 2
    (both / "history.jsonl").write_bytes((both / "history.jsonl").read_bytes()[:-3])
    capsys.readouterr()
    assert run("verify", both) == 0
    shown = capsys.readouterr().out
    assert "completed: history.jsonl: the line of step 3" in shown
    assert "the state, its names and 4 steps agree" in shown
    (told,) = re.findall(r"rounding .* by up to (\S+) of the largest", shown)
    assert 0 < float(told) <= EXACT


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["show", "nowhere"], "there is no learner in nowhere"),
        (["observe", "desk", "nodes.csv"], "a batch is a table of nodes and a table of edges"),
        (["observe", "desk"], "give NODES EDGES, or 1 file that ends in .npz, .pt, .pth, not 0 fi"),
        (["revise", "desk", "a.csv", "b.csv"], "give OLD_NODES OLD_EDGES NEW_NODES NEW_EDGES, or"),
        (["forget", "desk"], "forget takes NODES EDGES of a batch, or --node ID"),
        (["forget", "desk", "a.csv", "b.csv", "--node", "x"], "forget takes NODES EDGES of a"),
        (["predict", "desk", "a.csv", "b.csv", "--out", "p.xls"], "written as .csv or .parquet"),
        (["predict", "desk", "a.csv", "b.csv"], "(see undrift learner predict --help)"),
        (["merge", "desk"], "merge takes the folder to merge into"),
        (["merge", "both", "desk", "desk"], "desk shares 1 of its batches with both"),
        (["new", "x", "--set", "hops=many"], "hops must be a whole number"),
        (["new", "x", "--method", "propagatoin"], "did you mean 'propagation'?"),
        (["observe", "desk", "a.csv", "b.csv", "--alias", "x"], "--alias takes"),
    ],
)
def test_mistakes_are_one_sentence(
    desk: Path, words: list[str], sentence: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(desk.parent)
    assert run(*words) == 2
    shown = capsys.readouterr()
    assert sentence in shown.err
    assert shown.err.count("\n") == 1
    assert not Path("both").exists()  # nothing half made is left


def test_an_interruption_says_whether_the_step_was_taken(
    desk: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    words = ("observe", desk, *month(tmp_path, 2))
    with monkeypatch.context() as patch:
        patch.setattr("undrift.folder.store.write_version", interrupted)
        assert run(*words) == 130
        assert capsys.readouterr().err.endswith("undrift: interrupted; nothing was written\n")
    with monkeypatch.context() as patch:
        patch.setattr("undrift.folder.draft.Step", interrupted)
        assert run(*words) == 130
    assert f"interrupted; {desk} has taken step 2 nevertheless" in capsys.readouterr().err
    assert run("verify", desk) == 0


def test_verify_says_where_rounding_is_seen(tmp_path: Path, capsys: Captured) -> None:
    thin = tmp_path / "thin"
    assert run("new", thin, "--set", "hops=1", "--set", "gamma=1e-14") == 0
    assert run("observe", thin, *month(tmp_path, 1)) == 0
    capsys.readouterr()
    assert run("verify", thin) == 0
    shown = capsys.readouterr()
    (told,) = re.findall(r"by up to (\S+) of the largest", shown.out)
    assert float(told) > EXACT
    assert "more than 1e-09; raise gamma" in shown.err


def test_show_and_history_do_not_wait_for_torch(desk: Path) -> None:
    program = (
        "import sys\nfrom undrift.cli.app import start\n"
        f"assert start(['learner', 'show', {str(desk)!r}]) == 0\n"
        f"assert start(['learner', 'history', {str(desk)!r}]) == 0\n"
        "assert 'torch' not in sys.modules\n"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_audit_is_a_verdict_and_an_exit_code(
    desk: Path, tmp_path: Path, capsys: Captured
) -> None:
    assert run("audit", desk) == 3
    shown = capsys.readouterr().out
    for words in ("Kept", "sums.variants.mix.seen", "Rows behind it", "Attacks", "foretold"):
        assert words in shown
    assert "8 (" in shown  # the smallest class, by its name
    assert shown.splitlines()[-1].startswith(f"{desk}: not passed: mix: 16 rows in")
    assert run("audit", desk, "--data", *month(tmp_path, 1)) == 3
    shown = capsys.readouterr().out
    assert "not tried" in shown  # every node was learned from
    assert "tried" not in shown.splitlines()[-1]  # another threshold is broken
    assert run("audit", desk, "--data", *month(tmp_path, 2)) == 2
    assert "n2.csv is not in" in capsys.readouterr().err
    fine = tmp_path / "fine"
    narrow = [f"--set={each}" for each in ("hops=1", "fourier=0", "gamma=0.1", "rank=0")]
    assert run("new", fine, *narrow, "--least-rows", "3") == 0
    for number in range(1, 7):
        assert run("observe", fine, *month(tmp_path, number)) == 0
    assert run("audit", fine) == 0
    assert "no threshold is broken (attacks: foretold)" in capsys.readouterr().out
    assert run("audit", fine, "--data", *month(tmp_path, 1)) == 0
    assert "no threshold is broken (attacks: not tried on mix)" in capsys.readouterr().out
    card = (fine / "README.md").read_text()
    assert "## Privacy\n\nAudit: **no threshold is broken" in card


def test_a_method_that_does_not_say_what_it_keeps_is_not_judged(
    tmp_path: Path, capsys: Captured
) -> None:
    folder, method = tmp_path / "means", "tests.harness.running_mean:RunningMean"
    assert run("new", folder, "--method", method) == 0
    assert run("observe", folder, *month(tmp_path, 1)) == 0
    for data in ([], ["--data", *month(tmp_path, 1)]):
        capsys.readouterr()
        assert run("audit", folder, *data) == 3
        last = capsys.readouterr().out.splitlines()[-1]
        assert last.startswith(f"{folder}: not judged: total (2 x 3), count (2 x 1) may be sums")
    assert "Audit: **not judged: total" in (folder / "README.md").read_text()


def test_small_classes_are_refused_until_their_user_says_how(
    desk: Path, tmp_path: Path, capsys: Captured
) -> None:
    nodes, edges = month(tmp_path, 2)
    text = Path(nodes).read_text()
    Path(nodes).write_text(text.replace("2-0,fine", "2-0,rare"))
    assert run("observe", desk, nodes, edges) == 2
    assert re.search("n2.csv brings class 'rare'.*--small-classes con", capsys.readouterr().err)
    assert run("observe", desk, nodes, edges, "--small-classes", "context") == 0
    assert "note: class 'rare' with 1 node: fewer than 5 training" in capsys.readouterr().err
    assert run("new", tmp_path / "x", "--small-classes", "sometimes") == 2


def test_a_scale_is_given_on_the_command_line(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "ranges.json").write_text('{"x": {"low": 0, "high": 10}}', encoding="utf-8")
    shown = {}
    scales = {"robust": "robust", "none": "none", "file": tmp_path / "ranges.json"}
    for name, scale in scales.items():
        assert run("new", tmp_path / name, "--scale", scale) == 0
        assert run("observe", tmp_path / name, *month(tmp_path, 1)) == 0
        capsys.readouterr()
        assert run("show", tmp_path / name) == 0
        (shown[name],) = [t for t in capsys.readouterr().out.splitlines() if t.startswith("scaled")]
    assert ["by the first batch" in shown["robust"], "no" in shown["none"]] == [True, True]
    assert shown["file"].split()[1:] == ["as", "given:", "x"]
    private = ["--set", "epsilon=4", "--set", "class_list=a"]
    assert run("new", tmp_path / "robust-noise", "--scale", "robust", *private) == 2
    assert run("new", tmp_path / "private", *private) == 0
    kept = undrift.LearnerFolder(tmp_path / "private").learner().params()
    assert list(kept["class_list"]) == ["a"]


def test_a_plan_of_another_folder_is_in_force_before_the_first_batch(
    desk: Path, tmp_path: Path
) -> None:
    second = tmp_path / "second"
    assert run("new", second, "--plan", desk / "plan.json", "--set", "gamma=0.1") == 0
    assert (second / "plan.json").read_text() == (desk / "plan.json").read_text()
    assert run("observe", second, *month(tmp_path, 2)) == 0
    ours, theirs = (undrift.LearnerFolder(path).learner() for path in (second, desk))
    assert ours.plan_ == theirs.plan_  # type: ignore[attr-defined]
    assert ours.plan_.hops == 1  # type: ignore[attr-defined]


def test_a_plan_that_is_none_is_one_sentence(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "plan.json").write_text("[]")
    assert run("new", tmp_path / "desk", "--plan", tmp_path / "plan.json") == 2
    assert "is no plan" in capsys.readouterr().err
    assert not (tmp_path / "desk").exists()


def test_a_first_batch_that_tells_too_little_is_noted_with_the_way_out(
    tmp_path: Path, capsys: Captured
) -> None:
    folder = tmp_path / "small"
    assert run("new", folder, "--set", "gamma=0.1") == 0
    assert run("observe", folder, *month(tmp_path, 1, ["fine", "fine"])) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "one class" in said
    assert "--plan" in said
    assert run("observe", folder, *month(tmp_path, 2)) == 0
    assert "--plan" not in capsys.readouterr().err
