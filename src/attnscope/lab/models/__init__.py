"""The small models of the papers: read by attention, or by counting words alone."""

from .agreement import AgreementTransformer as AgreementTransformer
from .attention_classifier import AttentionClassifier as AttentionClassifier
from .bag_of_words import BagOfWords as BagOfWords
from .bag_of_words import logistic_words as logistic_words
from .recurrent_classifier import RecurrentClassifier as RecurrentClassifier
from .sentiment import SentimentTransformer as SentimentTransformer
from .seq2seq import Seq2Seq as Seq2Seq
from .word_translation import WordTranslation as WordTranslation
