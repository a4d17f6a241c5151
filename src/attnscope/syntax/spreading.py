"""Some sentences of a corpus, spread evenly over it: a file may be sorted by what it is about."""

from dataclasses import replace

from ..errors import check_number
from .reading import Corpus, sentences_of


def spread(corpus: Corpus, limit: int) -> Corpus:
    """So many of its items, as evenly spread as can be; the first ones where nobody knows how many there are.

    >>> [sentence.words for sentence in spread(sentences_of(["one", "two", "three", "four"]), 2)]
    [('two',), ('four',)]
    """
    check_number("limit", limit, 1)
    size = corpus.size
    if size is None:
        return replace(sentences_of(corpus, limit=limit), name=f"{corpus.name}, the first {limit}")
    if limit >= size:
        return corpus
    return replace(
        corpus,
        name=f"{corpus.name}, {limit} of {size}",
        size=limit,
        source=lambda: (
            item for place, item in enumerate(corpus.items()) if (place + 1) * limit // size > place * limit // size
        ),
    )
