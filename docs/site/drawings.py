"""The small drawing at the top of a method's page: what is trained, fixed, recomputed and kept.

A method is a row of boxes that a task passes from left to right, and below them what is kept for
the tasks to come. Colours come from site.css, so one drawing serves light and dark pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Literal

WIDTH, TOP, HIGH, GAP, LEFT = 520, 14, 66, 26, 62
STORE_TOP, STORE_HIGH = 122, 44
LEGEND = {
    "trained": "trained on the task",
    "fixed": "never changes",
    "solved": "computed anew",
    "kept": "kept",
    "examples": "kept: nodes",
}


@dataclass(frozen=True)
class Box:
    """A step: its kind (of `LEGEND`), a title and lines below it."""

    kind: Literal["trained", "fixed", "solved"]
    title: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Store:
    """What is kept, below boxes `first` to `last`; `fed` by some of them and `used` by some."""

    title: str
    line: str
    first: int
    last: int
    fed: tuple[int, ...] = ()
    used: tuple[int, ...] = ()
    kind: Literal["kept", "examples"] = "kept"


@dataclass(frozen=True)
class Drawing:
    """A method's boxes and stores; `says` is the drawing in a sentence."""

    says: str
    boxes: tuple[Box, ...]
    stores: tuple[Store, ...]


def _box(kind: str, title: str, *lines: str) -> Box:
    return Box(kind, title, lines)  # type: ignore[arg-type]


_MODEL = "encoder and head"
_LAST = "the last model"

