"""A sentence: its words and, where someone has parsed it, what each word is and on which word it depends."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import BadInput


@dataclass(frozen=True)
class Sentence:
    """Words with their part of speech, head and relation, in the terms of Universal Dependencies.

    `tags` are UPOS tags. `heads` are positions in `words`, counted from zero, and -1 for the root (CoNLL-U counts from
    one and writes 0 for the root). Plain text has no tags, heads or relations: they are then None.

    >>> Sentence(("dogs", "sleep"), ("NOUN", "VERB"), (1, -1), ("nsubj", "root")).text
    'dogs sleep'
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    heads: tuple[int, ...] | None = None
    relations: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name, values in (("tags", self.tags), ("heads", self.heads), ("relations", self.relations)):
            if values is not None and len(values) != len(self.words):
                raise BadInput(
                    f"A sentence needs one entry per word, but {self.text!r} has {len(self.words)} words "
                    f"and {len(values)} {name}."
                )
        if self.heads is not None:
            _check_tree(self.heads, self.text)

    @property
    def text(self) -> str:
        """The words joined by spaces."""
        return " ".join(self.words)

    def __len__(self) -> int:
        return len(self.words)


def _check_tree(heads: Sequence[int], text: str) -> None:
    """Raise unless the heads make one tree with one root."""
    children: list[list[int]] = [[] for _ in heads]
    roots = []
    for position, head in enumerate(heads):
        if head == -1:
            roots.append(position)
        elif 0 <= head < len(heads):
            children[head].append(position)
        else:
            raise BadInput(f"Word {position} of {text!r} has the head {head}, which is not a word of the sentence.")
    if len(roots) != 1:
        raise BadInput(f"A sentence has exactly one root, but {text!r} has {len(roots)}.")
    reached, waiting = 0, deque(roots)
    while waiting:
        reached += 1
        waiting.extend(children[waiting.popleft()])
    if reached != len(heads):
        raise BadInput(f"The heads of {text!r} run in a circle: not every word leads up to the root.")
