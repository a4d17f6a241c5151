"""The words that a small model knows, each with its number, and the file they are kept in."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from ..errors import BadInput
from ..files import written_atomically

SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "eos": "[EOS]"}
"""The special tokens by their names: padding, an unknown word, the token that is read, the end."""
FRAMED = {"pad": "[PAD]", "unk": "[UNK]", "bos": "[BOS]", "eos": "[EOS]"}
"""Those of texts that begin and end with a token of their own, as recurrent models read and write them."""
FORMAT = "attnscope vocabulary 1"


class Vocabulary:
    """Special tokens and words, numbered from zero in this order; a word that is not among them is `unk`.

    >>> words = Vocabulary(["the", "key"], counts=[9, 2])
    >>> words.encode(["[CLS]", "the", "keys"]), words.decode([4, 1])
    ([2, 4, 1], ['the', '[UNK]'])
    """

    def __init__(
        self, words: Iterable[str], counts: Iterable[int] | None = None, special: Mapping[str, str] | None = None
    ) -> None:
        if isinstance(words, str):
            raise BadInput(f"A vocabulary is made of a list of words, not of the one text {words[:20]!r}.")
        self.special = dict(SPECIAL if special is None else special)
        self.words = tuple(words)
        self.counts = None if counts is None else tuple(counts)
        self.tokens = (*self.special.values(), *self.words)
        self._numbers = {token: number for number, token in enumerate(self.tokens)}
        if missing := [name for name in ("pad", "unk") if name not in self.special]:
            raise BadInput(f"A vocabulary needs the special token {missing[0]}.")
        if len(self._numbers) < len(self.tokens):
            twice = Counter(self.tokens).most_common(1)[0][0]
            raise BadInput(f"The word {twice!r} stands twice in the vocabulary.")
        if self.counts is not None and len(self.counts) != len(self.words):
            raise BadInput(f"The vocabulary has {len(self.words)} words and {len(self.counts)} counts.")

    @classmethod
    def of(
        cls,
        sentences: Iterable[Sequence[str]],
        most: int | None = None,
        least: int = 1,
        special: Mapping[str, str] = SPECIAL,
    ) -> "Vocabulary":
        """The words of these sentences, the frequent ones first (in alphabetical order where they are equal).

        At `most` so many, each of which occurs at `least` so often.

        >>> Vocabulary.of([["a", "b"], ["b"]], most=1).words
        ('b',)
        """
        counted = Counter(word for sentence in sentences for word in sentence)
        kept = [entry for entry in counted.items() if entry[1] >= least and entry[0] not in special.values()]
        kept = sorted(kept, key=lambda entry: (-entry[1], entry[0]))[:most]
        return cls([word for word, _ in kept], [count for _, count in kept], special)

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._numbers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and _content(self) == _content(other)

    def __hash__(self) -> int:
        return hash(self.tokens)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self.words)} words and {', '.join(self.special.values())})"

    def number(self, name: str) -> int:
        """The number of a special token, by its name."""
        if name not in self.special:
            raise BadInput(f"This vocabulary has no special token {name}: it has {', '.join(self.special)}.")
        return self._numbers[self.special[name]]

    def encode(self, words: Iterable[str]) -> list[int]:
        """The number of each word; special tokens may stand among them."""
        unknown = self.number("unk")
        return [self._numbers.get(word, unknown) for word in words]

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """The word of each number."""
        found = []
        for number in numbers:
            if not 0 <= number < len(self.tokens):
                raise BadInput(f"There is no word number {number} in a vocabulary of {len(self.tokens)}.")
            found.append(self.tokens[number])
        return found

    def pad(self, rows: Sequence[Sequence[int]]) -> tuple[Int[Tensor, "row longest"], Bool[Tensor, "row longest"]]:
        """Rows of numbers as one tensor, padded at the right, and the mask that is true where a word is."""
        tensors = [torch.tensor(list(row), dtype=torch.long) for row in rows]
        padded = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=self.number("pad"))
        lengths = torch.tensor([len(row) for row in rows])
        return padded, torch.arange(padded.shape[1]) < lengths.unsqueeze(1)

    def save(self, path: str | Path) -> Path:
        """Write the vocabulary as JSON, one word to a line, all at once."""
        path = Path(path)
        content = _content(self)
        rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in content.pop("words"))
        head = json.dumps(content, ensure_ascii=False)[:-1]
        with written_atomically(path) as temporary:
            temporary.write_text(f'{head}, "words": [\n{rows}\n]}}\n', encoding="utf-8")
        return path

    @classmethod
    def load(cls, path: str | Path) -> "Vocabulary":
        """Read a vocabulary that `save` has written."""
        path = Path(path)
        if not path.is_file():
            raise BadInput(f"There is no vocabulary at {path}.")
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise BadInput(f"{path} is not a vocabulary, or is damaged: {error}.") from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise BadInput(f'{path} is not a vocabulary of attnscope: it does not say "format": "{FORMAT}".')
        try:
            counted = content["counted"]
            rows = content["words"]
            words = [str(row[0]) for row in rows] if counted else [str(row) for row in rows]
            counts = [int(row[1]) for row in rows] if counted else None
            special = {str(name): str(token) for name, token in content["special"].items()}
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            raise BadInput(f"The vocabulary {path} is damaged: its words cannot be read.") from None
        return cls(words, counts, special)


def _content(vocabulary: Vocabulary) -> dict[str, Any]:
    """What the file holds: words alone, or pairs of word and count."""
    counts = vocabulary.counts
    words = (
        list(vocabulary.words)
        if counts is None
        else [list(pair) for pair in zip(vocabulary.words, counts, strict=True)]
    )
    return {"format": FORMAT, "special": vocabulary.special, "counted": counts is not None, "words": words}
