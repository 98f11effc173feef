"""The claims of the ADR paper, a function each: it looks at the runs of one stream.

Does not import torch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean

from paper.claim import Claim
from paper.claim_runs import Runs
from paper.published import Table, published, published_rows
from undrift.experiments.result import Result
from undrift.experiments.search import Search
from undrift.learners.registry import METHODS

__all__ = [
    "DRIFT_SHARE",
    "MARGINAL",
    "NEAR_JOINT",
    "NO_DRIFT",
    "RUN_CHECKS",
    "SEARCH_CHECKS",
]

DRIFT_SHARE = 0.25
"""Far under: ADR's drift is at most this share of EFC's and of DPCR's."""
NO_DRIFT = 0.001
"""Immune to drift: the embeddings moved by less than this share of their length."""
NEAR_JOINT = 2.0
"""Near the bound: at most so many points of A_f under Joint."""
MARGINAL = 1.0
"""Marginal: over all gamma, A_avg varies by at most so many points."""

_PAPER_STREAMS = ("cs-cl", "corafull-cl", "arxiv-cl", "reddit-cl")
_DRIFT_STREAMS = ("cs-cl", "corafull-cl")
_ADDED_RULES = ("ties", "regmean")
_RULES = {
    "none": "no merging",
    "average": "averaging",
    "fisher": "Fisher merging",
    "magmax": "MagMax",
    "ties": "TIES",
    "regmean": "RegMean",
    "ham": "HAM",
}


@dataclass(frozen=True)
class _Race:
    """A row of a table against others: `keys` finds their runs, `words` are their names."""

    table: Table
    own: str
    others: tuple[str, ...]
    keys: Mapping[str, str]
    words: Mapping[str, str]


def _adr_leads(stream: str, runs: Runs) -> Claim | None:
    rows = tuple(r for r in published_rows("table1") if r != "adr" and not _is_bound(r))
    race = _Race("table1", "adr", rows, {r: r for r in METHODS}, _displays())
    text = "ADR is above every other method of Table 1, bounds aside, in A_avg and in A_f"
    return _leads("adr-first", text, stream, runs, race)


def _ham_leads(stream: str, runs: Runs) -> Claim | None:
    rows = tuple(rule for rule in published_rows("ablation") if rule != "ham")
    text = "HAM is above every other merging rule of the paper's ablation, in A_avg and in A_f"
    return _leads("ham-first", text, stream, runs, _rules(rows))


def _ham_leads_ours(stream: str, runs: Runs) -> Claim | None:
    text = "HAM is above TIES and RegMean, which the paper does not compare, in A_avg and in A_f"
    return _leads("ham-first-added", text, stream, runs, _rules(_ADDED_RULES))


def _rules(others: tuple[str, ...]) -> _Race:
    return _Race("ablation", "ham", others, {rule: f"merging={rule}" for rule in _RULES}, _RULES)


def _leads(name: str, text: str, stream: str, runs: Runs, race: _Race) -> Claim | None:
    """Whether a row is above the others in A_avg and in A_f, here and by the paper's numbers."""
    rows = [row for row in (race.own, *race.others) if race.keys[row] in runs]
    if race.own not in rows or len(rows) < 2:
        return None
    holds, sentences, theirs = True, [], []
    for metric, word in (("a_avg", "A_avg"), ("a_f", "A_f")):
        ours = {race.words[row]: _mean(runs[race.keys[row]], metric) for row in rows}
        first, sentence = _standing(ours, race.words[race.own])
        holds &= first
        printed = {
            race.words[row]: number.mean
            for row in (race.own, *race.others)
            if (number := published(race.table, row, stream, metric)) is not None
        }
        if len(printed) > 1:
            same, in_paper = _standing(printed, race.words[race.own])
            theirs.append(same)
            sentence += f" (paper: {in_paper})"
        sentences.append(f"{word} {sentence}")
    absent = [race.words[row] for row in race.others if row not in rows]
    sentences += [f"no runs of {', '.join(absent)}"] if absent else []
    return Claim(
        name,
        text,
        stream,
        holds,
        "; ".join(sentences) + ".",
        len(runs[race.keys[race.own]]),
        paper=all(theirs) if theirs else None,
        partial=bool(absent),
    )


def _standing(scores: Mapping[str, float], own: str) -> tuple[bool, str]:
    """Whether one is above all the others, and the sentence that says by what.

    >>> _standing({"ADR": 90.71, "DS-AL": 88.88, "ACIL": 88.58}, "ADR")
    (True, 'ADR 90.71, next DS-AL 88.88')
    >>> _standing({"ADR": 39.66, "DS-AL": 41.41}, "ADR")
    (False, 'ADR 39.66, not above DS-AL 41.41')
    """
    others = sorted((name for name in scores if name != own), key=lambda name: -scores[name])
    above = [name for name in others if scores[name] >= scores[own]]
    shown = ", ".join(f"{name} {scores[name]:.2f}" for name in above or others[:1])
    how = f"not above {shown}" if above else f"next {shown}"
    return not above, f"{own} {scores[own]:.2f}, {how}"


def _adr_is_plastic(stream: str, runs: Runs) -> Claim | None:
    frozen = [name for name in ("acil", "ds-al") if name in runs]
    if "adr" not in runs or not frozen:
        return None
    scores = {METHODS[name].display: _mean(runs[name], "a_l") for name in ("adr", *frozen)}
    holds, sentence = _standing(scores, "ADR")
    return Claim(
        "plasticity",
        "ADR learns new tasks better than ACIL and DS-AL, whose encoder is frozen, in A_l",
        stream,
        holds,
        f"A_l {sentence}.",
        len(runs["adr"]),
        True if stream in _PAPER_STREAMS else None,
        partial=len(frozen) < 2,
    )


