"""Plots of what bench.py measured, as SVG for docs/plots: small, the same bytes for the same numbers, readable on light and dark pages.

Each has paper and ink of its own, which follow the reader's system: a page cannot tell a picture which of its two themes is shown.
Letters stay letters, in whatever sans-serif face the reader has.
"""

import io
import re

import matplotlib

matplotlib.use("svg")

from matplotlib import pyplot, ticker  # noqa: E402

import figures  # noqa: E402
import report  # noqa: E402
from figures import H5COW, NATIVE, ONION, VERSIONED  # noqa: E402

PAPER, INK, GRID = "#fefefe", "#1f2328", "#d0d7de"
DARK = {PAPER: "#0d1117", INK: "#e6edf3", GRID: "#30363d"}
# Each has a contrast of 3 or more with both papers, and a mark of its own for who does not see the colours.
LOOKS = {NATIVE: ("#7d8590", "s"), H5COW: ("#2f81f7", "o"), VERSIONED: ("#d4720b", "^"), ONION: ("#1f9d55", "D")}
STYLE = {"svg.hashsalt": "h5cow", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9, "axes.spines.top": False,
         "axes.spines.right": False, "axes.edgecolor": INK, "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK,
         "ytick.color": INK, "axes.facecolor": PAPER, "figure.facecolor": PAPER, "savefig.facecolor": PAPER, "grid.color": GRID,
         "legend.frameon": False, "path.simplify": False}


def draw(panels):
    """PANELS: title, name of the x axis, unit ("time" or "size"), and lines: (label, way, dashed, points)."""
    with pyplot.rc_context(STYLE):
        figure, all_axes = pyplot.subplots(1, len(panels), figsize=(4.4 * len(panels), 3.5), layout="constrained", squeeze=False)
        for axes, (title, across, unit, lines) in zip(all_axes[0], panels):
            for label, way, dashed, points in lines:
                colour, mark = LOOKS[way]
                axes.plot(*zip(*points), label=label, color=colour, marker=mark, markersize=4, linewidth=1.5,
                          linestyle="--" if dashed else "-")
            axes.set(title=title, xlabel=across, xscale="log", yscale="log")
            axes.title.set_size(9)
            said = report.time_text if unit == "time" else report.size_text
            axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _, said=said: short(said(value))))
            axes.yaxis.set_major_locator(ticker.LogLocator(base=4 if unit == "size" else 10, subs=(1.0,) if unit == "size" else (1.0, 3.0)))
            axes.yaxis.set_minor_locator(ticker.NullLocator())
            axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.0f}"))
            axes.xaxis.set_minor_locator(ticker.NullLocator())
            axes.grid(True, which="major", linewidth=0.6)
            axes.set_axisbelow(True)
            axes.legend(fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.2))
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
        pyplot.close(figure)
    return themed(text.getvalue())


def short(text):
    """1.0 ms as 1 ms."""
    number, unit = text.split()
    return f"{float(number):g} {unit}"


def themed(svg):
    """What is drawn in the light colours gets the dark ones where the reader's system is dark."""
    rules = "".join(f"[style*='{kind}: {light}']{{{kind}:{dark} !important}}" for light, dark in DARK.items() for kind in ("fill", "stroke"))
    style = f"<style>@media (prefers-color-scheme: dark){{{rules}}}</style>"
    svg = re.sub(r"font-family: [^;\"]+", "font-family: sans-serif", svg)
    svg = re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", svg)  # of a 72th of an inch
    head, rest = svg.split("<defs>", 1)
    return "\n".join(line.rstrip() for line in f"{head}{style}\n<defs>{rest}".splitlines()) + "\n"


def medians(results, part, what, way, each=1.0):
    """Points of sizes and values. EACH: divided by the size."""
    found = {size: rounds for (p, size, w, v), rounds in results.figures.items() if (p, w, v) == (part, what, way)}
    return [(size, figures.median(rounds) / (size if each != 1.0 else 1)) for size, rounds in sorted(found.items())]


def lines_of(results, part, whats, each=1.0):
    """Native and h5cow for each of WHATS: what was measured, its label, whether it is dashed."""
    lines = []
    for what, label, dashed in whats:
        for way in (NATIVE, H5COW):
            points = medians(results, part, what, way, each)
            if points:
                lines.append((f"{way}{label}", way, dashed, points))
    return lines


def chunks(results):
    return [("commit of one changed chunk", "chunks of the dataset", "time", lines_of(results, "chunks", [("commit", "", False)])),
            ("largest memory of that process", "chunks of the dataset", "size", lines_of(results, "chunks", [("commit, memory", "", False)]))]


def versions(results):
    shown = [("commit", ": commit", False), ("open @N, read a value", ": open @N", True), ("log -n 3", ": log -n 3", True)]
    return [("one changed element", "versions of the file", "time", lines_of(results, "age", shown[:2])),
            ("the file", "versions of the file", "size", lines_of(results, "age", [("file, bytes", "", False)]))]


def grown(results):
    """The history of one value, by all who keep one: the longest that each has made."""
    lines = {"time": [], "size": []}
    for way in (NATIVE, VERSIONED, ONION, H5COW):
        found = {size: rounds for (p, size, what, w), rounds in results.figures.items() if (p, what, w) == ("value", "points", way)}
        if found:
            points = figures.values(found[max(found)])[0]
            lines["time"].append((way, way, False, [(n, seconds) for n, seconds, _ in points]))
            lines["size"].append((way, way, False, [(n, size) for n, _, size in points]))
    return [("bytes of the file", "versions", "size", lines["size"]), ("time of all versions", "versions", "time", lines["time"])]


def objects(results):
    every = [("create, close", ": create", False), ("open, read one of each", ": read", True)]
    return [("for each dataset", "datasets of the file", "time", lines_of(results, "objects", every, each=0)),
            ("one dataset changed", "datasets of the file", "time", lines_of(results, "objects", [("change one", "", False)]))]


PLOTS = {"chunks": chunks, "versions": versions, "bytes": grown, "objects": objects}


def all_plots(results):
    """-> name and text of each for which there are numbers."""
    for name, panels in PLOTS.items():
        panels = panels(results)
        if all(lines for _, _, _, lines in panels):
            yield name, draw(panels)
