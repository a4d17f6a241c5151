"""The page of a failing classifier: wrong predictions first, the words that pushed them, the accuracy without them."""

from collections.abc import Iterator
from html import escape
from pathlib import Path

from ..evaluation import Mistakes
from ..evaluation.classifier_mistakes import Mistake, SharedWord
from ..numerals import counted, percent
from ..paint import colour, ink
from ..record import TokenScores, readable
from ..views.page import Prose, write_page
from ..views.sides import printable

STYLE = Path(__file__).with_name("report.css")
SHADES = 15
COLUMNS = ("word", "pushes to", "wrong texts", "push (log-odds)", "right, with it", "right, without it")
"""Of the table of words."""
LEGEND = (
    "<p class=quiet>In the texts below, blue words speak for the wrong answer and orange ones against it; the strongest"
    " of each text has the full colour.</p>"
)
NUMBERS_SHOWN = 6
"""How many of its texts a word links to."""


def write_mistakes(path: str | Path, found: Mistakes, title: str | None = None) -> Path:
    """Write what a classifier gets wrong as one offline HTML file, and return its path."""
    items = [Prose(_summary(found)), *(Prose(_mistake(one), "text") for one in found.mistakes)]
    made = f"{called(found.model)} · {counted(found.texts, 'text')} · made by attnscope, works offline"
    intro = f"<p class=quiet>{escape(made)}</p>"
    name = title or f"What {found.model.rpartition('/')[2]} gets wrong"
    return write_page(path, items, name, intro, STYLE.read_text(encoding="utf-8") + shade_rules())


def called(model: str) -> str:
    """A model by its name on the hub, or by the last name of its folder: where that lies is nobody's business.

    >>> called("org/classifier"), called("/home/anna/models/classifier")
    ('org/classifier', 'classifier')
    """
    return model if model.count("/") <= 1 and not model.startswith(("/", ".", "~")) else model.rpartition("/")[2]


def _summary(found: Mistakes) -> str:
    """How right it is, what is taken for what, and the words behind several mistakes."""
    wrong = len(found.mistakes)
    right = f"<p class=prediction>Right on <b>{found.texts - wrong} of {found.texts}</b> ({percent(found.accuracy)})"
    if not wrong:
        return f"{right}: no prediction is wrong.</p>"
    taken = ", ".join(
        f"{count} × “{escape(printable(gold))}” taken for “{escape(printable(label))}”"
        for (gold, label), count in sorted(found.confusion.items(), key=lambda item: -item[1])[:NUMBERS_SHOWN]
    )
    unexplained = sum(one.scores is None for one in found.mistakes)
    later = (
        f"<p class=quiet>{counted(unexplained, 'mistake')} of {wrong}, the least sure, stand here without their words:"
        " time was up. --budget gives more.</p>"
        if unexplained
        else ""
    )
    return f"{right}: {taken}.</p>{later}{_shared_table(found)}{LEGEND}"


def _shared_table(found: Mistakes) -> str:
    """The words that pushed several texts to the same wrong label, with the accuracy when they are taken out."""
    if not found.shared:
        return "<p>No word pushed more than one of these mistakes.</p>"
    rows = "".join(map(_shared_row, found.shared))
    change = (
        f"Without all of these words {percent(found.accuracy_without)} of all texts are right, with them"
        f" {percent(found.accuracy)}."
    )
    return (
        "<h3>Words behind several mistakes</h3>"
        "<p>Taking such a word out of a wrong text makes the wrong label less likely. The strongest stand first.</p>"
        f"<table class=words><thead><tr>{''.join(f'<th scope=col>{name}' for name in COLUMNS)}</thead>"
        f"<tbody>{rows}</tbody></table><p>{escape(change)}</p>"
    )


def _shared_row(word: SharedWord) -> str:
    links = ", ".join(f'<a href="#text-{number}">{number}</a>' for number in word.mistakes[:NUMBERS_SHOWN])
    more = f" and {len(word.mistakes) - NUMBERS_SHOWN} more" if len(word.mistakes) > NUMBERS_SHOWN else ""
    name, label = escape(printable(word.word)), escape(printable(word.predicted))
    right, without = f"{word.right} of {word.texts}", f"{word.right_without} of {word.texts}"
    cells = zip(COLUMNS[1:], (label, f"{links}{more}", f"+{word.push:.2f}", right, without), strict=True)
    # where the columns do not fit, each figure stands beside the name of its column
    figures = "".join(f'<td dir=auto data-name="{column}">{cell}' for column, cell in cells)
    return f"<tr><th scope=row dir=auto>{name}</th>{figures}"


def _mistake(one: Mistake) -> str:
    """One wrong text: what was said and what is right, its words on the colour of what they did, and which pushed."""
    said = (
        f"<p class=prediction id=text-{one.number}>Text {one.number}: predicts"
        f" <b dir=auto>{escape(printable(one.predicted))}</b> with {escape(percent(one.probability))}, right is"
        f" <b dir=auto>{escape(printable(one.gold))}</b></p>"
    )
    if one.scores is None:
        return f"<blockquote dir=auto>{escape(printable(one.text))}</blockquote>{said}"
    return f"<blockquote dir=auto>{painted_words(one.scores)}</blockquote>{said}<p>{escape(_pushed(one))}</p>"


def _pushed(one: Mistake) -> str:
    """Which words pushed it, in a sentence."""
    if not one.pushers:
        return "No word speaks for the mistake: each that is taken away makes the wrong label likelier."
    named = ", ".join(f"“{word}” {push:+.2f}" for word, push in one.pushers)
    leads = f"in log-odds; the wrong answer leads by {one.margin:.2f}"
    if not one.phrases:
        return f"Pushed by {named} ({leads})."
    together = "; ".join(f"“{phrase}” {phrase.change:+.2f}" for phrase in one.phrases)
    return f"Pushed by words together: {together} ({leads}), where no word alone turns it."


def painted_words(scores: TokenScores) -> str:
    """The words of a text in reading order, each on its colour: blue speaks for the answer, orange against it."""
    values = scores.scores.tolist()
    largest = max(map(abs, values), default=0.0)
    return " ".join(
        _painted(word.strip(), value, largest)
        for word, value, special in zip(readable(scores.tokens), values, scores.special, strict=True)
        if not special
    )


def _painted(word: str, value: float, largest: float) -> str:
    side = "for" if value >= 0 else "against"
    shade = round(SHADES * abs(value) / largest) if largest else 0
    return f'<span class="painted {side}{shade}" title="{value:+.3f}">{escape(printable(word))}</span>'


def shade_rules() -> str:
    """The colours of the words as classes: a page allows no style that stands in its text."""
    return "".join(_shades(dark=False)) + f"@media (prefers-color-scheme: dark){{{''.join(_shades(dark=True))}}}"


def _shades(*, dark: bool) -> Iterator[str]:
    for sign, side in ((1.0, "for"), (-1.0, "against")):
        for shade in range(SHADES + 1):
            ground = colour(float(sign * shade), float(SHADES), dark=dark)
            yield f".{side}{shade}{{background:{ground};color:{ink(ground)}}}"
