import pytest

from paper.stand_ins import STAND_INS
from tests.harness.check_stream import check_stream
from undrift.datasets.catalogue import DATASETS
from undrift.datasets.folder import data_folder
from undrift.errors import InputError
from undrift.streams import benchmarks
from undrift.streams.benchmarks import STREAMS, load_stream, stream_info
from undrift.streams.split import split_counts


def test_on_disk_follows_the_files(monkeypatch, tmp_path):
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    assert STREAMS["synthetic"].on_disk()
    assert STREAMS["reddit-cl-stand-in"].on_disk()
    for name, files in (
        ("cs-cl", ["ms_academic_cs.npz"]),
        ("corafull-cl-stand-in", ["cora_full_topology.npz"]),
        ("reddit-cl", ["reddit_data.npz", "reddit_graph.npz"]),
    ):
        for file in files:
            assert not STREAMS[name].on_disk()
            (tmp_path / file).write_bytes(b"")
        assert STREAMS[name].on_disk()
        assert STREAMS[name].dataset.names[0] == files[0]


@pytest.fixture(scope="module")
def reddit():
    return load_stream("reddit-cl-stand-in@0.01", seed=1)


def test_a_small_reddit_keeps_the_promises(reddit):
    check_stream(reddit, lambda seed: load_stream("reddit-cl-stand-in@0.01", seed))
    assert [len(classes) for classes in reddit.classes] == [20] + 10 * [2]
    assert reddit.stand_in
    assert reddit.name == "reddit-cl-stand-in@0.01"
    info = stream_info(reddit.name)
    assert info.counts["nodes"] == reddit.graph.num_nodes
    assert info.counts["edges"] == reddit.graph.num_edges


def test_the_last_class_of_reddit_is_in_no_task(reddit):
    assert 40 not in reddit.graph.labels
    gone = reddit.graph.labels == -1
    assert int(gone.sum()) == 10
    assert (reddit.task_of[gone] == -1).all()
    assert not (reddit.train | reddit.val | reddit.test)[gone].any()


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("reddit-cl-stand-in@0.010", "reddit-cl-stand-in@0.01"),
        ("reddit-cl-stand-in@1", "reddit-cl-stand-in"),
        ("arxiv-cl@directed", "arxiv-cl@directed"),
        ("cs-cl", "cs-cl"),
    ],
)
def test_options_are_in_the_name(monkeypatch, name, wanted):
    monkeypatch.setattr(benchmarks, "class_stream", lambda info, seed: info)
    info = load_stream(name)
    assert info.name == wanted
    assert stream_info(wanted) == info


@pytest.mark.parametrize("scale", ["0", "-1", "1.5", "nan", "inf"])
def test_a_scale_out_of_range_is_named(scale):
    wanted = "scale of stream 'reddit-cl-stand-in' must be a number above 0 and at most 1, not"
    with pytest.raises(InputError, match=wanted):
        stream_info(f"reddit-cl-stand-in@{scale}")
    with pytest.raises(InputError, match=wanted):
        load_stream(f"reddit-cl-stand-in@{scale}")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("reddit-cl-stand-in@small", "unknown option 'small' after the @; give a scale"),
        ("reddit-cl@0.1", "'reddit-cl' has one size"),
        ("synthetic@0.1", "'synthetic' has one size"),
        ("cs-cl@directed", "'cs-cl' has no directed form"),
        ("reddit@0.1", r"unknown stream 'reddit' \(did you mean 'reddit-cl'"),
        ("cs", r"unknown stream 'cs' .*choose one of: actor-cl, .*, synthetic"),
    ],
)
def test_a_name_that_means_nothing_is_explained(name, wanted):
    with pytest.raises(InputError, match=wanted):
        load_stream(name)


def real(name):
    if not STREAMS[name].on_disk():
        pytest.skip(f"needs {STREAMS[name].dataset.names[0]} in the folder that UNDRIFT_DATA names")
    return load_stream(name)


@pytest.mark.real_data
def test_cs_cl_has_six_tasks_of_known_sizes():
    cs = real("cs-cl")
    check_stream(cs, lambda seed: load_stream("cs-cl", seed))
    rows = cs.describe()
    assert [row.nodes for row in rows] == [5043, 2564, 1699, 1562, 2453, 5012]
    assert [row.train for row in rows] == [3025, 1539, 1019, 937, 1472, 3008]
    for c in range(15):
        inside = cs.graph.labels == c
        found = tuple(int((mask & inside).sum()) for mask in (cs.train, cs.val, cs.test))
        assert found == split_counts(int(inside.sum()), (0.6, 0.2, 0.2))


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("physics-cl", [2, 1, 1, 1]),
        ("computers-cl", [4, 2, 2, 2]),
        ("photo-cl", [4, 2, 2]),
        ("coraml-cl", [3, 2, 2]),
        ("citeseer-cl", [2, 2, 2]),
        ("dblp-cl", [2, 1, 1]),
    ],
)
def test_the_other_real_streams_load_and_account_for_every_edge(name, sizes):
    stream, info = real(name), STREAMS[name]
    assert [len(classes) for classes in stream.classes] == sizes
    assert len(stream) == info.tasks
    rows = stream.describe()
    assert sum(row.edges + row.dropped for row in rows) == info.counts["edges"]
    assert sum(row.train + row.val + row.test for row in rows) == info.counts["nodes"]
    assert not stream.stand_in


@pytest.fixture
def own_cache(monkeypatch, tmp_path):
    """The real files in a folder of the test's own, so that nothing is cached among them."""
    for dataset in ("cora-full", "ogbn-arxiv"):
        file = STAND_INS[dataset].names[0]
        if (data_folder() / file).is_file():
            (tmp_path / file).symlink_to((data_folder() / file).resolve())
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.real_data
def test_arxiv_cl_has_the_published_class_imbalance(own_cache):
    """Rounded to one decimal; counted over all nodes of a task: over train nodes T5 is 51.6."""
    stream = real("arxiv-cl-stand-in")
    rows = stream.describe()
    found = [round(row.imbalance, 1) for row in rows[1:]]
    assert found == [5.3, 1.5, 17.7, 1.0, 51.5, 4.2, 3.1, 61.9, 1.5, 1.3]
    # both directions of the 1,157,799 linked pairs that the stand-in assumes
    assert stream.graph.num_edges == sum(row.edges + row.dropped for row in rows) == 2_315_598
    assert stream.graph.adjacency.symmetric
    directed = load_stream("arxiv-cl-stand-in@directed")
    assert directed.graph.num_edges == DATASETS["ogbn-arxiv"].edges
    assert not directed.graph.adjacency.symmetric
