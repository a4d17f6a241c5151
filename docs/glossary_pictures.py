"""Draws the pictures of the glossary: one small SVG for each entry, readable on light and dark ground.

    python docs/glossary_pictures.py

The same bytes each time. The figures in them are made up, to show what a word means; nothing is measured here.
"""

from collections.abc import Callable, Iterable, Sequence
from html import escape
from math import exp
from pathlib import Path

FOLDER = Path(__file__).with_name("images") / "glossary"
WIDTH, HEIGHT = 260, 112
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1b1b1b}.q{fill:#666;font-size:11px}.e{text-anchor:end}"
    ".m{text-anchor:middle}"
    ".b{font-weight:700}.f{fill:#2563c4}.g{fill:#8a8a8a}.o{fill:#c2571a}.n{fill:none;stroke:#8a8a8a}"
    ".l{stroke:#2563c4}.r{stroke:#c2571a}.k{stroke:#8a8a8a}.c{fill:none}"
    "@media(prefers-color-scheme:dark){text{fill:#eee}.q{fill:#aaa}.f{fill:#7fb0ff}.o{fill:#ff9d5c}"
    ".l{stroke:#7fb0ff}.r{stroke:#ff9d5c}}"
)
"""Two schemes in one file: blue is attention and what speaks for an answer, orange what speaks against it."""
SENTENCE = ("the", "key", "to", "the", "box")
Places = Sequence[float]


# ---- strokes


def text(x: float, y: float, words: str, kind: str = "m") -> str:
    """Words at a place, in the middle of it unless the kind says otherwise."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(words)}</text>'


def line(x: float, y: float, to_x: float, to_y: float, share: float = 1.0, kind: str = "l", wide: float = 2.0) -> str:
    """A line as dark as its share."""
    return (
        f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}" class="{kind}" stroke-width="{wide:g}"'
        f' opacity="{share:g}"/>'
    )


def box(x: float, y: float, wide: float, high: float, kind: str = "f", share: float = 1.0, round_: float = 0) -> str:
    """A box as dark as its share."""
    corner = f' rx="{round_:g}"' if round_ else ""
    return f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" class="{kind}" opacity="{share:g}"{corner}/>'


def curve(points: Iterable[tuple[float, float]], kind: str = "l") -> str:
    """A line through points."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" class="c {kind}" stroke-width="2"/>'


def arrow(x: float, y: float, to_x: float, to_y: float, kind: str = "k") -> str:
    """A line with a dot where it ends."""
    fill = {"k": "g", "l": "f", "r": "o"}[kind]
    return line(x, y, to_x, to_y, 1, kind, 1.5) + f'<circle cx="{to_x:g}" cy="{to_y:g}" r="3" class="{fill}"/>'


def drawn(*parts: str) -> str:
    """The picture of these parts."""
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{STYLE}</style>{"".join(parts)}</svg>\n'


# ---- what several pictures share


def words(y: float, scores: Places = (), names: Sequence[str] = SENTENCE, kinds: Sequence[str] = ()) -> str:
    """A sentence, each word on the colour of its score."""
    step = WIDTH / len(names)
    parts = []
    for place, name in enumerate(names):
        left = place * step
        if scores:
            kind = kinds[place] if kinds else "f"
            parts.append(box(left + 2, y - 16, step - 4, 23, kind, 0.7 * scores[place], 3))
        parts.append(text(left + step / 2, y, name))
    return "".join(parts)


def centres(names: Sequence[str] = SENTENCE) -> list[float]:
    """The middle of each word."""
    step = WIDTH / len(names)
    return [step * (place + 0.5) for place in range(len(names))]


def grid(x: float, y: float, side: float, rows: Sequence[Places], kind: str = "f") -> str:
    """A map of weights: a row for each token that looks, a column for each that is looked at."""
    frame = box(x, y, side * len(rows[0]), side * len(rows), "n")
    cells = [
        box(x + column * side, y + place * side, side, side, kind, share)
        for place, row in enumerate(rows)
        for column, share in enumerate(row)
        if share
    ]
    return "".join(cells) + frame


def bars(values: Sequence[tuple[str, float, str]], left: float = 92, most: float = 120) -> str:
    """Named bars, each in its colour."""
    parts = []
    for place, (name, value, kind) in enumerate(values):
        top = 18 + place * 32
        parts += [text(left - 8, top + 12, name, "e"), box(left, top, max(most * value, 1), 16, kind)]
        parts.append(text(left + max(most * value, 1) + 6, top + 12, f"{value:.0%}", "q"))
    return "".join(parts)


