"""What the small models learn from: agreement data from parsed text and Linzen's files, stories of SEND's shape."""

from .agreement import NUMBERS as NUMBERS
from .agreement import AgreementExample as AgreementExample
from .building import build_agreement as build_agreement
from .examples_file import read_examples as read_examples
from .examples_file import read_words as read_words
from .linzen import read_linzen as read_linzen
from .linzen import read_subset as read_subset
from .send import read_send as read_send
from .stories import standin_stories as standin_stories
from .story import Story as Story