DRAWINGS = {
    "bare": Drawing(
        "The model of the last task is trained on the new one, and kept.",
        (_box("trained", _MODEL, "cross-entropy on the task's nodes"),),
        (Store(_LAST, "weights", 0, 0, fed=(0,), used=(0,)),),
    ),
    "joint": Drawing(
        "Every task graph is kept, and a new model is trained on all of them.",
        (_box("trained", "a new encoder and head", "cross-entropy on all tasks so far"),),
        (Store("all task graphs", "features, edges, labels", 0, 0, (0,), (0,), kind="examples"),),
    ),
    "lwf": Drawing(
        "The model is trained on the task and held to the last model's answers on its nodes.",
        (
            _box("solved", "teacher's answers", "the last model", "on the task's nodes"),
            _box("trained", _MODEL, "cross-entropy", "+ match the teacher"),
        ),
        (Store(_LAST, "weights", 0, 1, fed=(1,), used=(0, 1)),),
    ),
    "ewc": Drawing(
        "The model is trained with a pull to anchors, then importances are computed and added.",
        (
            _box("trained", _MODEL, "cross-entropy", "+ F (p − a)²"),
            _box("solved", "Fisher information", "squared gradients,", "one per node"),
        ),
        (Store("importance F, anchor a", "three models, any number of tasks", 0, 1, (1,), (0,)),),
    ),
    "mas": Drawing(
        "The model is trained with a pull to the last one, then importances are averaged in.",
        (
            _box("trained", _MODEL, "cross-entropy", "+ Ω (p − θ*)²"),
            _box("solved", "sensitivity", "of the logits,", "no labels"),
        ),
        (Store("importance Ω, last model θ*", "two models", 0, 1, fed=(1,), used=(0,)),),
    ),
    "twp": Drawing(
        "The model is trained with a pull to anchors; importances come from loss and attention.",
        (
            _box("trained", _MODEL, "cross-entropy", "+ (I_loss + I_topo)(p − a)²"),
            _box("solved", "two importances", "of the loss, and of the", "attention on edges"),
        ),
        (Store("importances, anchors", "three models", 0, 1, fed=(1,), used=(0,)),),
    ),
    "er-gnn": Drawing(
        "The model is trained on the task and on kept nodes; then nodes of the task are chosen.",
        (
            _box("trained", _MODEL, "cross-entropy on", "task and buffer"),
            _box("solved", "choose nodes", "10 per class"),
        ),
        (
            Store(
                "buffer", "features of training nodes", 0, 1, fed=(1,), used=(0,), kind="examples"
            ),
        ),
    ),
    "cat": Drawing(
        "The task is condensed to synthetic nodes, and a new model is trained on these alone.",
        (
            _box("solved", "condense", "a few synthetic nodes", "that match class means"),
            _box("trained", "a new model", "trained on the", "memory alone"),
        ),
        (Store("memory", "synthetic nodes of all tasks", 0, 1, (0,), (1,), "examples"),),
    ),
    "polo": Drawing(
        "The model is trained with pseudo embeddings of old classes, whose prototypes then move.",
        (
            _box("trained", _MODEL, "cross-entropy, pseudo", "embeddings, distillation"),
            _box("solved", "move prototypes", "by the drift of", "the task's nodes"),
        ),
        (Store("prototype, radius", "of every class", 0, 1, fed=(1,), used=(0, 1)),),
    ),
    "efc": Drawing(
        "The model is trained with samples of old classes and an elastic pull; means then move.",
        (
            _box("trained", _MODEL, "cross-entropy, samples,", "elastic pull by E"),
            _box("solved", "move means", "by the drift; then E anew"),
        ),
        (Store("mean, covariance; E", "of every class; of the head", 0, 1, (1,), (0, 1)),),
    ),
    "dpcr": Drawing(
        "The encoder is trained, the shift estimated, old moments moved and the classifier solved.",
        (
            _box("trained", "encoder", "cross-entropy", "+ distillation"),
            _box("solved", "shift P", "old to new", "embeddings"),
            _box("solved", "classifier", "ridge regression"),
        ),
        (Store("mean, second moment", "of every class, moved by P", 1, 2, (1,), (1, 2)),),
    ),
    "acil": Drawing(
        "A frozen encoder and a fixed expansion; only the ridge classifier is computed anew.",
        (
            _box("fixed", "encoder", "trained on the base", "task, then frozen"),
            _box("fixed", "expansion", "ReLU(f W_ψ),", "random"),
            _box("solved", "classifier", "ridge regression"),
        ),
        (Store("sums HᵀH, HᵀY", "over all tasks", 1, 2, fed=(1,), used=(2,)),),
    ),
    "ds-al": Drawing(
        "A frozen encoder, a fixed projection, and two ridge regressions that are computed anew.",
        (
            _box("fixed", "encoder", "trained on the base", "task, then frozen"),
            _box("fixed", "projection", "ReLU(Z), tanh(Z),", "Z = f W_ψ"),
            _box("solved", "two classifiers", "labels, then", "what is left over"),
        ),
        (Store("two pairs of sums", "over all tasks", 1, 2, fed=(1,), used=(2,)),),
    ),
    "adr": Drawing(
        "The encoder adapts freely; merged layers and classifier are solved from sums.",
        (
            _box("trained", "adapt θ_t", "cross-entropy,", "nothing held back"),
            _box("solved", "merge (HAM)", "ridge regression", "per layer"),
            _box("solved", "classifier (ACR)", "ridge regression", "on the embeddings"),
        ),
        (
            Store("R_k, Q_k, θ_t", "sums of every layer", 0, 1, fed=(0,), used=(1,)),
            Store("R_φ, Q_φ", "sums", 2, 2, fed=(2,), used=(2,)),
        ),
    ),
    "adr-plus": Drawing(
        "As ADR, with all nodes in the merge's sums and a class-balanced classifier.",
        (
            _box("trained", "adapt θ_t", "cross-entropy,", "nothing held back"),
            _box("solved", "merge (HAM)", "all nodes,", "a smaller ridge"),
            _box("solved", "classifier (ACR)", "classes weigh", "the same"),
        ),
        (
            Store("R_k, Q_k, θ_t", "sums of every layer", 0, 1, fed=(0,), used=(1,)),
            Store("R_φ, Q_φ", "sums", 2, 2, fed=(2,), used=(2,)),
        ),
    ),
    "propagation": Drawing(
        "Features are a fixed function of the graph; gamma and classifier are solved from sums.",
        (
            _box("fixed", "features Z", "of neighbourhoods;", "nothing is trained"),
            _box("solved", "gamma", "cross-validation", "told by the sums"),
            _box("solved", "classifier", "balanced ridge", "regression"),
        ),
        (Store("sums behind R, Q", "plain, over training rows", 0, 2, fed=(0,), used=(1, 2)),),
    ),
    "hybrid": Drawing(
        "Propagated features beside a frozen encoder's; the sums tell which to use.",
        (
            _box("fixed", "rows [z, h]", "propagated, and of", "a frozen encoder"),
            _box("solved", "which columns", "accuracy told", "by the sums"),
            _box("solved", "classifier", "balanced ridge", "regression"),
        ),
        (Store("sums with and without h", "plain, over training rows", 0, 2, (0,), (1, 2)),),
    ),
    "al-gnn": Drawing(
        "A random encoder that nobody trains; the classifier is solved from sums.",
        (
            _box("fixed", "embeddings f", "of a GCN with", "random weights"),
            _box("fixed", "expansion H", "random, fixed"),
            _box("solved", "classifier", "ridge regression"),
        ),
        (Store("R, Q", "sums over all rows", 1, 2, fed=(1,), used=(2,)),),
    ),
    "ugcn": Drawing(
        "Layers of a random network side by side; a discriminant of class means in them.",
        (
            _box("fixed", "layers H_k", "of a network with", "random weights"),
            _box("solved", "discriminant", "class means, one", "covariance"),
        ),
        (Store("means, covariance", "from sums over all rows", 0, 1, fed=(0,), used=(1,)),),
    ),
    "sgc-ridge": Drawing(
        "Features some hops away; the classifier is solved from sums.",
        (
            _box("fixed", "features A^K X", "nothing is", "trained"),
            _box("solved", "classifier", "ridge regression"),
        ),
        (Store("R, Q", "sums over all rows", 0, 1, fed=(0,), used=(1,)),),
    ),
    "gacl": Drawing(
        "The base task trains an encoder; the classifier is solved from sums.",
        (
            _box("fixed", "encoder", "trained on the base", "task, then frozen"),
            _box("fixed", "expansion H", "random, fixed"),
            _box("solved", "classifier", "ridge regression"),
        ),
        (Store("R, Q", "sums over all rows", 1, 2, fed=(1,), used=(2,)),),
    ),
    "merging": Drawing(
        "The encoder adapts to each task; a rule makes one encoder of all of them.",
        (
            _box("trained", "adapt θ_t", "to the task"),
            _box("solved", "merge", "θ_0 … θ_t become", "one encoder"),
            _box("solved", "classifier", "of the merged", "encoder"),
        ),
        (Store("the rule's memory", "of one size, any number of tasks", 0, 1, (0,), (1,)),),
    ),
}


