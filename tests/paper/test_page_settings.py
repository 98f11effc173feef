"""Which setting gives the paper's number: the nearest is bold, and what is far says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paper.page_settings import settings_section
from undrift.experiments.store import Records


@pytest.fixture(scope="module")
def made(fakes: Any) -> tuple[Records, Records]:
    """Made-up results of Table 1 alone, and with the same runs as those of a carried Adam."""
    results, plan = fakes.folder()
    table = plan.model_copy(update={"plan": "paper-table1"})
    other = [cell for cell in table.cells if cell.row == "efc"]
    swapped = [cell.model_copy(update={"row": "dpcr"}) for cell in other]
    carried = table.model_copy(update={"plan": "carried", "cells": swapped})
    alone, both = ([table], [table, carried])
    return Records(results, alone, [], [], Path()), Records(results, both, [], [], Path())


def test_both_ways_stand_beside_the_paper(made: tuple[Records, Records]) -> None:
    heading, intro, table, counts, *far = settings_section(
        made[1], {("cs-cl", "dpcr"): "Why."}, 5.0
    )
    assert heading == "### Which setting gives the paper's number"
    assert intro.startswith("On CS-CL.")
    header, _, *lines = table.splitlines()
    assert header == "| row | paper | fresh | carried |"
    dpcr = next(line for line in lines if line.startswith("| DPCR |"))
    cells = [cell.strip(" *") for cell in dpcr.split("|")[2:5]]
    assert cells[0] == "63.8 / 43.9"
    efc = next(line for line in lines if line.startswith("| EFC |"))
    assert cells[2] == efc.split("|")[3].strip(" *")
    gaps = [abs(float(cell.split(" / ")[1]) - 43.89) for cell in cells[1:]]
    bold = [part.strip().startswith("**") for part in dpcr.split("|")[3:5]]
    assert bold[gaps.index(min(gaps))]
    assert sum(bold) == 1
    assert efc.split("|")[4].strip() == "–"
    assert "with *carried*" in counts
    if gaps[1] > 5.0:
        assert "**DPCR**, *carried*" in far[1]
        assert "Why." in far[1]
