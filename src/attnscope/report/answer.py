"""The answer of one text: what the model predicted, the tokens it looked at, and how far that can be trusted."""

from html import escape

from ..attribution import raw
from ..record import AttentionRecord
from .summary import percent, readout_words, text_of
from .tokens import joined, legend, shown, token_cells

OUTCOMES_SHOWN = 8
WORDS_NAMED = 3
TRUST = (
    "How far to trust this: raw attention of one layer shows where the read-out looks there, not why the model answers"
    " as it does, for the layers below have already mixed the tokens."
)


def answer_html(record: AttentionRecord) -> str:
    """Text, prediction, tokens on the colour of their raw attention, and what to make of it."""
    scores = raw(record).scores.tolist()
    largest = max(scores)
    joins = joined(record.key_tokens, record.key_word_ids, record.key_special)
    tokens = token_cells("span", record.key_tokens, joins, record.key_special, scores, largest)
    return (
        f"<section class=answer><blockquote dir=auto>{escape(text_of(record))}</blockquote>"
        f"{_prediction(record)}{_output(record)}"
        f"<h3>Where the model looks</h3><p class=tokens dir=auto>{tokens}</p>"
        f"{legend(largest, f'raw attention of all {len(scores)} tokens')}"
        f"<p>{escape(_from_where(record))} {escape(_most_attended(record, scores))}</p>"
        f"<p>{escape(_resting_places(record, scores))}</p><p class=trust>{TRUST}</p></section>"
    )


def _prediction(record: AttentionRecord) -> str:
    """The outcomes as bars, or in words why there are none."""
    if not record.prediction:
        return (
            "<p class=quiet>No prediction: this model has no head that answers here, or the record was made from"
            " weights alone. What follows shows where its read-out looks.</p>"
        )
    label, probability = record.prediction[0]
    if len(record.prediction) == 1:
        return f"<p class=prediction>Output <b>{escape(label)}</b> {probability:.4f}</p>"
    rows = "".join(
        f"<tr><th scope=row dir=auto>{escape(name.replace(chr(10), '⏎'))}</th>"
        f'<td class=track><i style="width:{100 * share:.2f}%"></i></td><td>{escape(percent(share))}</td></tr>'
        for name, share in record.prediction[:OUTCOMES_SHOWN]
    )
    return (
        f"<p class=prediction>Predicts <b dir=auto>{escape(shown([label])[0])}</b>"
        f" with {escape(percent(probability))}</p>"
        f"<table class=bars><caption class=hidden>Probability of each outcome</caption>{rows}</table>"
        f"{_not_shown(record)}"
    )


def _not_shown(record: AttentionRecord) -> str:
    """What the bars leave out, with its mass."""
    more = len(record.prediction) - OUTCOMES_SHOWN
    rest = 1 - sum(share for _, share in record.prediction)
    if more > 0:
        best = percent(record.prediction[OUTCOMES_SHOWN][1])
        return f"<p class=quiet>{more} more outcomes are not shown; the likeliest of them has {escape(best)}.</p>"
    if rest > 0.0005 and not str(record.card.get("class", "")).endswith("Classification"):
        return f"<p class=quiet>All other tokens of the vocabulary together have {escape(percent(rest))}.</p>"
    return ""


def _output(record: AttentionRecord) -> str:
    """For cross-attention, the text that attends: the queries are not the tokens that are coloured."""
    if record.stack != "cross":
        return ""
    joins = joined(record.query_tokens, record.query_word_ids, record.query_special)
    plain = [
        f'<span class="plain{" join" * join}{" special" * quiet}">{escape(text)}</span>'
        for text, join, quiet in zip(shown(record.query_tokens), joins, record.query_special, strict=True)
    ]
    return f"<h3>What it writes, as the decoder reads it</h3><p class=tokens dir=auto>{''.join(plain)}</p>"


def _from_where(record: AttentionRecord) -> str:
    heads = "mean over heads" if record.pooled else f"mean over {len(record.heads)} head{'s' * (len(record.heads) > 1)}"
    return f"Layer {record.layers[-1]}, the last one here, {heads}, seen from {readout_words(record)}."


def _most_attended(record: AttentionRecord, scores: list[float]) -> str:
    """The answer in words, for those who do not see the colours."""
    names = shown(record.key_tokens)
    words = [position for position, special in enumerate(record.key_special) if not special]
    best = sorted(words, key=lambda position: -scores[position])[:WORDS_NAMED]
    return (
        f"Most attended: {', '.join(f'“{names[position]}” {scores[position]:.3f}' for position in best)}."
        if best
        else ""
    )


def _resting_places(record: AttentionRecord, scores: list[float]) -> str:
    """How much attention goes to tokens that often serve as a sink rather than as evidence."""
    special = [position for position, quiet in enumerate(record.key_special) if quiet]
    if special:
        everywhere = float(record.weights[..., special].sum(-1).mean())
        here = sum(scores[position] for position in special)
        return (
            f"Special tokens take {percent(here)} of this attention, and {percent(everywhere)} of all attention in"
            " these layers: heads with nothing to do often rest there."
        )
    if record.causal:
        return (
            f"The first token takes {percent(scores[0])} of this attention: heads of causal models with nothing to do"
            " often rest there."
        )
    return "No token is marked as special; where heads rest when they have nothing to do is not told apart."
