from __future__ import annotations

from paper.claim import Claim
from paper.page_claims import claims_table, contradictions, evidence_of

CLAIMS = [
    Claim("first", "ADR is first in A_f", "cs-cl", True, "91 and 90.", 5, True, partial=True),
    Claim("first", "ADR is first in A_f", "photo-cl", False, "80 and 90.", 4),
    Claim("still", "No drift", "cs-cl", False, "3 %.", 5, True),
    Claim("still", "No drift", "arxiv-cl-stand-in", True, "0 %.", 1, stand_in=True),
    Claim("late", "Alpha", "arxiv-cl", True, "1 | 2.", 1, False),
]
STREAMS = ["photo-cl", "cs-cl", "arxiv-cl", "arxiv-cl-stand-in", "coraml-cl"]


def test_a_line_per_claim_and_a_column_per_stream() -> None:
    header, _, *lines = claims_table(CLAIMS, STREAMS).splitlines()
    assert header == "| claim | Photo-CL | CS-CL | Arxiv-CL | Arxiv-CL stand-in |"
    assert lines == [
        r"| ADR is first in A\_f | **no** | yes (some rows not run) | – | – |",
        "| No drift | – | **no** (paper: yes) | – | yes |",
        "| Alpha | – | – | yes (paper: no) | – |",
    ]


def test_only_contradictions_are_listed_and_all_of_them() -> None:
    assert contradictions(CLAIMS) == [
        "**CS-CL**: No drift. The paper says so, our runs do not: 3 %.",
        r"**Arxiv-CL**: Alpha. Only our runs say so: 1 \| 2.",
    ]


def test_the_evidence_has_every_claim_in_the_order_of_streams() -> None:
    text = evidence_of(CLAIMS, STREAMS)
    first, second, third = text.split(":\n\n")[1:]
    assert first.index("Photo-CL") < first.index("CS-CL")
    assert "| Photo-CL | **no** | 4 | 80 and 90. |" in first
    assert "| Arxiv-CL stand-in | yes | 1 | 0 %. |" in second
    assert r"| Arxiv-CL | yes (paper: no) | 1 | 1 \| 2. |" in third
    assert text.count("\n| ") == len(CLAIMS) + 2 * 3  # and two lines over each
