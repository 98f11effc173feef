from undrift.cli.app import DONE, start
from undrift.experiments import run as experiment
from undrift.testing import tiny_stream


def test_the_demo_ends_with_a_table_of_four_methods_and_a_figure(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(experiment, "load_stream", lambda name, seed: tiny_stream(seed))
    assert start(["demo", "--out", str(tmp_path)]) == DONE
    lines = capsys.readouterr().out.rstrip().splitlines()
    rows = {line.split()[0]: line.split() for line in lines[-7:] if len(line.split()) > 8}
    assert {"ADR", "Bare", "Propagation", "Joint"} <= set(rows)
    assert float(rows["Bare"][2]) < float(rows["Propagation"][2])
    assert (rows["Bare"][-1], rows["Joint"][-1]) == ("0", "60")
    assert lines[-1] == f"figure: {tmp_path / 'demo.svg'}"
    assert (tmp_path / "demo.svg").read_text().startswith("<?xml")
