"""A sentence: its words and, where someone has parsed it, what each word is and on which word it depends."""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..errors import BadInput

Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Sentence:
    """Words with their part of speech, head and relation, in the terms of Universal Dependencies.

    `tags` are UPOS tags. `heads` are positions in `words`, counted from zero, and -1 for the root (CoNLL-U counts from
    one and writes 0 for the root). Plain text has no tags, heads or relations: they are then None.

    `spaces` says of each word whether a space follows it; None is a space after every word. `name` and `document` are
    the names of the sentence and of the document it stands in, where the corpus has them. `parts` is how many sentences
    this is: a document joined of several has as many roots. `fine_tags` are the tags of the corpus's own scheme (XPOS),
    which for English are Penn's: they tell "dog" (NN) from "dogs" (NNS) and "sleeps" (VBZ) from "sleep" (VBP).

    >>> sentence = Sentence(("dogs", "sleep", "."), ("NOUN", "VERB", "PUNCT"), (1, -1, 1), spaces=(True, False, True))
    >>> sentence.text, sentence.spans
    ('dogs sleep.', ((0, 4), (5, 10), (10, 11)))
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    heads: tuple[int, ...] | None = None
    relations: tuple[str, ...] | None = None
    spaces: tuple[bool, ...] | None = None
    name: str | None = None
    document: str | None = None
    parts: int = 1
    fine_tags: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("spaces", "tags", "heads", "relations", "fine_tags"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.words):
                raise BadInput(
                    f"A sentence needs one entry per word, but {' '.join(self.words)!r} has {len(self.words)} words "
                    f"and {len(values)} {name}."
                )
        if self.heads is not None:
            _check_trees(self.heads, self.parts, self.text)

    @property
    def text(self) -> str:
        """The words with the spaces between them."""
        if self.spaces is None:
            return " ".join(self.words)
        apart = "".join(word + " " * space for word, space in zip(self.words, self.spaces, strict=True))
        return apart[:-1] if self.spaces and self.spaces[-1] else apart

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Where each word begins and ends in `text`, in characters."""
        spans, start = [], 0
        for word, space in zip(self.words, _spaces(self), strict=True):
            spans.append((start, start + len(word)))
            start += len(word) + space
        return tuple(spans)

    def __len__(self) -> int:
        return len(self.words)


def joined(sentences: Iterable[Sentence]) -> Sentence:
    """One sentence of several parts, in their order: a document, whose trees stand side by side.

    Two parts are separated as the last word of the first says by its own `spaces`. What only some of the parts have
    (tags, heads, relations) cannot be joined; fine tags are kept where all parts have them.

    >>> whole = joined([Sentence(("Stop", "!"), heads=(-1, 0), spaces=(False, True)), Sentence(("Go",), heads=(-1,))])
    >>> whole.text, whole.heads, whole.parts
    ('Stop! Go', (-1, 0, -1), 2)
    """
    several = tuple(sentences)
    if not several:
        raise BadInput("There is no sentence to join.")
    documents = {sentence.document for sentence in several}
    document = documents.pop() if len(documents) == 1 else None
    heads, before = [], 0
    for sentence in several:
        heads.append(sentence.heads and tuple(head if head == -1 else head + before for head in sentence.heads))
        before += len(sentence)
    return Sentence(
        words=tuple(word for sentence in several for word in sentence.words),
        tags=_all_or_none([sentence.tags for sentence in several], "tags"),
        heads=_all_or_none(heads, "heads"),
        relations=_all_or_none([sentence.relations for sentence in several], "relations"),
        spaces=tuple(space for sentence in several for space in _spaces(sentence)),
        name=document,
        document=document,
        parts=sum(sentence.parts for sentence in several),
        fine_tags=_if_all([sentence.fine_tags for sentence in several]),
    )


def general(relation: str) -> str:
    """The relation without its subtype.

    >>> general("nsubj:pass")
    'nsubj'
    """
    return relation.partition(":")[0]