def steep(mark: float, kind: str) -> str:
    """The probability over its log-odds, with one place marked."""

    def at(odds: float) -> tuple[float, float]:
        return 130 + 20 * odds, 92 - 76 / (1 + exp(-odds))

    x, y = at(mark)
    points = [at(step / 4) for step in range(-22, 23)]
    return curve(points, "k") + f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" class="{kind}"/>'


def layers(shares: Sequence[Sequence[tuple[int, int, float]]], marked: Places = ()) -> str:
    """Four tokens in three layers, and the attention between them."""
    across, rows = [40, 100, 160, 220], [14, 54, 94]
    parts = [
        line(across[down], rows[place + 1] - 6, across[up], rows[place] + 6, share)
        for place, links in enumerate(shares)
        for up, down, share in links
    ]
    parts += [f'<circle cx="{x}" cy="{y}" r="5" class="g"/>' for y in rows for x in across]
    parts += [
        f'<circle cx="{across[place]}" cy="94" r="9" class="f" opacity="{share:g}"/>'
        for place, share in enumerate(marked)
    ]
    return "".join(parts)


def lines_from(source: int, shares: Places, kind: str = "l") -> str:
    """A sentence above itself, and where one word looks."""
    at = centres()
    links = [line(at[source], 30, x, 82, share, kind, 3) for x, share in zip(at, shares, strict=True)]
    return words(24) + "".join(links) + words(98)


def without(place: int) -> str:
    """The sentence with one word struck out, above the answer that falls."""
    at = centres()[place]
    return words(22) + line(at - 18, 18, at + 18, 18, 1, "r", 3)


def crossed(x: float) -> str:
    """A word that was taken away."""
    return line(x - 18, 18, x + 18, 18, 1, "r", 3)


# ---- the pictures, by the name of their entry


LINKS = (((0, 0, 0.9), (0, 1, 0.3), (1, 1, 0.5), (2, 3, 0.5)), ((0, 0, 0.4), (1, 2, 0.9), (0, 1, 0.6), (3, 3, 0.5)))
DIAGONAL = tuple(tuple(0.9 if row == column else 0.1 for column in range(4)) for row in range(4))
BEFORE = tuple(tuple(0.9 if column == row - 1 else 0.08 for column in range(4)) for row in range(4))
FIRST = tuple((0.9, 0.08, 0.08, 0.08) for _ in range(4))
EVEN = tuple((0.35,) * 4 for _ in range(4))
LOWER = tuple(tuple(0.7 / (row + 1) if column <= row else 0 for column in range(4)) for row in range(4))


def heads(maps: Sequence[Sequence[Places]], names: Sequence[str]) -> str:
    """Maps side by side, each with a name."""
    step = WIDTH / len(maps)
    return "".join(
        grid(step * place + (step - 48) / 2, 18, 12, rows) + text(step * (place + 0.5), 86, name, "m q")
        for place, (rows, name) in enumerate(zip(maps, names, strict=True))
    )


