"""What the small models learn from: agreement data, stories of SEND's shape, and texts in classes (CLASSIFIED)."""

from collections.abc import Callable, Mapping

from .building import build_agreement as build_agreement
from .classified import imdb, sst_binary
from .classified import text_statistics as text_statistics
from .examples_file import NUMBERS as NUMBERS
from .examples_file import AgreementExample as AgreementExample
from .examples_file import read_examples as read_examples
from .examples_file import read_words as read_words
from .linzen import read_linzen as read_linzen
from .linzen import read_subset as read_subset
from .newsgroups import newsgroups_sports, newsgroups_three
from .packed import ClassifiedTexts as ClassifiedTexts
from .packed import PackedTexts as PackedTexts
from .story import Story as Story
from .story import read_send as read_send
from .story import standin_stories as standin_stories
from .synthetic_polarity import synthetic_polarity as synthetic_polarity
from .synthetic_polarity import toy_polarity as toy_polarity
from .word_level import ag_news, amazon, imdb_words, newsgroups_words, sms_spam, sst_words
from .word_level import word_level_statistics as word_level_statistics
from .word_level import yelp as yelp

CLASSIFIED: Mapping[str, Callable[..., ClassifiedTexts]] = {
    "sst": sst_binary,
    "imdb": imdb,
    "20news1": newsgroups_sports,
    "20news2": newsgroups_three,
}
"""The data sets of Sun & Lu 2020, Table 1: each a function of the place where data sets lie."""
WORD_LEVEL: Mapping[str, Callable[..., ClassifiedTexts]] = {
    "sst": sst_words,
    "20news": newsgroups_words,
    "imdb": imdb_words,
    "amazon": amazon,
    "sms": sms_spam,
    "ag_news": ag_news,
}
"""The data sets of Snell et al. 2021, Table 9, that are named in CORPORA: each a function of the place of data sets."""
