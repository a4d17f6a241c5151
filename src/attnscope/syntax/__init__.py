"""Sentences and their parses: what a sentence is, and a grammar that makes them."""

from .grammar import AgreementSentence, agreement_sentences, vocabulary
from .sentence import Sentence

__all__ = ["AgreementSentence", "Sentence", "agreement_sentences", "vocabulary"]
