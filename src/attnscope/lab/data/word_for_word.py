"""A made-up language that is translated word for word: what attention and alignments should be is known."""

import numpy as np

from ...errors import BadInput
from ..vocabulary import FRAMED, Vocabulary
from .translation import TranslatedPart, TranslatedTexts, part_of_numbers


def word_for_word(
    words: int = 30, shortest: int = 3, longest: int = 8, train: int = 400, dev: int = 40, seed: int = 0
) -> TranslatedTexts:
    """Sentences of different words at random; each word has one translation, and the order stays.

    >>> texts = word_for_word(words=5, shortest=2, longest=3)
    >>> texts.vocabulary.decode(texts.train.sources[0]), texts.vocabulary.decode(texts.train.targets[0])
    (['▁a1', '▁a3', '▁a2', '[EOS]'], ['▁b1', '▁b3', '▁b2', '[EOS]'])
    """
    if not 1 <= shortest <= longest <= words:
        raise BadInput(f"Sentences of {shortest} to {longest} different words cannot be made of {words} words.")
    vocabulary = Vocabulary([f"▁{side}{word}" for side in "ab" for word in range(words)], special=FRAMED)
    draw = np.random.default_rng(seed)

    def part(pairs: int) -> TranslatedPart:
        lengths = draw.integers(shortest, longest + 1, pairs)
        chosen = [len(FRAMED) + draw.choice(words, length, replace=False) for length in lengths]
        return part_of_numbers(vocabulary, [row.tolist() for row in chosen], [(row + words).tolist() for row in chosen])

    return TranslatedTexts("word-for-word", ("a", "b"), vocabulary, part(train), part(dev))