def _spaces(sentence: Sentence) -> tuple[bool, ...]:
    return (True,) * len(sentence.words) if sentence.spaces is None else sentence.spaces


def _all_or_none(values: Sequence[tuple[Entry, ...] | None], name: str) -> tuple[Entry, ...] | None:
    given = [entries for entries in values if entries is not None]
    if given and len(given) < len(values):
        raise BadInput(f"Only {len(given)} of {len(values)} sentences have {name}: join those that all have them.")
    return tuple(entry for entries in given for entry in entries) if given else None


def _if_all(values: Sequence[tuple[Entry, ...] | None]) -> tuple[Entry, ...] | None:
    return None if any(entries is None for entries in values) else _all_or_none(values, "entries")


def _check_trees(heads: Sequence[int], parts: int, text: str) -> None:
    """Raise unless the heads make as many trees as there are parts."""
    children: list[list[int]] = [[] for _ in heads]
    roots = []
    for position, head in enumerate(heads):
        if head == -1:
            roots.append(position)
        elif 0 <= head < len(heads):
            children[head].append(position)
        else:
            raise BadInput(f"Word {position} of {text!r} has the head {head}, which is not a word of the sentence.")
    if len(roots) != parts:
        wanted = "A sentence has exactly one root" if parts == 1 else f"{parts} sentences have exactly {parts} roots"
        raise BadInput(f"{wanted}, but {text!r} has {len(roots)}.")
    reached, waiting = 0, deque(roots)
    while waiting:
        reached += 1
        waiting.extend(children[waiting.popleft()])
    if reached != len(heads):
        raise BadInput(f"The heads of {text!r} run in a circle: not every word leads up to the root.")


# Words and the tokens of a model, laid over each other by their characters.


Span = tuple[int, int]

NO_TOKEN = "a word has no token"
NO_WORDS = "the sentence has no words"


class Unaligned(ValueError):
    """These tokens do not stand for these words; `reason` says why, in words that can be counted over a corpus."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def words_of_tokens(spans: Sequence[Span], offsets: Sequence[Span], special: Sequence[bool]) -> tuple[int | None, ...]:
    """The word of each token: the one it shares most characters with, else the first; None for special tokens.

    So "don" of "don't" belongs to "do", although its "n" is of "n't", which has other tokens. A token may cover whole
    words, as "cannot" covers "can" and "not": the other words then have no token, and whoever counts says how many. A
    token that covers only white space, or nothing, belongs to the word it stands in or that starts next, else to the
    last one.

    Args:
        spans: Where each word begins and ends in the text, in their order (`Sentence.spans`).
        offsets: Where each token begins and ends in the same text, as the tokenizer tells it.
        special: Whether a token is one that the tokenizer added, such as [CLS].

    Raises:
        Unaligned: If no token has a character of some word.

    >>> words_of_tokens([(0, 4), (5, 11)], [(0, 0), (0, 4), (5, 9), (9, 11), (0, 0)], [True, False, False, False, True])
    (None, 0, 1, 1, None)
    >>> words_of_tokens([(0, 3), (3, 6), (7, 10)], [(0, 6), (6, 10)], [False, False])
    (0, 2)
    """
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    touched = [False] * len(spans)
    words: list[int | None] = []
    for (start, end), quiet in zip(offsets, special, strict=True):
        if quiet:
            words.append(None)
            continue
        if not spans:
            raise Unaligned(NO_WORDS)
        # Words neither overlap nor change places: those that end after the token starts and start before it ends.
        first, beyond = bisect_right(ends, start), bisect_left(starts, end)
        if end > start and beyond > first:
            shared = [min(end, ends[word]) - max(start, starts[word]) for word in range(first, beyond)]
            word = first + shared.index(max(shared))
            touched[first:beyond] = [True] * (beyond - first)
        else:
            word = min(first, len(spans) - 1)
        words.append(word)
    if not all(touched):
        raise Unaligned(NO_TOKEN)
    return tuple(words)
