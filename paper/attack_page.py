"""`docs/privacy/attacks.md`, made from `results/privacy/attacks.json`.

python -m paper attacks-page results docs/privacy/attacks.md [--check]
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paper.attack_figures import Found, best_of_one_row, read_attacks
from paper.attack_words import (
    ALL_ROWS,
    CLASS_MEANS,
    END,
    INTRO,
    KNOWN_ROWS,
    MEMBERSHIP,
    METHODS,
    ROWS_SHOWN,
    TWO_STATES,
    WORDS,
)
from paper.attacks import METHODS as TRIED
from paper.markdown_text import grid, prose
from paper.page import write_page
from undrift.reporting.names import method_facts, stream_title

__all__ = ["attacks_page", "main"]


def attacks_page(found: Found) -> str:
    """The page as Markdown; the same numbers give the same text."""
    parts = [
        "# Attacks",
        prose(INTRO),
        "## Class means",
        prose(CLASS_MEANS),
        _validation(found),
        _class_means(found),
        "## Two states",
        prose(TWO_STATES),
        f"![{ROWS_SHOWN}](../figures/attacks-rows.svg)",
        _two_states(found),
        prose(KNOWN_ROWS),
        _known_rows(found["photo-cl"]),
        "## Membership, with one row",
        prose(MEMBERSHIP),
        "![Members found against others accused, on four graphs](../figures/attacks-roc.svg)",
        _membership(found),
        "![AUC of each attack by columns, on four graphs](../figures/attacks-width.svg)",
        "## Membership, with every row",
        prose(ALL_ROWS),
        _shares(found["coraml-cl"]),
        "## An unknown word",
        prose(WORDS),
        _words(found),
        *_other_methods(found["coraml-cl"]),
        "## Run it",
        END,
    ]
    return "\n\n".join(parts) + "\n"


def _title(stream: str) -> str:
    return stream_title(stream).removesuffix("-CL")


def _validation(found: Found) -> str:
    sizes = [each["nodes"] for each in next(iter(found.values()))["validation"]]
    lines = [
        [_title(stream), *(f"{each['cosine']:.2f}" for each in parts["validation"])]
        for stream, parts in found.items()
    ]
    header = ["validation moment, class of", *(f"{size} nodes" for size in sizes)]
    return grid(header, "l" + "r" * len(sizes), lines)


def _class_means(found: Found) -> str:
    sizes = [each["rows"] for each in next(iter(found.values()))["small_classes"]]
    lines = [
        [_title(stream), *(f"{each['cosine']:.2f}" for each in parts["small_classes"])]
        for stream, parts in found.items()
    ]
    header = ["class mean of", *(f"{size} row{'s' * (size > 1)}" for size in sizes)]
    return grid(header, "l" + "r" * len(sizes), lines)


def _two_states(found: Found) -> str:
    names = {"was": "3,072 columns", "now": "the default"}
    sizes = [each["nodes"] for each in next(iter(found.values()))["was"]["two_states"]]
    lines = [
        [_title(stream), name, *(f"{each['read']:g}" for each in parts[form]["two_states"])]
        for stream, parts in found.items()
        for form, name in names.items()
    ]
    header = ["read out of a batch of", "", *map(str, sizes)]
    return grid(header, "ll" + "r" * len(sizes), lines)


def _known_rows(parts: dict[str, Any]) -> str:
    found = parts["known_rows"]
    header = [f"rows unknown, of {found[0]['of']}", *(str(each["unknown"]) for each in found)]
    line = ["mean cosine, Photo", *(f"{each['cosine']:.2f}" for each in found)]
    return grid(header, "l" + "r" * len(found), [line])


def _membership(found: Found) -> str:
    names = {"was": "3,072 columns", "now": "the default"}
    lines = []
    for stream, parts in found.items():
        for form, name in names.items():
            tried = parts[form]["membership"][0]
            attack, best = best_of_one_row(tried)
            everyone = tried["attacks"].get("all candidates")
            lines.append(
                [
                    _title(stream),
                    name,
                    f"{tried['rows']:,}",
                    f"{tried['columns']:,}" + _through(tried),
                    attack,
                    f"{best['auc']:.3f}",
                    _percent(best["found_at_1_percent"]),
                    _percent(best["found_at_0.1_percent"]),
                    f"{everyone['auc']:.3f}" if everyone else "not tried",
                ]
            )
    header = ["", "", "rows", "columns", "strongest", "AUC", "at 1 %", "at 0.1 %", "every row: AUC"]
    return grid(header, "llrrlrrrr", lines)


def _through(tried: dict[str, Any]) -> str:
    return f" seen in {tried['directions']}" if tried.get("directions") else ""


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _shares(parts: dict[str, Any]) -> str:
    found = parts["known_shares"]
    shares = sorted({each["share"] for each in found})
    lines = [
        [
            f"{width} columns",
            *(
                f"{each['auc']:.3f}"
                for share in shares
                for each in found
                if (each["width"], each["share"]) == (width, share)
            ),
        ]
        for width in sorted({each["width"] for each in found})
    ]
    header = ["CoraML, rows held", *(f"{100 * share:g} %" for share in shares)]
    return grid(header, "l" + "r" * len(shares), lines)


def _words(found: Found) -> str:
    names = {"was": "3,072 columns", "now": "the default"}
    lines = [
        [
            _title(stream),
            name,
            f"{100 * parts[form]['words']['members']:.0f} %",
            f"{100 * parts[form]['words']['others']:.0f} %",
        ]
        for stream, parts in found.items()
        for form, name in names.items()
        if "words" in parts[form]
    ]
    return grid(["named of 16", "", "nodes learned from", "other nodes"], "llrr", lines)


def _other_methods(parts: dict[str, Any]) -> list[str]:
    there = {method: parts[method] for method in TRIED if method in parts}
    return ["## Other methods", prose(METHODS), _methods(there)] if there else []


def _methods(methods: dict[str, Any]) -> str:
    lines = []
    for method, found in methods.items():
        name, sure = method_facts(method).display, f"{found['confidence']['auc']:.2f}"
        sums = found["sums"] or [None]
        for each in sums:
            if each is None:
                lines.append([name, "no products", "", "", "", "", sure])
                continue
            attack, best = best_of_one_row(each)
            everyone = each["attacks"].get("all candidates")
            lines.append(
                [
                    name,
                    each["where"],
                    f"{each['rows']:,}",
                    f"{each['columns']:,}",
                    f"{best['auc']:.2f} ({attack})",
                    f"{everyone['auc']:.2f}" if everyone else "",
                    sure,
                ]
            )
            name, sure = "", ""
    header = ["", "sum", "rows", "columns", "one row", "every row", "how sure it is"]
    return grid(header, "llrrlrr", lines)


def main(arguments: Sequence[str]) -> int:
    """Make the page, or with `--check` only compare."""
    return write_page(arguments, "attacks-page", _made)


def _made(tables: Path, page: Path) -> str:
    return attacks_page(read_attacks(tables))
