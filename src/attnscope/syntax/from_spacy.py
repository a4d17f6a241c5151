"""Sentences parsed by spaCy; the only file that imports it."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from ..errors import BadInput
from .sentence import Sentence

BATCH = 64  # items: spaCy's network runs over as many at once
UNUSED = ("ner", "lemmatizer", "entity_linker")
"""Parts of a pipeline that a sentence does not need, and that take time."""

# spaCy may be missing, so its types cannot stand in signatures: pipelines, documents and tokens are Any here.


class Parser:
    """A spaCy model that tags and parses texts and words.

    The model is given by name or as a loaded pipeline. A name is loaded when the first text is parsed, so that a
    parser is made at no cost where all sentences are parsed already.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._loaded: Any = None

    def parse(self, items: Iterable[str | Sentence]) -> Iterator[list[Sentence]]:
        """Yield the sentences in each text, in the order of the texts; a text of white space has none.

        An item may also be a `Sentence`: if it has heads, it stays as it is; if not, its words are parsed as they
        stand, and what it has (tags, spaces, names) is kept.
        """
        waiting = iter(items)
        while batch := list(islice(waiting, BATCH)):
            parsed = iter(self._parsed([item for item in batch if not _is_parsed(item)]))
            for item in batch:
                yield [item] if isinstance(item, Sentence) and _is_parsed(item) else next(parsed)

    def _parsed(self, items: list[str | Sentence]) -> list[list[Sentence]]:
        if not items:
            return []
        pipeline = self._pipeline()
        unused = [name for name in UNUSED if name in pipeline.pipe_names]
        with pipeline.memory_zone():  # else spaCy keeps every new word for ever, and grows with the corpus
            parsed = pipeline.pipe([_document(item, pipeline) for item in items], batch_size=BATCH, disable=unused)
            return [
                _sentences(document, item if isinstance(item, Sentence) else None)
                for item, document in zip(items, parsed, strict=True)
            ]

    def _pipeline(self) -> Any:
        if self._loaded is None:
            loaded = _load(self._model) if isinstance(self._model, str) else self._model
            if not hasattr(loaded, "pipe_names"):
                raise BadInput(f"A parser is a spaCy model or the name of one, not a {type(loaded).__name__}.")
            if "parser" not in loaded.pipe_names:
                raise BadInput("This spaCy model finds no dependencies: give one that does, such as en_core_web_sm.")
            self._loaded = loaded
        return self._loaded


def parse(items: Iterable[str | Sentence], model: Any) -> Iterator[list[Sentence]]:
    """Yield the sentences in each text as a spaCy model, or the model of that name, parses them: see `Parser.parse`."""
    return Parser(model).parse(items)


def _load(name: str) -> Any:
    try:
        import spacy
    except ImportError as error:
        raise BadInput("Parsing a text needs spaCy: pip install 'attnscope[syntax]'.") from error
    try:
        return spacy.load(name, exclude=list(UNUSED))
    except OSError as error:
        raise BadInput(
            f"There is no spaCy model {name!r} here: install it with `python -m spacy download {name}`."
        ) from error


def _is_parsed(item: str | Sentence) -> bool:
    return isinstance(item, Sentence) and item.heads is not None


def _document(item: str | Sentence, pipeline: Any) -> Any:
    """A document before it is parsed: split into words by spaCy, or of the words it is given."""
    if isinstance(item, Sentence):
        from spacy.tokens import Doc

        spaces = None if item.spaces is None else list(item.spaces)
        return Doc(pipeline.vocab, words=list(item.words), spaces=spaces)
    if len(item) > pipeline.max_length:
        raise BadInput(f"A text of {len(item):,} characters is too long for spaCy: cut it at {pipeline.max_length:,}.")
    return pipeline.make_doc(item)


def _sentences(document: Any, given: Sentence | None) -> list[Sentence]:
    sentences = []
    for span in document.sents:
        # spaCy holds white space for words of their own
        words = [token for token in span if not token.is_space]
        if not words:
            continue
        sentence = _sentence(words, document)
        if given is not None:
            sentence = replace(sentence, name=given.name, document=given.document)
            if given.tags is not None:
                sentence = replace(sentence, tags=tuple(given.tags[token.i] for token in words))
        sentences.append(sentence)
    return sentences


def _sentence(words: list[Any], document: Any) -> Sentence:
    position = {token.i: index for index, token in enumerate(words)}
    heads = [-1 if token.head.i == token.i else position.get(_word_above(token), -1) for token in words]
    # Where white space is the root, the first word that hangs on it takes its place, and the others hang on that.
    root = heads.index(-1)
    return Sentence(
        words=tuple(token.text for token in words),
        tags=tuple(token.pos_ for token in words),
        heads=tuple(root if head == -1 and index != root else head for index, head in enumerate(heads)),
        relations=tuple("root" if index == root else universal(token.dep_) for index, token in enumerate(words)),
        spaces=tuple(_space_after(token, document) for token in words),
        fine_tags=tuple(token.tag_ for token in words),
    )


def _word_above(token: Any) -> int:
    """The position of the nearest word above a token, past white space."""
    head = token.head
    while head.is_space and head.head.i != head.i:
        head = head.head
    return int(head.i)


def _space_after(token: Any, document: Any) -> bool:
    following = token.i + 1
    return bool(token.whitespace_) or (following < len(document) and document[following].is_space)


# The names of relations: spaCy's English labels in the terms of Universal Dependencies.
# spaCy's English models speak the labels of ClearNLP. A label is renamed only where both schemes mean the same
# relation between the same two words. What has no twin keeps its name:
# - `prep`, `pobj`, `pcomp`, `agent`: ClearNLP hangs the noun on its preposition, UD the preposition on its noun
# (`case`) and the noun on the verb (`obl`, `nmod`), so that neither arc of the one is an arc of the other. - `attr`,
# `acomp`, `oprd`: ClearNLP hangs the predicate on "be", UD "be" on the predicate (`cop`). - `dative`: UD's `iobj` for
# "give me", but a preposition for "give it to me". - `neg`: UD has no relation for negations (`advmod` and `det` hold
# them); papers speak of it, so it stays. - `npadvmod`, `quantmod`, `meta`: wider or narrower than any one relation of
# UD.
# `nmod`, `case`, `mark`, `xcomp` and `ccomp` are names in both schemes and do not cover quite the same: ClearNLP's
# `case` is only the possessive 's, its `nmod` what fits nowhere else.


UNIVERSAL = {
    "ROOT": "root",
    "auxpass": "aux:pass",
    "csubjpass": "csubj:pass",
    "dobj": "obj",
    "intj": "discourse",
    "nsubjpass": "nsubj:pass",
    "poss": "nmod:poss",
    "preconj": "cc:preconj",
    "predet": "det:predet",
    "prt": "compound:prt",
    "relcl": "acl:relcl",
}
"""ClearNLP's labels, and what UD calls the same relation."""


def universal(relation: str) -> str:
    """The relation as Universal Dependencies call it, where they have the same one; else unchanged.

    >>> universal("nsubjpass"), universal("nsubj:pass"), universal("pobj")
    ('nsubj:pass', 'nsubj:pass', 'pobj')
    """
    return UNIVERSAL.get(relation, relation)
