import json
import re
import subprocess
import sys
from pathlib import Path
from shutil import rmtree

import pytest

import undrift
from undrift.cli.app import start
from undrift.learners.reading import EXACT

KINDS = ["fine", "mule"]


def month(place: Path, number: int, kinds: list[str] = KINDS) -> list[str]:
    each = [(f"{number}-{i},{kinds[i % 2]}", 3 * (i % 2), i % 3) for i in range(16)]
    rows = [f"{name},{x},{3 - x},{z}" for name, x, z in each]
    nodes, edges = place / f"n{number}.csv", place / f"e{number}.csv"
    nodes.write_text("\n".join(["id,label,x,y,z", *rows]))
    pairs = [f"{number}-{i},{number}-{i + 2}" for i in range(14)]
    edges.write_text("\n".join(["source,target", *pairs, f"{number}-0,{number - 1}-0"]))
    return [str(nodes), str(edges)]


def run(*words: object) -> int:
    return start(["learner", *map(str, words)])


@pytest.fixture
def desk(tmp_path, capsys) -> Path:
    folder = tmp_path / "desk"
    assert run("new", folder, "--set", "hops=1", "--set", "gamma=0.1") == 0
    assert run("observe", folder, *month(tmp_path, 1)) == 0
    shown = capsys.readouterr()
    assert f"{folder}: step 1, observe: 16 labelled of 16 nodes, +1 -0 batches" in shown.out
    assert "note: 1 of 15 edges (7 %) to unknown nodes left out; neighbours help" in shown.err
    return folder


def test_predictions_are_written(desk: Path, tmp_path, capsys) -> None:
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
    assert run("export", desk, tmp_path / "one.safetensors") == 0
    assert len(undrift.load(tmp_path / "one.safetensors").classes_) == 2


def test_other_letters_can_be_an_alias(desk: Path, tmp_path, capsys) -> None:
    files = month(tmp_path, 2, ["fine", "MULE"])
    for alias, noted in (([], True), (["--alias", "MULE=mule"], False)):
        assert run("observe", desk, *files, *alias) == 0
        notes = capsys.readouterr().err
        assert ("note: class 'MULE' is new and differs from 'mule'" in notes) == noted
        assert run("forget", desk, *files) == 0


def test_verify_completes_a_step_and_says_how_exact_it_is(desk: Path, capsys) -> None:
    thin = desk.parent / "thin"
    assert run("new", thin, "--set", "hops=1", "--set", "gamma=1e-14") == 0
    assert run("observe", thin, *month(desk.parent, 1)) == 0
    for folder, rounded in ((desk, False), (thin, True)):
        (folder / "history.jsonl").write_bytes((folder / "history.jsonl").read_bytes()[:-3])
        capsys.readouterr()
        assert run("verify", folder) == 0
        shown = capsys.readouterr()
        assert "completed: history.jsonl: the line of step 1" in shown.out
        assert "the state, its names and 2 steps agree" in shown.out
        (rounding,) = re.findall(r"rounding .* by up to (\S+) of the largest", shown.out)
        assert (float(rounding) > EXACT) == rounded
        assert ("more than 1e-09; raise gamma" in shown.err) == rounded


MISTAKES = {
    "show nowhere": "there is no learner in nowhere",
    "observe desk n1.csv": "takes a table of nodes with one of edges; give NODES EDGES\n",
    "observe desk n1.csv e1.csv --label nope": "no column 'nope'",
    "observe desk n1.csv e1.csv --workers 2": "are for graph folders",
    "observe desk": "give NODES EDGES, or 1 file that ends in .npz, .zip, .pt, .pth, not 0 fi",
    "revise desk a.csv b.csv": "give OLD_NODES OLD_EDGES NEW_NODES NEW_EDGES, or",
    "forget desk": "forget takes NODES EDGES of a batch, or --node ID",
    "forget desk a.csv b.csv --node x": "forget takes NODES EDGES of a",
    "predict desk a.csv b.csv": "(see undrift learner predict --help)",
    "merge desk": "merge takes the folder to merge into",
    "predict desk n1.csv e1.csv --out n1.csv": "n1.csv is what is read",
    "predict desk n1.csv e1.csv --out desk/p.csv": "would lie in",
    "report desk --out desk/history.jsonl": "would lie in",
    "export desk desk/HEAD": "would lie in",
    "export desk o.st --least-rows 3": "leave out --least-rows",
    "merge both desk desk": "desk is given twice",
    "merge n1.csv desk": "n1.csv is a file",
    "new x --plan n1.csv": "is no plan",
    "new x --small-classes sometimes": "sometimes",
    "new x --scale robust --set epsilon=4 --set class_list=a": "--scale",
    "observe desk a.csv b.csv --alias x": "--alias takes",
    "observe desk n2.csv e2.csv": "class 'M  ule' ... --alias 'M  ule=mule' ... --small-c",
}