def drawing(method: str) -> str:
    """The drawing as an SVG to stand within a page."""
    what = DRAWINGS[method]
    parts = "\n".join(
        (*_task(), *_boxes(what.boxes), *_stores(what.stores, len(what.boxes)), *_legend(what))
    )
    return (
        f'<figure class="drawing"><svg viewBox="0 0 {WIDTH} 198" role="img" '
        f'aria-label="{escape(what.says)}">\n<defs><marker id="tip" viewBox="0 0 8 8" refX="7" '
        'refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
        f'<path d="M0 0 8 4 0 8z"/></marker></defs>\n{parts}\n</svg></figure>'
    )


def _place(number: int, boxes: int) -> tuple[float, float]:
    """Left edge and width of a box."""
    width = (WIDTH - LEFT - 2 - GAP * (boxes - 1)) / boxes
    return LEFT + number * (width + GAP), width


def _task() -> Iterator[str]:
    """A small graph with its name."""
    nodes = ((14, 34), (36, 26), (24, 54))
    lines = ((0, 1), (0, 2), (1, 2))
    for a, b in lines:
        yield (f'<path class="edge" d="M{nodes[a][0]} {nodes[a][1]} {nodes[b][0]} {nodes[b][1]}"/>')
    for x, y in nodes:
        yield f'<circle class="node" cx="{x}" cy="{y}" r="5"/>'
    yield '<text x="24" y="78">task t</text>'
    yield _arrow(42, TOP + HIGH / 2, LEFT - 3, TOP + HIGH / 2)


