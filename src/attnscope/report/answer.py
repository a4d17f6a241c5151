"""The answer of one text: what the model predicted, the tokens that carried it, and how far that can be trusted."""

from html import escape

import torch
from jaxtyping import Float
from torch import Tensor

from ..attribution import Comparison
from ..evaluation import Trust
from ..explaining import Explanation, carried_words, phrases_in_words
from ..numerals import counted, percent
from ..record import AttentionRecord, VectorRecord
from ..record.vectors import carry
from ..views.scores_methods import trust_of
from ..views.sides import printable, token_texts

OUTCOMES_SHOWN = 8
UNMEASURED = (
    "How far each method can be trusted on this model has not been measured: attnscope trust MODEL CORPUS --out FOLDER"
    " measures it, and --trust FOLDER shows it here."
)


def answer_html(explanation: Explanation, trust: Trust | None) -> str:
    """The text, its prediction, the words that carried it by the method to be trusted most, and what to make of it."""
    record = explanation.record
    method, why = most_trusted(explanation.comparison, trust)
    carried = carried_words(explanation.comparison, method, explanation.by, record)
    together = f" {phrases_in_words(explanation.phrases)}" if explanation.phrases else ""
    return (
        f"{_quoted(text_of(record))}{_prediction(record)}{_explain(record)}"
        f"<p>{escape(carried)}{escape(together)} {escape(why)}</p>"
        f"<p class=quiet>{escape(resting_words(record))}</p>"
    )


def _quoted(text: str) -> str:
    """The text; of a long one the beginning and the end, so that the answer stays in sight, and the whole folded."""
    shown = beginning_and_end(text)
    quote = f"<blockquote dir=auto>{escape(shown)}</blockquote>"
    if shown == text:
        return quote
    return f"{quote}<details class=whole><summary>The whole text</summary><p dir=auto>{escape(text)}</p></details>"


def beginning_and_end(text: str, beginning: int = 240, end: int = 120) -> str:
    """A text of at most so many letters, or so many of its beginning and of its end, in whole words where it has some.

    >>> beginning_and_end("one two three four five six", 9, 4), beginning_and_end("short", 9, 4)
    ('one two … six', 'short')
    """
    if len(text) <= 2 * (beginning + end):
        return text
    before, after = text[:beginning], text[-end:]
    return f"{before.rsplit(' ', 1)[0].rstrip()} … {after.split(' ', 1)[-1].lstrip()}"


def most_trusted(comparison: Comparison, trust: Trust | None) -> tuple[str, str]:
    """The method to ask first, and why it is that one; one that found nothing but noise is asked to say so."""
    noisy = next((scores.method for scores in comparison.scores if scores.noise), None)
    if noisy is not None:
        held = f"Methods are therefore held against {comparison.reference}." if len(comparison.scores) > 1 else ""
        return noisy, held
    measured, _ = trust_of(trust)
    asked = {name: figures["value"] for name, figures in measured.items() if name in comparison.methods}
    best = max(asked, key=lambda name: asked[name], default=None)
    if comparison.reference == "blank_out":
        why = "Blank-out asks the model itself what it does without a token."
        closest = "" if best is None else f"Of the others {best} comes closest on this model"
        return "blank_out", f"{why} {UNMEASURED if best is None else f'{closest} (rank agreement {asked[best]:.2f}).'}"
    if best is None:
        return comparison.reference, UNMEASURED
    return best, f"Of the methods here it follows this model best (rank agreement {asked[best]:.2f})."


