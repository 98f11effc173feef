"""Learning curves the size of a word: one row's line among those of all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from markupsafe import Markup

WIDTH, HEIGHT, EDGE = 168, 44, 3


def mean_curve(curves: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """The mean of several curves, as far as all of them go.

    >>> mean_curve([[90, 80], [70, 60, 50]])
    (80.0, 70.0)
    """
    return tuple(fmean(column) for column in zip(*curves, strict=False))


@dataclass(frozen=True)
class Backdrop:
    """The faint curves of every row on a stream: drawn once, used behind each sparkline.

    All curves of a stream share one scale, from the lowest value to the highest.
    """

    name: str
    curves: Sequence[tuple[float, ...]]

    @cached_property
    def scale(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        values = [value for curve in self.curves for value in curve]
        return min(values), max(values)

    def drawn(self) -> Markup:
        """The curves as a group with an id."""
        paths = [Markup('<path d="{}"/>').format(self._path(c)) for c in dict.fromkeys(self.curves)]
        return Markup('<g id="{}" class="others">{}</g>').format(self.name, Markup("").join(paths))

    def sparkline(self, curve: Sequence[float]) -> Markup:
        """A_t in percent from the first task to the last, before all others."""
        label = f"A_t from {curve[0]:.1f} to {curve[-1]:.1f} percent over {len(curve)} tasks"
        x, y = self._point(len(curve) - 1, curve[-1], len(curve))
        return Markup(
            '<svg class="spark" viewBox="0 0 {w} {h}" role="img" aria-label="{label}">'
            '<title>{label}</title><use href="#{name}"/><path class="own" d="{path}"/>'
            '<circle cx="{x}" cy="{y}" r="2.4"/></svg>'
        ).format(w=WIDTH, h=HEIGHT, label=label, name=self.name, path=self._path(curve), x=x, y=y)

    def _path(self, curve: Sequence[float]) -> str:
        points = (self._point(t, value, len(curve)) for t, value in enumerate(curve))
        return "M" + "L".join(f"{x} {y}" for x, y in points)

    def _point(self, t: int, value: float, steps: int) -> tuple[str, str]:
        low, high = self.scale
        height = (value - low) / (high - low) if high > low else 0.5
        x = EDGE + (WIDTH - 2 * EDGE) * t / max(steps - 1, 1)
        y = EDGE + (HEIGHT - 2 * EDGE) * (1 - height)
        return f"{x:.4g}", f"{y:.4g}"
