"""Tokens as a person reads them: subword markers and byte alphabets undone."""

from collections.abc import Sequence
from functools import lru_cache

WORD_STARTS = ("Ġ", "▁")
"""A piece with one of these begins a word: byte-level BPE and SentencePiece."""
CONTINUATION = "##"
"""A WordPiece that goes on with the word before it."""


@lru_cache
def _byte_of_letter() -> dict[str, int]:
    """Byte-level BPE writes a byte as one letter: printable bytes as themselves, the rest from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = {chr(byte): byte for byte in printable}
    others = (byte for byte in range(256) if byte not in printable)
    letters |= {chr(0x100 + offset): byte for offset, byte in enumerate(others)}
    return letters


def is_byte_level(tokens: Sequence[str]) -> bool:
    """Whether these tokens are spelled in the byte alphabet of GPT-2, RoBERTa, Llama 3 and others.

    They are if a space or newline is written in it, or if some letter can only come from it and all together spell
    valid UTF-8. Special tokens may hold other letters, and are left out.
    """
    letters = _byte_of_letter()
    spelled = "".join(token for token in tokens if _in_bytes(token))
    if not any(0x100 <= ord(letter) <= 0x143 for letter in spelled):
        return False
    if "Ġ" in spelled or "Ċ" in spelled:
        return True
    try:
        bytes(letters[letter] for letter in spelled).decode("utf-8")
    except UnicodeDecodeError:
        return False
    return all(_in_bytes(token) for token in tokens)


def _in_bytes(token: str) -> bool:
    return all(letter in _byte_of_letter() for letter in token)


def readable(tokens: Sequence[str]) -> list[str]:
    """Each token as text: a leading space where a word begins, newlines as ⏎, no markers.

    A character that byte-level BPE cut in pieces is given to its first piece; the others show as "·".

    >>> readable(["Ġhello", "Ċ"]), readable(["▁Haus", "boot"]), readable(["play", "##ing"])
    ([' hello', '⏎'], [' Haus', 'boot'], ['play', 'ing'])
    """
    if is_byte_level(tokens):
        decoded = iter(_decoded([token for token in tokens if _in_bytes(token)]))
        return [next(decoded).replace("\n", "⏎") if _in_bytes(token) else token for token in tokens]
    pieces = (token.removeprefix(CONTINUATION) if len(token) > 2 else token for token in tokens)
    return [piece.replace("▁", " ").replace("<0x0A>", "⏎").replace("\n", "⏎") for piece in pieces]


def _decoded(tokens: Sequence[str]) -> list[str]:
    letters = _byte_of_letter()
    starts: list[int] = []
    spelled = bytearray()
    for token in tokens:
        starts.append(len(spelled))
        spelled += bytes(letters[letter] for letter in token)
    texts = [""] * len(tokens)
    position, owner = 0, 0
    # a generation may stop in the middle of a character: its bytes become surrogates, shown as replacement sign
    for character in spelled.decode("utf-8", "surrogateescape"):
        while owner + 1 < len(tokens) and starts[owner + 1] <= position:
            owner += 1
        texts[owner] += "\ufffd" if "\udc80" <= character <= "\udcff" else character
        position += len(character.encode("utf-8", "surrogateescape"))
    return [text or ("·" if token else "") for text, token in zip(texts, tokens, strict=True)]
