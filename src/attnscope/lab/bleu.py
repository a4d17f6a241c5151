"""BLEU of whole texts, by sacreBLEU (Post 2018) with its usual settings."""

from collections.abc import Sequence

from ..errors import BadInput


def corpus_bleu(written: Sequence[str], references: Sequence[str]) -> float:
    """BLEU from 0 to 100 of translations as plain text, each with one reference."""
    if len(written) != len(references) or not references:
        raise BadInput(f"BLEU needs a reference to each translation: here are {len(written)} and {len(references)}.")
    try:
        import sacrebleu
    except ImportError:
        raise BadInput('BLEU needs sacreBLEU: pip install "attnscope[lab]".') from None
    return float(sacrebleu.corpus_bleu(list(written), [list(references)]).score)
