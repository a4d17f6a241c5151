"""Treebanks written by hand, one line to a word: form, UPOS, Penn tag, head, relation."""

from collections.abc import Callable
from pathlib import Path

import pytest

from attnscope.syntax import Sentence, read_conllu


@pytest.fixture
def treebank(tmp_path: Path) -> Callable[..., Path]:
    """Write sentences as CoNLL-U, and give the path."""

    def write(*sentences: str, name: str = "hand.conllu") -> Path:
        blocks = []
        for number, sentence in enumerate(sentences, start=1):
            lines = [f"# sent_id = hand-{number}"]
            for place, row in enumerate(sentence.strip().splitlines(), start=1):
                form, part, tag, head, relation = row.split()
                lines.append(f"{place}\t{form}\t_\t{part}\t{tag}\t_\t{head}\t{relation}\t_\t_")
            blocks.append("\n".join(lines) + "\n")
        path = tmp_path / name
        path.write_text("\n".join(blocks))
        return path

    return write


@pytest.fixture
def parsed(treebank: Callable[..., Path]) -> Callable[[str], Sentence]:
    """One such sentence."""
    return lambda text: next(read_conllu(treebank(text)))
