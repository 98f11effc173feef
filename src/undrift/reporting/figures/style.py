"""How a method and a stream look and are called: the same in every figure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from zlib import crc32

from undrift.experiments.result import Result
from undrift.learners.registry import REGISTRY
from undrift.reporting.figures.sheet import SMALL
from undrift.reporting.names import method_facts, stream_title
from undrift.reporting.tables.comparison import published_numbers

# Okabe and Ito's palette, distinct with any colour vision, without its yellow, which is too
# faint for a line on white; then four dark colours after Tol's that differ from it in lightness.
_COLOURS = {"vermilion": "#D55E00", "orange": "#E69F00", "pink": "#CC79A7", "blue": "#0072B2"}
_COLOURS |= {"sky": "#56B4E9", "green": "#009E73", "black": "#000000", "grey": "#8C8C8C"}
_COLOURS |= {"indigo": "#332288", "wine": "#882255", "olive": "#8F8F2E", "forest": "#117733"}
# Colour, dash and marker of our methods, in their order. A colour is used twice at most, once as a
# full line and once dashed. No two share a marker; a hollow square is not a full one.
_LOOKS = r"""
    grey : X         black - 8        orange - <        wine -- >        forest -- d
    indigo -- p      orange -- s      olive -. h        pink -- H        pink - v
    blue - s         sky - D          green - ^         vermilion - o    vermilion -- P
    indigo - *       blue -- $H$      wine - $\alpha$   forest - $\upsilon$
    sky -- $\sigma$  green -- $\gamma$
"""
# for methods of other packages: none of these pairs of dash and colour is one of ours
_SPARE_COLOURS = ("green", "wine", "indigo", "sky", "orange", "pink", "forest")
_SPARE_DASHES = (":", (0, (3, 1, 1, 1, 1, 1)))
_SPARE_LETTERS = tuple("ABCDEFGKLMNPQRSTUVWXYZ")


def style_of(method: str) -> dict[str, Any]:
    """The colour, dash and marker of a method, hollow where it keeps examples.

    A method that is not ours gets its look from a hash of its name, its first letter as marker.
    """
    ours = dict(zip(REGISTRY.own, zip(*[iter(_LOOKS.split())] * 3, strict=True), strict=False))
    colour, dash, marker = ours.get(method) or _look_by_name(method)
    colour = _COLOURS[colour]
    face = "white" if method_facts(method).keeps_examples else colour
    return {"color": colour, "linestyle": dash, "marker": marker, "markerfacecolor": face}


def _look_by_name(method: str) -> tuple[str, Any, str]:
    number = crc32(method.encode())  # not hash(): that differs from process to process
    number, colour = divmod(number, len(_SPARE_COLOURS))
    number, dash = divmod(number, len(_SPARE_DASHES))
    letter = display(method)[:1].upper()
    letter = letter if letter in _SPARE_LETTERS else _SPARE_LETTERS[number % len(_SPARE_LETTERS)]
    return _SPARE_COLOURS[colour], _SPARE_DASHES[dash], f"${letter}$"


def is_bold(method: str) -> bool:
    """Whether a publication proposes this method: the eye looks for it first."""
    return any(method == numbers.proposed for numbers in published_numbers())


def name_style(method: str) -> dict[str, Any]:
    """How a method's name is written beside its line or point."""
    colour, weight = ink(style_of(method)["color"]), "bold" if is_bold(method) else "normal"
    return {"s": display(method), "color": colour, "weight": weight, "fontsize": SMALL}


def ink(colour: str) -> str:
    """The colour as dark as text on white needs: at least 4.5 to 1 of contrast."""
    parts, luminance = list(bytes.fromhex(colour[1:])), 1.0
    while luminance > 0.18:  # (1 + 0.05) / (0.18 + 0.05) > 4.5
        shares = [part / 255 for part in parts]
        linear = [p / 12.92 if p < 0.04 else ((p + 0.055) / 1.055) ** 2.4 for p in shares]
        luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        colour = "#" + "".join(f"{part:02X}" for part in parts)
        parts = [int(part * 0.96) for part in parts]
    return colour


def display(method: str) -> str:
    """The name of a method as papers write it; one that is not registered is called as it is."""
    return method_facts(method).display.replace("$", "")  # figures would read it as mathematics


def title_of(result: Result) -> str:
    """How a figure names the stream of a result: as a table does, and a stand-in says so."""
    return drawn_title(result.spec.place, stand_in=result.stand_in)


def drawn_title(stream: str, *, stand_in: bool = False) -> str:
    """The title of a stream as tables print it, safe to draw."""
    return stream_title(stream, stand_in=stand_in).replace("$", "")


def panel_words(found: Mapping[str, Sequence[Result]]) -> tuple[str, str]:
    """What stands over a panel with these runs by method: the stream, and how many seeds."""
    return title_of(next(iter(found.values()))[0]), seeds_of(found.values())


def seeds_of(groups: Iterable[Sequence[Result]]) -> str:
    """How many seeds were run, in words."""
    low, *_, high = (*sorted(counts := {len(group) for group in groups}), max(counts))
    return f"{low} to {high} seeds" if low < high else "one seed" if low == 1 else f"{low} seeds"