def _boxes(boxes: tuple[Box, ...]) -> Iterator[str]:
    for number, box in enumerate(boxes):
        x, width = _place(number, len(boxes))
        yield from _panel(box.kind, (x, TOP, width, HIGH), box.title, box.lines)
        if number:
            yield _arrow(x - GAP + 3, TOP + HIGH / 2, x - 3, TOP + HIGH / 2)


def _stores(stores: tuple[Store, ...], boxes: int) -> Iterator[str]:
    for store in stores:
        x = _place(store.first, boxes)[0]
        last, width = _place(store.last, boxes)
        wide = min(last + width - x, 300 if boxes > 1 else 240)
        x += (last + width - x - wide) / 2
        yield from _panel(store.kind, (x, STORE_TOP, wide, STORE_HIGH), store.title, (store.line,))
        for number in sorted({*store.fed, *store.used}):
            left, width = _place(number, boxes)
            middle = min(max(left + width / 2, x + 24), x + wide - 24)
            both = number in store.fed and number in store.used
            if number in store.fed:
                at = middle - (8 if both else 0)
                yield _arrow(at, TOP + HIGH + 3, at, STORE_TOP - 3)
            if number in store.used:
                at = middle + (8 if both else 0)
                yield _arrow(at, STORE_TOP - 3, at, TOP + HIGH + 3)


def _panel(
    kind: str,
    place: tuple[float, float, float, float],
    title: str,
    lines: tuple[str, ...],
) -> Iterator[str]:
    """A rectangle with text in its middle; its place is left, top, width and height."""
    x, y, width, high = place
    yield (f'<rect class="{kind}" x="{x:.0f}" y="{y}" width="{width:.0f}" height="{high}" rx="6"/>')
    middle = x + width / 2
    first = y + high / 2 + 4.5 - 7.5 * len(lines)
    yield f'<text class="title" x="{middle:.0f}" y="{first:.0f}">{_marked(title)}</text>'
    for number, line in enumerate(lines, start=1):
        yield f'<text x="{middle:.0f}" y="{first + 15 * number:.0f}">{_marked(line)}</text>'


def _arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path class="arrow" d="M{x1:.0f} {y1:.0f} {x2:.0f} {y2:.0f}" marker-end="url(#tip)"/>'


def _legend(what: Drawing) -> Iterator[str]:
    kinds = {box.kind for box in what.boxes} | {store.kind for store in what.stores}
    x = float(LEFT)
    for kind, name in LEGEND.items():
        if kind in kinds:
            yield f'<rect class="{kind}" x="{x:.0f}" y="181" width="12" height="12" rx="3"/>'
            yield f'<text class="legend" x="{x + 17:.0f}" y="191">{name}</text>'
            x += 34 + 7.6 * len(name)


def _marked(text: str) -> str:
    """Text with its indices set low: θ_t, R_val."""
    first, *rest = escape(text).split("_")
    done = first
    for part in rest:
        size = next((n for n, c in enumerate(part) if not c.isalnum()), len(part))
        done += (
            f'<tspan class="low" dy="3">{part[:size]}</tspan>'
            f'<tspan dy="-3">{part[size:] or "&#8203;"}</tspan>'
        )
    return done
