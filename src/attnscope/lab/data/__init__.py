"""What the small models learn from: agreement data, stories of the shape of SEND, and texts in classes."""

from .building import build_agreement as build_agreement
from .classified import CLASSIFIED as CLASSIFIED
from .classified import synthetic_polarity as synthetic_polarity
from .classified import text_statistics as text_statistics
from .classified import toy_polarity as toy_polarity
from .examples_file import NUMBERS as NUMBERS
from .examples_file import AgreementExample as AgreementExample
from .examples_file import read_examples as read_examples
from .examples_file import read_words as read_words
from .linzen import read_linzen as read_linzen
from .linzen import read_subset as read_subset
from .packed import ClassifiedTexts as ClassifiedTexts
from .packed import PackedTexts as PackedTexts
from .story import Story as Story
from .story import read_send as read_send
from .story import standin_stories as standin_stories
from .word_level import WORD_LEVEL as WORD_LEVEL
from .word_level import word_level_statistics as word_level_statistics
from .word_level import yelp as yelp
