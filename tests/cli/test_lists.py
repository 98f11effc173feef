"""`undrift streams` and `undrift methods`."""

from undrift.cli.app import start
from undrift.streams.benchmarks import STREAMS


def test_a_stream_is_shown_with_its_tasks(capsys) -> None:
    assert start(["streams", "--show", "synthetic", "--seed", "3"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == ["synthetic", "3,000 nodes, 24,000 edges, 1,000 features"]
    assert "10 classes in 4 tasks (4+3x2)" in shown[2]
    assert any("split by seed 3" in line for line in shown)
    tasks = [line.split()[0] for line in shown if line.startswith("T") and line[1].isdigit()]
    assert tasks == ["T0", "T1", "T2", "T3"]
    assert next(line for line in shown if line.startswith("T0")).split()[1] == "0-3"
    assert max(map(len, shown)) <= 100


def test_a_stream_is_shown_as_it_arrives(capsys) -> None:
    assert start(["streams", "--show", "synthetic", "--arrive", "blurry:batches=5"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "synthetic+blurry:batches=5"
    assert "10 classes in 5 batches; they come back" in shown[2]
    assert "arrival: blurry:batches=5" in shown
    last = next(line for line in shown if line.startswith("all")).split()
    assert last[1:3] == ["10", "3,000"]


def test_every_stream_is_listed_and_whether_it_is_on_disk(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    for there in (" no ", " yes "):
        assert start(["streams"]) == 0
        shown = capsys.readouterr().out
        assert all(f"{name} " in shown for name in STREAMS)
        assert there in next(line for line in shown.splitlines() if line.startswith("cs-cl"))
        (tmp_path / STREAMS["cs-cl"].dataset.names[0]).write_bytes(b"")
    for line in shown.splitlines():
        assert ("-stand-in" in line) == ("(stand-in)" in line)