def _adr_resists_drift(stream: str, runs: Runs) -> Claim | None:
    drifts = {name: _drift(runs.get(name, {})) for name in ("adr", "efc", "dpcr")}
    known = {name: value for name, value in drifts.items() if value is not None}
    if "adr" not in known or len(known) < 2:
        return None
    others = {METHODS[name].display: value for name, value in known.items() if name != "adr"}
    shown = ", ".join(f"{name} {100 * value:.1f} %" for name, value in others.items())
    return Claim(
        "drift",
        "The base task's embeddings drift far less under ADR than under EFC and DPCR (at most "
        "a quarter)",
        stream,
        known["adr"] <= DRIFT_SHARE * min(others.values()),
        f"Drift after the last task: ADR {100 * known['adr']:.1f} %, {shown}.",
        len(runs["adr"]),
        True if stream in _DRIFT_STREAMS else None,
        partial=len(others) < 2,
    )


def _adr_does_not_drift(stream: str, runs: Runs) -> Claim | None:
    drift = _drift(runs.get("adr", {}))
    if drift is None:
        return None
    return Claim(
        "no-drift",
        "ADR is fully immune to feature drift (less than 0.1 %)",
        stream,
        drift < NO_DRIFT,
        f"Drift of ADR after the last task: {100 * drift:.2f} %.",
        len(runs["adr"]),
        True if stream in _DRIFT_STREAMS else None,
    )


def _adr_nears_joint(stream: str, runs: Runs) -> Claim | None:
    if "adr" not in runs or "joint" not in runs:
        return None
    ours, bound = _mean(runs["adr"], "a_f"), _mean(runs["joint"], "a_f")
    evidence = f"A_f ADR {ours:.2f}, Joint {bound:.2f} ({ours - bound:+.2f})"
    printed = published("table1", "adr", stream, "a_f")
    joint = published("table1", "joint", stream, "a_f")
    if printed is not None and joint is not None:
        gap = printed.mean - joint.mean
        evidence += f"; paper: ADR {printed.mean:.2f}, Joint {joint.mean:.2f} ({gap:+.2f})"
    return Claim(
        "near-joint",
        f"ADR comes near joint training: at most {NEAR_JOINT:g} points of A_f under it (the paper "
        "names no distance)",
        stream,
        ours >= bound - NEAR_JOINT,
        f"{evidence}.",
        len(runs["adr"]),
    )


def _gamma_is_marginal(stream: str, search: Search) -> Claim:
    scores = _surface(search)
    least = min(alpha for alpha, _ in scores)
    found = {gamma: score for (alpha, gamma), score in scores.items() if alpha == least}
    varies = max(found.values()) - min(found.values())
    shown = ", ".join(f"{gamma:g}: {score:.2f}" for gamma, score in sorted(found.items()))
    return Claim(
        "gamma-marginal",
        f"gamma hardly matters at the smallest alpha (A_avg varies by at most {MARGINAL:g} point)",
        stream,
        varies <= MARGINAL,
        f"alpha = {least:g}: A_avg on validation nodes varies by {varies:.2f} over gamma "
        f"({shown}).",
        1,
        True if stream == "cs-cl" else None,
    )


def _small_alpha_is_better(stream: str, search: Search) -> Claim:
    best: dict[float, float] = {}
    for (alpha, _), score in _surface(search).items():
        best[alpha] = max(score, best.get(alpha, 0.0))
    alphas = sorted(best)
    top = max(alphas, key=lambda alpha: best[alpha])
    shown = ", ".join(f"{alpha:g}: {best[alpha]:.2f}" for alpha in alphas)
    return Claim(
        "small-alpha",
        "A small alpha is better than a large one (the smallest above the largest)",
        stream,
        best[alphas[0]] > best[alphas[-1]],
        f"A_avg on validation nodes by alpha, best gamma each: {shown}; best at {top:g}.",
        1,
        (stream == "cs-cl") if stream in _PAPER_STREAMS else None,
    )


def _surface(search: Search) -> dict[tuple[float, float], float]:
    """Validation A_avg by alpha and gamma, the best over what else was searched."""
    scores: dict[tuple[float, float], float] = {}
    for trial in search.trials:
        if trial.validation is not None:
            place = float(trial.params["alpha"]), float(trial.params["gamma"])
            score = trial.validation.by_class.a_avg
            scores[place] = max(score, scores.get(place, 0.0))
    return scores


def _mean(runs: Mapping[int, Result], metric: str) -> float:
    return fmean(getattr(result.metrics.by_class, metric) for result in runs.values())


def _drift(runs: Mapping[int, Result]) -> float | None:
    """The mean drift after the last task; None where no run measured it."""
    last = [result.drift[-1] for result in runs.values() if result.drift]
    known = [value for value in last if value is not None]
    return fmean(known) if known else None


def _is_bound(method: str) -> bool:
    return METHODS[method].family == "bound"


def _displays() -> dict[str, str]:
    return {name: method.display for name, method in METHODS.items()}


RUN_CHECKS: tuple[Callable[[str, Runs], Claim | None], ...] = (
    _adr_leads,
    _ham_leads,
    _ham_leads_ours,
    _adr_is_plastic,
    _adr_resists_drift,
    _adr_does_not_drift,
    _adr_nears_joint,
)
"""Claims about runs; None where the stream has not the runs for it."""

SEARCH_CHECKS: tuple[Callable[[str, Search], Claim | None], ...] = (
    _gamma_is_marginal,
    _small_alpha_is_better,
)
"""Claims about ADR's search over alpha and gamma."""
