"""What a record is and where it is read, in words."""

from ..record import AttentionRecord
from ..views.sides import printable, shown


def text_of(record: AttentionRecord) -> str:
    """The text the model read; where the record does not hold it, its tokens."""
    text = record.text if isinstance(record.text, str) else " ".join(record.text or shown(record.key_tokens))
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
        return f"“{shown(record.query_tokens)[position]}” (position {position})"
    if share < 1.001 / len(record.readout):
        return f"the mean over all {len(record.readout)} tokens"
    return f"a weighted mean of tokens (largest: “{shown(record.query_tokens)[position]}” with {share:.2f})"


def percent(share: float) -> str:
    """A share in per cent; nothing is rounded to certainty.

    >>> percent(0.25), percent(0.99999), percent(1e-9)
    ('25.0 %', '> 99.9 %', '< 0.1 %')
    """
    if 0.9995 <= share < 1:
        return "> 99.9 %"
    if 0 < share < 0.0005:
        return "< 0.1 %"
    return f"{100 * share:.1f} %"
