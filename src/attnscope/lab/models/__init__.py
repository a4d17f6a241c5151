"""The small models of the papers: read by attention, or by counting words alone."""

from pathlib import Path

from ...capture import InstrumentedModel
from ...errors import BadInput
from .agreement import AgreementTransformer as AgreementTransformer
from .attention_classifier import AttentionClassifier as AttentionClassifier
from .bag_of_words import BagOfWords as BagOfWords
from .bag_of_words import logistic_words as logistic_words
from .recurrent_classifier import RecurrentClassifier as RecurrentClassifier
from .sentiment import SentimentTransformer as SentimentTransformer
from .seq2seq import Seq2Seq as Seq2Seq
from .word_model import name_and_settings
from .word_translation import WordTranslation as WordTranslation

SAVED = {
    kind.__name__: kind
    for kind in (AgreementTransformer, AttentionClassifier, RecurrentClassifier, SentimentTransformer, Seq2Seq)
}
"""The classes whose models a folder can hold."""


def load_instrumented(folder: Path) -> InstrumentedModel:
    """The model in a folder as `attnscope` records it and runs it again, whichever of these classes it has."""
    name, _ = name_and_settings(folder)
    if name not in SAVED:
        raise BadInput(f"{folder} holds a model of the class {name}, which is none of {', '.join(SAVED)}.")
    return SAVED[name].load(folder).instrumented()
