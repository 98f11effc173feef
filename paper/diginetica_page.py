"""The results on DIGINETICA for a page: a table, two curves and their words."""

from pathlib import Path
from typing import Any

from undrift.learners.registry import METHODS
from undrift.recommend import NextItem
from undrift.reporting.figures import sheet

BEGIN, END = "<!-- made by python -m paper diginetica --page: begin -->", "<!-- end -->"
FIGURE = "recommendation.svg"
ASKED = 200  # cases that are timed on two cores
GUARDED = 1_000  # sessions that guarded files are tested on
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#999999")


def write_page(found: dict[str, Any], page: Path) -> None:
    """Put the section between its marks in a page, at the end where there are none yet."""
    figures = page.parent / "figures"
    figures.mkdir(exist_ok=True)
    sheet.write_figure(curves(found), figures / FIGURE)
    text = page.read_text(encoding="utf-8")
    if BEGIN not in text:
        text = f"{text.rstrip()}\n\n## Results\n\n{BEGIN}\n{END}\n"
    before, rest = text.split(BEGIN)
    made = f"{before}{BEGIN}\n\n{section(found)}\n\n{END}{rest.split(END, 1)[1]}"
    page.write_text(made, encoding="utf-8")


def section(found: dict[str, Any]) -> str:
    """The words and tables, in Markdown."""
    shop, cores = found["methods"]["next-item"], found["two_cores"]
    last, cycles = shop["cycles"][-1], len(shop["cycles"])
    chosen = ", ".join(f"`{name}` {value:g}" for name, value in found["settings"].items())
    some = found["sessions_per_period"]
    small = f" Only the first {some:,} sessions of each period were used." if some else ""
    solve = sum(row["solve_s"] for row in shop["cycles"]) / cycles
    lines = [
        f"DIGINETICA has {found['periods']} periods. A cycle learns all periods before t and tests "
        f"on period t.{small} The figures are means over {cycles} cycles, in percent. All known "
        "items are ranked, and ties count against us.",
        f"The settings of `next-item` were chosen on sessions of period 0 alone: {chosen}. "
        f"{_defaults(found['settings'])}",
        "",
        "| method | recall@20 | MRR@20 | NDCG@20 | new items | coverage | popularity | kept |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for title, (recall, mrr) in found["published"].items():
        lines.append(f"| {title} (published) | {recall:.2f} | {mrr:.2f} | | | | | |")
    for name, each in found["methods"].items():
        mean = each["mean"]
        keys = ("recall_20", "mrr_20", "ndcg_20", "new_recall_20", "coverage")
        numbers = " | ".join(f"{mean[key]:.2f}" for key in keys)
        numbers += f" | {mean['popularity']:.3f} | {each['bytes'] / 1e6:.1f} MB"
        lines.append(f"| {METHODS[name].display} | {numbers} |")
    lines += [
        "",
        "The published rows are of Mi et al., RecSys 2020. New items first appeared in the newest "
        "learned period. Popularity is the share of sessions that have a listed item, as a mean. "
        f"Clicks on items that were not known yet are left out: {shop['mean']['left_out']:.2f} %. "
        f"`next-item` keeps no session. {_margin(found['methods'])}",
        "",
        f"`Ease` was not run: an inverse for {last['items']:,} items takes "
        f"{8e-9 * last['items'] ** 2:.1f} GB and {last['items'] ** 3:.0e} operations.",
        "",
        f"After {last['sessions']:,} sessions it knows {last['items']:,} items and keeps "
        f"{shop['bytes'] / 1e6:.1f} MB. On the device `{found['device']}` a cycle takes "
        f"{solve:.1f} seconds to solve. On two cores a period of {cores['sessions']:,.0f} sessions "
        f"takes {cores['learn_s']:.1f} seconds to learn and {cores['prepare_s']:.1f} to prepare. "
        f"Then an answer takes {cores['answer_s']:.3f} seconds by conjugate gradients to a "
        f"tolerance of {cores['tolerance']:.0e}, and {cores['exact_answer_s']:.3f} seconds to the "
        f"usual one of {NextItem.tolerance:.0e}, as a mean over {ASKED} of the "
        f"{cores['cases']:,} answers of the period. To test the whole period so takes "
        f"{cores['cases'] * cores['answer_s'] / 60:.0f} minutes, or "
        f"{cores['cases'] * cores['exact_answer_s'] / 60:.0f} to the usual tolerance. "
        f"The process took {cores['peak_mb'] / 1e3:.1f} GB of memory at most.",
        *_costs(found.get("cpu")),
        "",
        "A file leaves out items and pairs of few sessions. The table shows what that costs in the "
        f"last cycle, on {min(GUARDED, cores['sessions']):,.0f} of its sessions, drawn at random. "
        "An item that was left out counts as missed.",
        "",
        "| sessions behind a pair | items | pairs | size | recall@20 | MRR@20 |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['least_sessions']} | {row['items']:,} | {row['pairs']:,} "
        f"| {row['bytes'] / 1e6:.1f} MB | {row['recall_20']:.2f} | {row['mrr_20']:.2f} |"
        for row in found["thresholds"]
    ]
    about = "recall over cycles, and over the size of the file"
    return "\n".join([*lines, "", f"![{about}](figures/{FIGURE})"])


def _defaults(settings: dict[str, float]) -> str:
    """Whether a learner has these settings without being told."""
    here = {name: getattr(NextItem, name) for name in settings}
    other = ", ".join(
        f"`{name}` {here[name]:g}" for name in settings if here[name] != settings[name]
    )
    same = "The defaults of `NextItem` are the same."
    return f"The defaults of `NextItem` are others: {other}." if other else same


def _margin(methods: dict[str, Any]) -> str:
    """How far the method is ahead of the strongest simple one."""
    mine, simple = (
        [methods[name]["mean"][key] for key in ("recall_20", "mrr_20")]
        for name in ("next-item", "item-knn")
    )
    ahead = " and ".join(f"{one - other:.2f}" for one, other in zip(mine, simple, strict=True))
    return (
        f"Item-kNN alone reaches {simple[0]:.2f} / {simple[1]:.2f}. So the margin of NextItem is "
        f"small: {ahead} points."
    )


def _costs(cpu: dict[str, Any] | None) -> list[str]:
    """What it costs on a CPU, where that was measured."""
    if cpu is None:
        return []
    learn, prepare = (
        " to ".join(f"{edge(row[key] for row in cpu['periods']):.1f}" for edge in (min, max))
        for key in ("learn_cpu_s", "prepare_cpu_s")
    )
    wall = sum(row["learn_s"] + row["prepare_s"] for row in cpu["periods"])
    usual, longest = cpu["forget"]
    rare, shop = cpu["rare"], cpu["folder"]
    return [
        "",
        f"The rest was measured on a busy machine: {cpu['threads']} threads, and "
        f"{cpu['memory_gb']:g} GB of address space at most. A period takes "
        f"{learn} seconds of the processor to learn and "
        f"{prepare} to prepare. All {len(cpu['periods'])} periods took "
        f"{wall:.0f} seconds on the wall. The process had {cpu['peak_mb'] / 1e3:.1f} GB in memory "
        "at most.",
        "",
        f"To forget a session of {usual['clicks']:.0f} clicks, its {usual['pairs']:.0f} pairs take "
        f"{1e3 * usual['pairs_cpu_s']:.0f} ms of the processor, and the pass over the sums takes "
        f"{1e3 * usual['pass_cpu_s']:.0f} ms. For the longest session, with "
        f"{longest['clicks']:.0f} clicks and {longest['pairs']:.0f} pairs, it is "
        f"{1e3 * longest['pairs_cpu_s']:.0f} and {1e3 * longest['pass_cpu_s']:.0f} ms. The "
        "sessions of others are not read.",
        "",
        f"A folder with hashes of names has {shop['bytes'] / 1e6:.0f} MB after the last period. It "
        f"takes {shop['observe_cpu_s']:.1f} seconds of the processor to observe that period, and "
        f"{shop['forget_cpu_s']:.1f} to forget one session of it. "
        f"Of {rare['items']:,} items {rare['few_items']:,} have fewer than "
        f"{rare['least_sessions']} sessions, and of {rare['pairs']:,} pairs "
        f"{rare['few_pairs']:,}. The exported file without them has "
        f"{shop['export_bytes'] / 1e6:.1f} MB.",
    ]


@sheet.house_style
def curves(found: dict[str, Any]) -> Any:
    """Recall@20 over cycles for every method, and over the size of a guarded file."""
    figure, (over, sizes), _ = sheet.panels(2, 42.0, right=22.0)
    words: dict[str, Any] = {"textcoords": "offset points", "fontsize": sheet.SMALL}
    ends = {name: each["cycles"][-1]["recall_20"] for name, each in found["methods"].items()}
    names = sorted(ends, key=lambda name: ends[name])
    top = 1.1 * max(
        row["recall_20"] for each in found["methods"].values() for row in each["cycles"]
    )
    heights = sheet.place_apart([ends[name] for name in names], 0.08 * top, 0.0, top)
    for name, colour in zip(found["methods"], _COLOURS, strict=True):
        recall = [row["recall_20"] for row in found["methods"][name]["cycles"]]
        over.plot(range(1, len(recall) + 1), recall, color=colour, linewidth=1.0)
        place = (len(recall), heights[names.index(name)])
        look = {**words, "color": colour, "va": "center"}
        over.annotate(METHODS[name].display, place, xytext=(9, 0), **look)
    over.set_ylim(0, top)
    over.set_xticks(range(1, len(recall) + 1, 1 + len(recall) // 9))
    ader = next(iter(found["published"].values()))[0]
    over.axhline(ader, color="#444444", linewidth=0.6, linestyle="--")
    over.annotate("ADER, mean", (1, ader), xytext=(0, 2), **words)
    sheet.label(over, "cycle", "recall@20 (%)")
    rows = found["thresholds"]
    sizes.plot(
        [row["bytes"] / 1e6 for row in rows],
        [row["recall_20"] for row in rows],
        color=_COLOURS[0],
        marker="o",
        markersize=3,
        linewidth=1.0,
    )
    for row in rows:
        place = (row["bytes"] / 1e6, row["recall_20"])
        sizes.annotate(str(row["least_sessions"]), place, xytext=(3, -7), **words)
    sheet.label(sizes, "size of the file (MB), by sessions behind a pair", "recall@20 (%)")
    sizes.set_ylim(bottom=0)
    for axes in (over, sizes):
        sheet.dress(axes, "y")
    return figure
