"""Files of ratings, written here in the public format of Bitcoin-OTC: all of them are generated."""

import gzip
from dataclasses import replace

import numpy as np
import pytest

from undrift import InputError, Propagation, evaluate, load_stream
from undrift.datasets import RemoteFile
from undrift.datasets.catalogue import DATASETS, OWN
from undrift.datasets.fetch import fetch
from undrift.datasets.readers import read_ratings

RATINGS = [*range(-10, 0), *range(1, 11)]
CLASSES = [0, *[1] * 9, -1, -1, 2, 3, 4, *[5] * 5]


def generated(users: int = 40, each: int = 20) -> bytes:
    """Each of the first users rates so many others; their numbers have gaps."""
    rng, lines = np.random.default_rng(0), []
    for user in range(users):
        others = np.delete(np.arange(users), user)
        for other, rating in zip(rng.permutation(others)[:each], RATINGS, strict=False):
            lines.append(f"{3 * user + 1},{3 * other + 1},{rating},1289241911.72836")
    return ("\n".join(lines) + "\n").encode()


@pytest.mark.parametrize("name", ["ratings.csv", "ratings.csv.gz"])
def test_links_have_the_classes_of_begin(tmp_path, name: str) -> None:
    data = generated()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    links = read_ratings(tmp_path / name)
    assert (len(links), links.graph.num_nodes, links.graph.num_edges) == (800, 40, 800)
    assert links.labels[:20].tolist() == CLASSES
    assert links.ends[:, :20].tolist()[0] == [0] * 20
    assert links.pooled().num_features == 225


def test_no_feature_reads_a_rating(tmp_path) -> None:
    data = generated().decode()
    turned = "\n".join(
        ",".join([*line.split(",")[:2], str(-int(line.split(",")[2])), "0"])
        for line in data.splitlines()
    )
    (tmp_path / "one.csv").write_text(data)
    (tmp_path / "two.csv").write_text(turned)
    one, two = (read_ratings(tmp_path / name) for name in ("one.csv", "two.csv"))
    assert one.rows().equal(two.rows())  # type: ignore[arg-type,union-attr]
    assert not one.labels.equal(two.labels)  # type: ignore[arg-type,union-attr]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "0 lines"),
        ("1,2,3\n", "3 columns"),
        ("1,2,three,4\n", "three"),
        ("1,2,3,4\n\n1,2,3,4\n", "blank line"),
        ("1.5,2,3,4\n", "whole number"),
        ("1,2,2.5,4\n", "whole number"),
        ("1,2,11,4\n", "rating 11"),
        ("nan,2,1,4\n", "whole number"),
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path, text: str, told: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(
        InputError, match=f"source, target, rating and time.*{told}.*again"
    ) as error:
        read_ratings(tmp_path / "x.csv")
    assert "\n" not in str(error.value)
    with pytest.raises(InputError, match=r"there is no file .*y\.csv"):
        read_ratings(tmp_path / "y.csv")
    (tmp_path / "x.csv.gz").write_bytes(b"<html>")
    with pytest.raises(InputError, match=r"x\.csv\.gz is damaged or not"):
        read_ratings(tmp_path / "x.csv.gz")


def test_ratings_are_fetched_streamed_and_learned(tmp_path, site, monkeypatch) -> None:
    """A generated file in the place of Bitcoin-OTC, from a server on localhost."""
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    file = RemoteFile("soc.csv.gz", site.put("/soc.csv.gz", gzip.compress(generated())))
    size = {"files": (file,), "nodes": 800, "edges": 800}
    monkeypatch.setitem(OWN, "bitcoin-otc-cl", replace(DATASETS["bitcoin-otc"], **size))
    assert [path.name for path in fetch("bitcoin-otc")] == ["soc.csv.gz"]
    stream = load_stream("bitcoin-otc-cl")
    assert stream.classes == ((0, 1), (2, 3), (4, 5))
    assert len(evaluate(Propagation(), stream).by_class.rows) == 3
    monkeypatch.setitem(OWN, "bitcoin-otc-cl", replace(OWN["bitcoin-otc-cl"], nodes=35592))
    with pytest.raises(InputError, match=r"800 nodes instead of the 35,592 of bitcoin-otc"):
        load_stream("bitcoin-otc-cl")


@pytest.mark.real_data
def test_bitcoin_otc_is_learned() -> None:
    if not OWN["bitcoin-otc-cl"].on_disk():
        pytest.skip("needs soc-sign-bitcoinotc.csv.gz; run: undrift data fetch bitcoin-otc")
    stream = load_stream("bitcoin-otc-cl")
    assert stream.graph.num_nodes == 35_592
    assert 30 <= evaluate(Propagation(), stream).by_class.a_f <= 45
