"""Sentences and their parses: what a sentence is, where sentences come from, and how words meet a model's tokens."""

from .from_conllu import documents as documents
from .from_conllu import genre as genre
from .from_conllu import read_conllu as read_conllu
from .from_datasets import read_dataset as read_dataset
from .from_spacy import Parser as Parser
from .from_spacy import parse as parse
from .from_spacy import universal as universal
from .from_text import labelled_texts as labelled_texts
from .from_text import plain as plain
from .from_text import read_jsonl as read_jsonl
from .from_text import read_text as read_text
from .from_text import wikitext_lines as wikitext_lines
from .grammar import AgreementSentence as AgreementSentence
from .grammar import agreement_sentences as agreement_sentences
from .grammar import vocabulary as vocabulary
from .reading import Corpus as Corpus
from .reading import names_a_file as names_a_file
from .reading import sentences_of as sentences_of
from .reading import spread as spread
from .reading import texts_of as texts_of
from .sentence import Sentence as Sentence
from .sentence import Unaligned as Unaligned
from .sentence import general as general
from .sentence import joined as joined
from .sentence import words_of_tokens as words_of_tokens
