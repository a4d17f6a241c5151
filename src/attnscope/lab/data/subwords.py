"""Subwords by SentencePiece (Kudo & Richardson 2018): learned from lines, kept as one file, numbered as words are."""

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ...errors import BadInput
from ...files import written_atomically
from ..vocabulary import FRAMED, Vocabulary

SPACE = "\u2581"
"""What stands at the beginning of a word in place of the space before it."""
UNKNOWN = " \u2047 "
"""What an unknown piece is written as, as the library does."""


class Subwords:
    """Lines as numbers of pieces and back; the special tokens pad, unk, bos and eos are numbers 0 to 3."""

    def __init__(self, model: bytes) -> None:
        library = _library()
        try:
            self._processor = library.SentencePieceProcessor(model_proto=model)
        except RuntimeError:
            raise BadInput("This is no model of SentencePiece, or it is damaged.") from None
        pieces = [self._processor.id_to_piece(number) for number in range(self._processor.get_piece_size())]
        if pieces[: len(FRAMED)] != list(FRAMED.values()):
            raise BadInput(f"This model of SentencePiece does not begin with {', '.join(FRAMED.values())}.")
        self.vocabulary = Vocabulary(pieces[len(FRAMED) :], special=FRAMED)

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """The numbers of the pieces of each line, without bos and eos."""
        found: list[list[int]] = self._processor.encode(list(lines))
        return found


def learned_subwords(lines: Iterable[str], size: int, kept: Path | None = None) -> Subwords:
    """Subwords for these lines, `size` of them with the special tokens, or fewer where the lines give no more.

    If the file `kept` is there, its subwords are taken, and the lines are not read; else they are written to it.
    Learning 8,000 from the 58,000 lines of Multi30k takes about half a minute.
    """
    if kept is not None and kept.exists():
        return Subwords(kept.read_bytes())
    model = _learned(lines, size)
    if kept is not None:
        with written_atomically(kept) as temporary:
            temporary.write_bytes(model)
    return Subwords(model)


def _learned(lines: Iterable[str], size: int) -> bytes:
    model = io.BytesIO()
    numbers = {f"{name}_id": number for number, name in enumerate(FRAMED)}
    pieces = {f"{name}_piece": token for name, token in FRAMED.items()}
    try:
        _library().SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            vocab_size=size,
            hard_vocab_limit=False,
            num_threads=1,  # the order of sums, and so the pieces, depend on it
            minloglevel=2,
            **numbers,
            **pieces,
        )
    except RuntimeError as error:
        raise BadInput(f"SentencePiece cannot learn {size} subwords from these lines: {error}.") from None
    return model.getvalue()


def plain_text(vocabulary: Vocabulary, numbers: Iterable[int]) -> str:
    """The text of numbers of pieces: special tokens are left out, and an unknown one is ⁇.

    >>> plain_text(Vocabulary(["▁a", "▁film", "s"], special=FRAMED), [2, 4, 5, 6, 3])
    'a films'
    """
    silent = {vocabulary.number(name) for name in ("pad", "bos", "eos")}
    unknown = vocabulary.number("unk")
    kept = [number for number in numbers if number not in silent]
    pieces = zip(kept, vocabulary.decode(kept), strict=True)
    return "".join(UNKNOWN if number == unknown else piece for number, piece in pieces).replace(SPACE, " ").strip()


def _library() -> Any:
    try:
        import sentencepiece
    except ImportError:
        raise BadInput('Subwords need SentencePiece: pip install "attnscope[lab]".') from None
    return sentencepiece