def test_mistakes_are_one_sentence(desk: Path, refused) -> None:
    month(desk.parent, 2)
    rare = desk.parent / "n2.csv"
    rare.write_text(rare.read_text().replace("2-0,fine", "2-0,M  ule"))
    before = {path: path.read_bytes() for path in desk.parent.rglob("*") if path.is_file()}
    for line, sentence in MISTAKES.items():
        refused(f"learner {line}", sentence)
        assert not any(map(Path.exists, map(Path, ("both", "x"))))  # nothing half made is left
    assert before == {path: path.read_bytes() for path in before}


def test_an_interruption_says_whether_the_step_was_taken(desk, tmp_path, capsys, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    words = ("observe", desk, *month(tmp_path, 2))
    with monkeypatch.context() as patch:
        patch.setattr("undrift.folder.store.write_version", interrupted)
        assert run(*words) == 130
        assert capsys.readouterr().err.endswith("undrift: interrupted; nothing was written\n")
    with monkeypatch.context() as patch:
        patch.setattr("undrift.folder.step.Step", interrupted)
        assert run(*words) == 130
    assert f"interrupted; {desk} has taken step 2 nevertheless" in capsys.readouterr().err
    assert run("verify", desk) == 0


def test_show_and_history_are_tables_and_do_not_wait_for_torch(desk: Path) -> None:
    program = (
        "import sys\nfrom undrift.cli.app import start\n"
        f"assert start(['learner', 'show', {str(desk)!r}]) == 0\nprint('--')\n"
        f"assert start(['learner', 'history', {str(desk)!r}]) == 0\n"
        "assert 'torch' not in sys.modules\n"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown, history = done.stdout.split("--\n")
    for text in ("propagation", "3: x, y, z", "fine", "mule", "not kept"):
        assert text in shown
    assert [line.split()[1] for line in history.splitlines()[2:]] == ["new", "observe"]
    (desk / "history.jsonl").unlink()
    assert run("history", desk) == 2


def test_an_audit_is_a_verdict_and_exit_code(desk: Path, tmp_path, capsys) -> None:
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


def test_small_classes_and_a_scale_as_their_user_says(tmp_path, capsys) -> None:
    (tmp_path / "ranges.json").write_text('{"x": {"low": 0, "high": 10}}', encoding="utf-8")
    desk, (nodes, edges) = tmp_path / "desk", month(tmp_path, 2)
    Path(nodes).write_text(Path(nodes).read_text().replace("2-0,fine", "2-0,rare"))
    assert run("new", desk, "--scale", tmp_path / "ranges.json") == 0
    assert run("observe", desk, nodes, edges, "--small-classes", "context") == 0
    assert "note: class 'rare' with 1 node: fewer than 5 training" in capsys.readouterr().err
    assert run("show", desk) == 0
    (shown,) = [t for t in capsys.readouterr().out.splitlines() if t.startswith("scaled")]
    assert "as given: x" in shown


def test_a_list_of_one_name_is_a_setting(tmp_path) -> None:
    assert run("new", tmp_path / "private", "--set", "epsilon=4", "--set", "class_list=a") == 0
    kept = undrift.LearnerFolder(tmp_path / "private").learner().params()
    assert list(kept["class_list"]) == ["a"]


def test_a_plan_holds_before_the_first_batch(desk: Path, tmp_path, capsys) -> None:
    second, files = tmp_path / "second", month(tmp_path, 2, ["fine", "fine"])
    for plan, noted in ((["--plan", desk / "plan.json"], False), ([], True)):
        assert run("new", second, *plan) == 0
        capsys.readouterr()
        assert run("observe", second, *files) == 0
        plans = [(folder / "plan.json").read_text() for folder in (second, desk)]
        assert (plans[0] != plans[1]) == noted
        # a first batch of one class tells too little for a plan of its own
        assert ("--plan" in capsys.readouterr().err) == noted
        rmtree(second)
    assert run("new", second, "--plan", desk / "plan.json", "--method", "gacl") == 2
    assert "--method propagation" in capsys.readouterr().err
    values = json.loads((desk / "plan.json").read_text())
    for wrong in ({"columns": ["x", "x"]}, {"scale": "desk"}, {"scale": {"w": {}}}, {"hops": -1}):
        (tmp_path / "wrong.json").write_text(json.dumps(values | wrong))
        assert run("new", second, "--plan", tmp_path / "wrong.json") == 2
        assert "wrong.json cannot be used" in capsys.readouterr().err