def _prediction(record: AttentionRecord) -> str:
    """The outcomes as bars, or in words why there are none."""
    if not record.prediction:
        return (
            "<p class=quiet>No prediction: this model has no head that answers here, or the record was made from"
            " weights alone. What follows shows where its read-out looks.</p>"
        )
    label, probability = record.prediction[0]
    prompt = record.card.get("prompt_tokens")
    answer = record.card.get("answer")
    said = f"<p class=prediction>Answer <b dir=auto>{escape(printable(str(answer)))}</b></p>" if answer else ""
    behind = f"Behind the answer, which begins after {counted(prompt, 'token')}, it predicts" if prompt else "Predicts"
    if len(record.prediction) == 1:
        return f"<p class=prediction>Output <b>{escape(printable(label))}</b> {probability:.4f}</p>"
    rows = "".join(
        f"<tr><th scope=row dir=auto>{escape(outcome_words(name))}</th>"
        f"<td><progress max=1 value={share:.4f}></progress></td><td>{escape(percent(share))}</td></tr>"
        for name, share in record.prediction[:OUTCOMES_SHOWN]
    )
    return (
        f"{said}<p class=prediction>{behind} <b dir=auto>{escape(outcome_words(label))}</b>"
        f" with {escape(percent(probability))}</p>"
        f"<table class=outcomes><caption class=hidden>Probability of each outcome</caption>{rows}</table>"
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


def _explain(record: AttentionRecord) -> str:
    """Which outcome the methods were asked about, where it is not the predicted one."""
    if record.target is None or record.target.index is None or not record.prediction:
        return ""
    outcome, against, chances = record.target.outcome, record.target.against, dict(record.prediction)
    if outcome == record.prediction[0][0] and against is None:
        return ""
    chance = f" ({percent(chances[outcome])})" if outcome in chances else ""
    rival = "" if against is None else f" and not <b dir=auto>{escape(outcome_words(against))}</b>"
    asked = f"<b dir=auto>{escape(outcome_words(outcome))}</b>{escape(chance)}{rival}"
    return f"<p class=prediction>Explained: why {asked}.</p>"


def resting_words(record: AttentionRecord) -> str:
    """Where the answer is read, and how much attention goes to tokens that often serve as a sink."""
    where = f"The answer is read at {readout_words(record)}."
    asking = [position for position, masked in enumerate(record.masked_queries) if not masked]
    if not asking:
        return f"{where} Every query is masked: no token attends to anything."
    received = _received(record, asking)
    special = [position for position, quiet in enumerate(record.key_special) if quiet]
    if special:
        everywhere = float(received[special].sum())
        return (
            f"{where} Special tokens take {percent(everywhere)} of all attention: heads with nothing to do often rest"
            " there."
        )
    if record.causal:
        first = float(received[0])
        return (
            f"{where} The first token takes {percent(first)} of all attention: heads of causal models with nothing to"
            " do often rest there."
        )
    return f"{where} No token is marked as special; where heads rest when they have nothing to do is not told apart."


def _received(record: AttentionRecord, asking: list[int]) -> Float[Tensor, " key"]:
    """What each key gets of all attention of some queries, over all layers and heads."""
    if not isinstance(record, VectorRecord):
        return record.weights[:, :, asking].mean((0, 1, 2))
    layers, heads, queries, _ = record.shape
    row = torch.zeros(queries)
    row[asking] = 1 / len(asking)
    carried = [carry(record.layer(layer), row.expand(1, heads, -1))[0].mean(0) for layer in range(layers)]
    return torch.stack(carried).mean(0)


# What a record is and where it is read, in words.


def text_of(record: AttentionRecord) -> str:
    """The text the model read; where the record does not hold it, its tokens."""
    text = record.text if isinstance(record.text, str) else " ".join(record.text or token_texts(record.key_tokens))
    return "\n".join(printable(line) for line in text.split("\n"))


def outcome_words(label: str) -> str:
    """An outcome as it is: a label, or a token with its marks, so that the piece of a word is told from the word.

    >>> outcome_words(" Paris"), outcome_words("##d"), outcome_words(chr(10))
    ('Paris', '##d', '⏎')
    """
    return printable(label.replace("\n", "⏎")).strip() or "␣"


def readout_words(record: AttentionRecord) -> str:
    """Where the model reads its answer, in words."""
    position = int(record.readout.argmax())
    share = float(record.readout[position])
    if share > 0.999:
        return f"“{token_texts(record.query_tokens)[position]}” (position {position})"
    if share < 1.001 / len(record.readout):
        return f"the mean over all {len(record.readout)} tokens"
    return f"a weighted mean of tokens (largest: “{token_texts(record.query_tokens)[position]}” with {share:.2f})"