PICTURES: dict[str, Callable[[], str]] = {
    "token": lambda: (
        words(50, (0.3, 0.3, 0.3, 0.3), ("un", "##believ", "##able", "!"))
        + text(130, 90, "three tokens, one word; and a sign", "m q")
    ),
    "special-token": lambda: (
        words(50, (0.8, 0, 0, 0, 0.8), ("[CLS]", "the", "key", "is", "[SEP]"), ("g",) * 5)
        + text(130, 90, "the model added the grey ones", "m q")
    ),
    "layer": lambda: "".join(
        box(60, 78 - 30 * place, 140, 20, "f", 0.25 + 0.2 * place, 3) + text(130, 93 - 30 * place, f"layer {place}")
        for place in range(3)
    ),
    "head": lambda: heads((BEFORE, FIRST, DIAGONAL), ("head 0", "head 1", "head 2")),
    "attention-weight": lambda: lines_from(4, (0.1, 0.9, 0.2, 0.1, 0.3)),
    "query-and-key": lambda: (
        grid(92, 30, 18, ((0.1, 0.7, 0.1, 0.1), (0.2,) * 4, (0.9, 0.1, 0.2, 0.4), (0.3,) * 4))
        + box(92, 66, 72, 18, "n")
        + text(84, 80, "query", "e")
        + text(128, 22, "keys")
    ),
    "causal": lambda: grid(94, 16, 18, LOWER) + text(130, 106, "nothing to the right is seen", "m q"),
    "stack": lambda: (
        box(20, 30, 80, 46, "f", 0.3, 3)
        + text(60, 58, "encoder")
        + box(160, 30, 80, 46, "f", 0.5, 3)
        + text(200, 58, "decoder")
        + arrow(160, 88, 100, 88, "l")
        + text(130, 106, "cross", "m q")
    ),
    "task": lambda: (
        words(30, (0.2,) * 5)
        + arrow(130, 44, 130, 66)
        + text(130, 88, "label · masked word · next word · vector", "m q")
    ),
    "read-out": lambda: (
        words(34, (0.8, 0, 0, 0, 0), ("[CLS]", "the", "key", "is", "[SEP]"))
        + arrow(26, 46, 26, 78, "l")
        + text(40, 84, "the answer is read here", "q")
    ),
    "prediction": lambda: bars((("singular", 0.88, "f"), ("plural", 0.12, "g"))),
    "target": lambda: (
        bars((("singular", 0.88, "g"), ("plural", 0.12, "f")))
        + text(130, 96, "explain the second label instead", "m q")
    ),
    "contrast": lambda: (
        bars((("positive", 0.7, "f"), ("negative", 0.2, "o"))) + text(130, 96, "why this and not that?", "m q")
    ),
    "log-odds": lambda: steep(0, "f") + text(140, 106, "log-odds →", "m q") + text(18, 60, "p", "q"),
    "saturated": lambda: steep(4.5, "o") + text(140, 106, "here nothing moves any more", "m q"),
    "level": lambda: (
        box(8, 20, 244, 70, "n")
        + box(16, 34, 124, 40, "f", 0.2, 3)
        + box(24, 42, 52, 24, "f", 0.4, 3)
        + box(80, 42, 52, 24, "f", 0.4, 3)
        + text(50, 59, "play")
        + text(106, 59, "##ing")
        + text(196, 59, "a game .")
        + text(130, 106, "token in word in sentence", "m q")
    ),
    "sink": lambda: "".join(line(x, 30, 26, 82, 0.8, "l", 3) for x in centres()) + words(24) + words(98),
    "null-attention": lambda: (
        bars((("sink", 0.7, "g"), ("the rest", 0.3, "f"))) + text(130, 96, "only the rest is measured", "m q")
    ),
    "chance": lambda: heads((EVEN, BEFORE), ("by chance", "a head")),
    "raw": lambda: (
        grid(94, 16, 18, ((0.2, 0.7, 0.1, 0.1), (0.3,) * 4, (0.8, 0.1, 0.2, 0.4), (0.2,) * 4))
        + text(130, 106, "one layer, as it is", "m q")
    ),
    "rollout": lambda: layers(LINKS, (0.7, 0.4, 0.2, 0)),
    "flow": lambda: (
        layers((((0, 0, 0.3), (0, 1, 0.3), (1, 1, 0.2)), ((0, 0, 1), (1, 2, 1), (0, 1, 0.3))))
        + line(8, 34, 130, 34, 1, "r", 2)
        + text(150, 40, "narrowest place", "q")
    ),
    "layerwise-tracing": lambda: layers(LINKS, (0.6, 0.6, 0.3, 0)) + arrow(246, 14, 246, 92, "l"),
    "effective-attention": lambda: bars((("effective", 0.6, "f"), ("no effect", 0.4, "g"))),
    "value-weighted": lambda: (
        bars((("weight", 0.8, "g"), ("what moves", 0.25, "f")))
        + text(130, 96, "a large weight on a short vector", "m q")
    ),
    "gradient": lambda: (
        curve([(20 + 4 * step, 92 - 0.02 * step**2) for step in range(56)], "k")
        + line(120, 90, 230, 20, 1, "l", 2)
        + text(70, 40, "how steep is it here?", "q")
    ),
    "gradient-x-input": lambda: (
        words(50, (0.1, 0.9, 0.2, 0.1, 0.6), kinds=("f", "f", "f", "f", "o"))
        + text(130, 90, "steepness × the token’s vector", "m q")
    ),
    "gradient-rollout": lambda: layers(LINKS, (0.9, 0.1, 0.3, 0)) + text(242, 60, "∂", "b m"),
    "integrated-gradients": lambda: (
        curve([(20 + 4 * step, 92 - 76 / (1 + exp(-(step - 28) / 6))) for step in range(56)])
        + text(30, 106, "empty", "q")
        + text(226, 106, "text", "m q")
    ),
    "blank-out": lambda: (
        without(1) + arrow(130, 32, 130, 54) + bars_below((("before", 0.9, "g"), ("without", 0.3, "f")))
    ),
    "replacement": lambda: (
        words(30, (0, 0.9, 0, 0, 0), ("the", "[UNK]", "to", "the", "box"), ("g",) * 5)
        + text(130, 70, "unk · mask · pad · delete · zero", "m q")
    ),
    "signed": lambda: (
        line(130, 14, 130, 98, 1, "k", 1)
        + box(130, 22, 80, 18, "f")
        + box(130, 46, 30, 18, "f")
        + box(76, 70, 54, 18, "o")
        + text(170, 106, "for", "m q")
        + text(96, 106, "against", "m q")
    ),
    "phrase": lambda: (
        words(34, (0.9, 0.9, 0.9, 0.1), ("anything", "but", "fun", "."))
        + line(4, 48, 191, 48, 1, "l", 2)
        + text(130, 72, "together they turn the answer", "m q")
    ),
    "agreement": lambda: (
        "".join(
            f'<circle cx="{60 + 35 * place}" cy="{92 - 18 * rank}" r="5" class="f"/>'
            for place, rank in enumerate((0, 1, 2, 4, 3))
        )
        + line(50, 98, 220, 98, 1, "k", 1)
        + line(50, 10, 50, 98, 1, "k", 1)
    ),
    "faithfulness": lambda: (
        words(24, (0.1, 0.9, 0.3, 0.1, 0.1))
        + crossed(centres()[1])
        + arrow(130, 36, 130, 56)
        + text(130, 80, "does the answer change with it?", "m q")
    ),
    "trust": lambda: bars((("a method", 0.6, "f"), ("position", 0.35, "g"), ("random", 0.05, "g"))),
    "baseline": lambda: (
        words(50, (0.9, 0.7, 0.5, 0.3, 0.1), kinds=("g",) * 5)
        + text(130, 90, "the position alone, no model asked", "m q")
    ),
    "comprehensiveness": lambda: without(1) + bars_below((("all words", 0.9, "g"), ("best gone", 0.2, "f"))),
    "sufficiency": lambda: (
        words(22, (0, 0.8, 0, 0, 0), ("", "key", "", "", ""))
        + bars_below((("all words", 0.9, "g"), ("best alone", 0.8, "f")))
    ),
    "interval": lambda: (
        line(60, 56, 210, 56, 1, "k", 2)
        + line(60, 46, 60, 66, 1, "k", 2)
        + line(210, 46, 210, 66, 1, "k", 2)
        + '<circle cx="130" cy="56" r="6" class="f"/>'
        + text(60, 88, "low", "m q")
        + text(210, 88, "high", "m q")
    ),
    "role": lambda: heads((BEFORE, FIRST, EVEN), ("previous token", "rests", "broad")),
    "part-of-speech": lambda: lines_from(0, (0.05, 0.9, 0.05, 0.05, 0.8)),
    "dependency-alignment": lambda: (
        words(98)
        + '<path d="M26,80 C26,50 78,50 78,80" class="c l" stroke-width="2"/>'
        + '<path d="M182,80 C182,50 234,50 234,80" class="c l" stroke-width="2"/>'
        + text(52, 44, "det", "m q")
        + text(208, 44, "det", "m q")
    ),
    "distance": lambda: (
        words(30) + line(centres()[1], 50, centres()[4], 50, 1, "l", 2) + text(156, 72, "three tokens apart", "m q")
    ),
    "entropy": lambda: heads((DIAGONAL, EVEN), ("low", "high")),
    "variability": lambda: heads((BEFORE, BEFORE, BEFORE, FIRST), ("low", "low", "high", "high")),
    "patterns": lambda: heads((BEFORE, DIAGONAL, FIRST), ("previous", "same", "first")),
    "induction": lambda: (
        words(60, (0, 0, 0.9, 0, 0.4), ("old", "key", "fits", "old", "key"))
        + '<path d="M234,40 C234,10 130,10 130,40" class="c l" stroke-width="2"/>'
        + text(130, 96, "what came after it last time", "m q")
    ),
    "exemplar": lambda: lines_from(4, (0.03, 0.97, 0.03, 0.03, 0.03)),
    "precision": lambda: (
        "".join(box(30 + 22 * place, 40, 20, 20, "f", place / 9) for place in range(10))
        + text(130, 88, "a weight in one byte: 256 steps", "m q")
    ),
    "engine": lambda: (
        "".join(box(30 + 74 * place, 30, 52, 40, "f", 0.4, 3) for place in range(3))
        + text(130, 96, "the same numbers from all of them", "m q")
    ),
    "verified": lambda: (
        grid(40, 22, 14, DIAGONAL)
        + text(130, 56, "=")
        + grid(164, 22, 14, DIAGONAL)
        + text(130, 102, "watched and unwatched run", "m q")
    ),
    "claim": lambda: (
        bars((("paper", 0.7, "g"), ("here", 0.62, "f"))) + text(130, 96, "rule fixed before: holds", "m q")
    ),
}


def bars_below(values: Sequence[tuple[str, float, str]]) -> str:
    """Two bars under a sentence."""
    return f'<g transform="translate(0,32)">{bars(values)}</g>'


def main() -> None:
    """Write every picture, and nothing else into their folder."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, make in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(drawn(make()), encoding="utf-8")


if __name__ == "__main__":
    main()
