"""Draws the curves of long texts in docs/scale.md from what `attnscope bench long --json` has measured.

attnscope bench long --json > long.json; python docs/long_curves.py long.json
"""

import json
import re
import sys
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

PICTURE = Path(__file__).parent / "images" / "long_texts.svg"
CASE = re.compile(r"(?P<what>.*), (?P<tokens>[\d,]+) tokens, (?P<heads>.*) heads")
SECONDS = {
    "forward pass": "forward pass alone",
    "the forward pass with vectors kept": "with queries and keys kept",
    "one row of rollout": "one row of rollout",
    "rollout, tracing and raw": "rollout, tracing and raw",
    "all weights": "with all weights kept",
}
BYTES = {"ours": "queries and keys kept, three methods", "all weights": "all weights kept"}
Curves = dict[tuple[str, str], dict[int, float]]


def curves_of(figures: list[dict[str, object]]) -> tuple[Curves, Curves]:
    """Seconds and bytes by what was measured, the size of the model, and the number of tokens."""
    seconds: Curves = {}
    peaks: Curves = {}
    for figure in figures:
        found = CASE.fullmatch(str(figure["case"]))
        if found is None:
            continue
        heads, tokens = found["heads"], int(found["tokens"].replace(",", ""))
        ours, others = float(str(figure["ours"])), float(str(figure["others"]))
        if found["what"].startswith("peak over"):
            peaks.setdefault(("ours", heads), {})[tokens] = ours
            if figure["other"] == "all weights" and not figure.get("note"):  # measured, not told from the sizes
                peaks.setdefault(("all weights", heads), {})[tokens] = others
        elif found["what"] in SECONDS:
            seconds.setdefault((found["what"], heads), {})[tokens] = ours
            seconds.setdefault(("forward pass", heads), {})[tokens] = others
        elif figure["other"] == "all weights":
            seconds.setdefault(("all weights", heads), {})[tokens] = others
    return seconds, peaks


def draw(axes: Axes, curves: Curves, names: dict[str, str], unit: str) -> None:
    """One line for each thing measured, whole for the larger model and broken for the smaller."""
    sizes = list(dict.fromkeys(heads for _, heads in curves))
    for colour, (name, label) in enumerate(names.items()):
        for style, heads in zip(("-", "--"), sizes, strict=False):
            if points := curves.get((name, heads)):
                told = label if heads == sizes[0] else None
                tokens = sorted(points)
                axes.plot(
                    tokens, [points[count] for count in tokens], style, marker="o", color=f"C{colour}", label=told
                )
    axes.set(xscale="log", yscale="log", xlabel="tokens", ylabel=unit)
    axes.set_xticks(ticks := sorted({tokens for points in curves.values() for tokens in points}))
    axes.set_xticklabels([f"{tick:,}" for tick in ticks], rotation=45)
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=8)


def main(measured: Path) -> None:
    """Draw both beside each other."""
    seconds, peaks = curves_of(json.loads(measured.read_text(encoding="utf-8")))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    draw(left, seconds, SECONDS, "seconds")
    draw(right, peaks, BYTES, "bytes over the forward pass")
    figure.savefig(PICTURE)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
