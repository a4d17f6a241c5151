"""The small models of the papers, each ready to be trained, kept on disk and recorded."""

from .agreement import AgreementTransformer as AgreementTransformer
from .attention_classifier import AttentionClassifier as AttentionClassifier
from .sentiment import SentimentTransformer as SentimentTransformer
