"""The scores view: the text on the colour of each method's scores, methods as rows, and how far they agree."""

from collections.abc import Sequence
from typing import Any

from ..attribution import Comparison
from ..attribution.comparing import REFERENCES
from ..errors import BadInput
from ..record import AttentionRecord, readable
from ..record.schema import checked
from ..record.words import Level, units
from ..statistics.sinks import DOMINANT
from .choices import pick_one, position
from .scores_figure import scores_figure
from .scores_methods import Method, Scores, level_of, methods_of, trust_of
from .scores_rows import ScoresScene, with_maps
from .sides import side_of, sides_of, title_of
from .view import View

ALIGNED_TOKENS = 40
"""Texts up to here open with methods as rows and tokens as columns; longer ones as running text."""
LAYOUTS = ("aligned", "text")
LONG = 1500
"""Tokens beyond which the page is a document, on a square-root scale: a few high scores would leave it blank."""


@checked
def scores(
    scores: Scores,
    *,
    record: AttentionRecord | None = None,
    trust: Any = None,
    layer: int | None = None,
    query: int | None = None,
    reference: str | None = None,
    layout: str | None = None,
    size_budget: int | None = None,
) -> View:
    """What methods say of each token: the text once for each, on the colour of its scores.

    Every row has its own scale, from 0 to its largest score, because methods count in units of their own; those that
    are shares of one whole (raw, rollout, ...) can be put on a shared one. At the right edge stands the rank
    agreement with one of the methods, over the tokens that are shown. A text of more than 1,500 tokens is a document
    on the colour of one method, beside a strip of the whole text for each.

    Args:
        scores: The scores of one method or several, or a `Comparison`; all of the same tokens.
        record: What was scored, or whose words or sentences were; it tells sinks, the sentences of a pair, and the
            tokens that attend.
        trust: How far each method can be trusted on this model: a mapping of methods to {"value", "low", "high"}, or
            what `attnscope.trust` returns.
        layer: The layer to open with, by its number or from the end; by default what each method says by itself.
        query: The position to open with in place of the read-out.
        reference: The method that the others are held against: by default blank-out, else gradients, else the first.
        layout: "aligned" (tokens as columns) or "text" (running text); by default the one that fits.
        size_budget: Bytes that the saved page may take. Maps for other queries travel while they fit (without a budget
            up to 16 MB), those of flow for short texts only; what is left out is said.
    """
    methods = with_maps(methods_of(scores, record), size_budget)
    level = None if record is None else level_of(methods[0].scores, record)
    sides = _sides(methods, record, level)
    of_record = record is not None and level == "token"  # words and sentences have scores of no single layer
    layers = (
        list(record.layers)
        if record is not None and of_record
        else list(range(max(one.scores.size[0] for one in methods)))
    )
    scene = ScoresScene(methods, sides, layers)
    figures, sentence = trust_of(trust)
    payload = {
        **sides,
        "layers": layers,
        "methods": scene.describe(figures),
        "readout": None if methods[0].readout is None else [round(mass, 6) for mass in methods[0].readout.tolist()],
        "trust": sentence,
        "left_out": dict(scores.left_out) if isinstance(scores, Comparison) else {},
        "breaks": [place for place, text in enumerate(readable(methods[0].scores.tokens)) if "⏎" in text],
    }
    count = len(sides["keys"]["texts"])
    names = [method.name for method in methods]
    state = {
        "layer": None if layer is None else pick_one(layer, layers or [0], "layer"),
        "queries": [] if query is None else [position(query, len(sides["queries"]["texts"]), "query")],
        "keys": [],
        "words": False,
        "special": True,
        "threshold": 0.0,
        "root": count > LONG,
        "scale": "each",
        "layout": _one_of(layout, LAYOUTS, "layout") or ("aligned" if count <= ALIGNED_TOKENS else "text"),
        "reference": _one_of(reference, names, "reference") or _reference(methods),
        "methods": None,
    }
    return View(
        "scores",
        payload,
        state,
        scene.blobs(),
        table=scene.to_frame,
        draw=lambda selected, width: scores_figure(scene.rows(selected), selected, width),
        choices={
            "layer": (None, *layers),
            "queries": range(len(sides["queries"]["texts"])),
            "keys": range(count),
            "scale": ("each", "shared"),
            "layout": LAYOUTS,
            "reference": names,
            "methods": (None, *names),
        },
        title=title_of("scores", sides["keys"], record),
    )


def _sides(methods: Sequence[Method], record: AttentionRecord | None, level: Level | None) -> dict[str, Any]:
    """The tokens that attend and those that are scored."""
    scored = methods[0].scores
    if record is not None and level == "token":
        sides = sides_of(record)
        if len(scored.tokens) > LONG:
            # of thousands of tokens none but a resting place has half of all: it would leave the others blank
            resting = {
                place for place, special in enumerate(scored.special) if not special and _rests_on(methods, place)
            }
            sides["keys"]["sinks"] = sorted(resting.union(sides["keys"]["sinks"]))
        return sides
    sinks = [place for place, special in enumerate(scored.special) if not special and _rests_on(methods, place)]
    keys = {**side_of(scored.tokens, scored.word_ids, scored.special, None), "sinks": sinks, "masked": []}
    if record is not None and level is not None:
        keys |= _quiet_and_pair(record, level)
    count = max(method.scores.size[1] for method in methods)
    prefix = next((method.scores.prefix for method in methods if method.scores.prefix is not None), None)
    if prefix is not None and len(prefix.tokens) == count:  # scores of a source know the tokens of the decoder
        queries = side_of(prefix.tokens, prefix.word_ids, prefix.special, None)
        return {"queries": {**queries, "sinks": [], "masked": []}, "keys": keys, "stack": "cross", "causal": False}
    if count in (0, len(scored.tokens)):
        return {"queries": keys, "keys": keys, "stack": "encoder", "causal": False}
    names = [str(position) for position in range(count)]
    queries = side_of(names, range(count), [False] * count, None)
    return {"queries": {**queries, "sinks": [], "masked": []}, "keys": keys, "stack": "cross", "causal": False}


def _quiet_and_pair(record: AttentionRecord, level: Level) -> dict[str, Any]:
    """The words or sentences of a record that are sinks, and the text of a pair that each belongs to.

    A word is a sink as soon as one of its tokens is; a sentence only if it is nothing else.
    """
    groups, _ = units(record.key_tokens, record.key_special, record.key_word_ids, level)
    tokens = sides_of(record)["keys"]
    sinks, pair = set(tokens["sinks"]), tokens["sentences"]
    rests = sinks.issuperset if level == "sentence" else lambda group: not sinks.isdisjoint(group)
    return {
        "sinks": [place for place, group in enumerate(groups) if rests(group)],
        "sentences": None if pair is None else [pair[group[0]] for group in groups],
    }


def _rests_on(methods: Sequence[Method], place: int) -> bool:
    """Whether a method rests on a token as a head does: where there is no record, this tells a sink."""
    return any(float(method.own[place]) > DOMINANT for method in methods if method.is_shares)


def _reference(methods: Sequence[Method]) -> str:
    names = [method.name for method in methods if not method.scores.noise] or [method.name for method in methods]
    return next((name for name in REFERENCES if name in names), names[0])


def _one_of(name: str | None, names: Sequence[str], what: str) -> str | None:
    if name is not None and name not in names:
        raise BadInput(f"There is no {what} {name!r}: choose one of {', '.join(names)}.")
    return name
