import re
from pathlib import Path

import pytest

from paper.__main__ import main as paper
from paper.claims import claims_of
from paper.compact import write_compact
from paper.page import main, results_page
from paper.words import Words
from undrift.experiments.store import Records

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def records(fakes) -> Records:
    results, plan = fakes.folder()
    return Records(results, [plan], [fakes.search()], [], Path())


@pytest.fixture(scope="module")
def page(records: Records) -> str:
    words = Words("On a machine.", {"cs-cl": "A note."}, {("cs-cl", "cat"): "A reason."})
    return results_page(records, words)


def section(page: str, heading: str) -> str:
    """The text under a heading, up to the next of its level or above."""
    level = len(heading) - len(heading.lstrip("#"))
    _, _, rest = page.partition(f"\n{heading}\n")
    assert rest, heading
    return re.split(rf"\n#{{1,{level}}} ", rest)[0]


def test_no_claim_is_left_out(page: str, records: Records) -> None:
    claims = claims_of(records)
    numbers = section(page, "## The numbers behind the claims")
    for claim in claims:
        assert claim.evidence.replace("_", "\\_") in numbers
    against = [claim for claim in claims if claim.disagrees]
    assert against
    listed = " ".join(section(page, "### Where our runs contradict the paper").split())
    assert listed.count("- **") == len(against)
    for claim in against:
        assert claim.evidence.replace("_", "\\_") in listed


def test_the_command_makes_checks_and_tells(records: Records, tmp_path, capsys) -> None:
    tables, out = tmp_path / "results", tmp_path / "docs" / "results.md"
    write_compact(records, tables)
    given = [str(tables), str(out)]
    assert main([*given, "--check"]) == 1  # there is none
    assert not out.exists()
    assert main(given) == 0
    assert main([*given, "--check"]) == 0
    text = out.read_text()
    out.write_text(f"{text}By hand.")
    assert main([*given, "--check"]) == 1
    assert out.read_text().endswith("By hand.")
    assert main(given) == 1  # made again, and says so
    assert out.read_text() == text
    assert "was made again" in capsys.readouterr().err
    (tables / "reasons.toml").write_text('[cs]\nadr = "x"\n')
    assert main(given) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert main([str(tmp_path / "nothing"), str(out)]) == 2


@pytest.mark.parametrize(
    "page",
    [
        "page results docs/results.md",
        "returning results/returning docs/returning.md",
        "attacks-page results docs/privacy/attacks.md",
    ],
)
def test_a_page_is_what_its_tables_give(page: str, monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    assert paper([*page.split(), "--check"]) == 0
