"""Small static HTML for notebooks: tokens on the colour of their number, no script, every token escaped."""

from collections.abc import Sequence
from html import escape

from jaxtyping import Float
from torch import Tensor

from ..paint import colour, ink
from .words import readable

TOKEN_STYLE = "padding:2px 3px;margin:1px;border-radius:3px;white-space:pre;display:inline-block"
MOST_TOKENS, MOST_LAYERS = 200, 12
"""What a notebook cell shows: a report shows more."""
LABEL_STYLE = "font:12px system-ui;color:#777;width:5.5em;display:inline-block"


def token_spans(tokens: Sequence[str], special: Sequence[bool], scores: Sequence[float]) -> str:
    """The tokens in reading order, darker where the score is larger; the exact score is one hover away."""
    largest = max((abs(score) for score in scores), default=0.0)
    spans = []
    for text, quiet, score in zip(readable(tokens), special, scores, strict=True):
        background = colour(abs(score), largest)
        border = ";border:1px solid #bbb;border-radius:9px" if quiet else ""
        style = f"{TOKEN_STYLE};background:{background};color:{ink(background)}{border}"
        spans.append(f'<span style="{style}" title="{escape(text.strip())} {score:.4f}">{escape(text)}</span>')
    return "".join(spans)


def record_html(
    title: str,
    key_tokens: Sequence[str],
    key_special: Sequence[bool],
    weights: Float[Tensor, "layer head query key"],
    readout: Float[Tensor, " query"],
    layers: Sequence[int],
) -> str:
    """One row per layer: where the read-out attends, heads averaged; what is cut off is said."""
    shown = slice(MOST_TOKENS)
    rows = (readout @ weights.mean(1))[-MOST_LAYERS:, shown]
    layers, key_tokens, key_special = layers[-MOST_LAYERS:], key_tokens[shown], key_special[shown]
    lines = [
        f'<div><span style="{LABEL_STYLE}">layer {layer}</span>{token_spans(key_tokens, key_special, row)}</div>'
        for layer, row in zip(layers, rows.tolist(), strict=True)
    ]
    caption = "Raw attention from the read-out, mean over heads; ink is linear from 0 to the largest weight of a row."
    if weights.shape[0] > MOST_LAYERS or weights.shape[-1] > MOST_TOKENS:
        caption += f" Shown are the last {len(layers)} of {weights.shape[0]} layers and the first {len(key_tokens)} of"
        caption += f" {weights.shape[-1]} tokens."
    return _figure(title, "".join(lines), caption)


def scores_html(
    title: str, tokens: Sequence[str], special: Sequence[bool], scores: Sequence[float], caption: str
) -> str:
    """One line of tokens on the colour of their scores."""
    return _figure(title, f"<div>{token_spans(tokens, special, scores)}</div>", caption)


def _figure(title: str, body: str, caption: str) -> str:
    return (
        '<div style="font:14px system-ui;overflow-x:auto;line-height:1.7">'
        f'<div style="font-weight:600">{escape(title)}</div>{body}'
        f'<div style="font-size:12px;color:#777">{escape(caption)}</div></div>'
    )
