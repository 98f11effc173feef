"""Every mistake on a command line is one sentence that names it."""

import pytest

from undrift.experiments import run as experiment
from undrift.testing.graphs import tiny_stream

MISTAKES = {
    "fly": "fly",
    "run --fly": "--fly",
    "run adr": "undrift run does not take 'adr'",
    "run --seed 1.5": "'1.5' is no whole number",
    "bench smoke --seeds 0.4": 'unable to convert "0.4" into int',
    "run --seed": "--seed",
    "run --protocol both": "both",
    "graph import n.csv e.csv --out g --session-column s": "--session-column",
    "run --method magic": "unknown method 'magic'",
    "run --method undrift.learners.base:Learner": "abstract ... _learn, _scores",
    "run --method no_such_file:Mine": "no_such_file ... a file in ",
    "run --set gamma": "--set takes name=value",
    "run --threads 99999999999": "--threads must be from 1 to 1,024",
    "run --arrive time": "has no times, so nodes cannot arrive by time",
    "run --out file/runs": "cannot make the folder file/runs",
    "bench": "name a plan (smoke, paper-table1",
    "bench paper-tabel1": "did you mean 'paper-table1'",
    "bench none.toml": "cannot read the plan none.toml",
    "bench smoke --workers 0": "--workers must be 1 or more",
    "bench smoke --streams cs-cl": "no plan here has the stream 'cs-cl'",
    "bench smoke --track excel": "excel",
    "bench a.toml b.toml --dry-run": "two plans are called 'x'",
    "streams --show nope": "unknown stream 'nope'",
    "streams --show reddit-cl-stand-in@2": "must be a number above 0 and at most 1, not 2",
    "streams --show no/such/stream.toml": "no/such/stream.toml",
    "streams --show corafull-cl-stand-in": "cora_full_topology.npz",
    "data fetch redit": "unknown dataset 'redit' (did you mean 'reddit'?)",
    "data fetch": "NAME",
    "data fetch reddit --fly": "--fly",
}


@pytest.mark.parametrize(("line", "said"), MISTAKES.items())
def test_it_is_one_sentence_that_names_it(line, said, refused, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    monkeypatch.setattr(experiment, "load_stream", lambda name, seed: tiny_stream(seed))
    (tmp_path / "file").write_bytes(b"")
    for name in ("a", "b"):
        plan = 'name = "x"\nstreams = ["synthetic"]\nmethods = ["bare"]\n'
        (tmp_path / f"{name}.toml").write_text(plan)
    refused(line, said)
