"""Records of a Seq2Seq: sources and outputs as tokens, and the output it writes by itself."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from ...capture import ModuleModel, Tokenized, instrument
from ...errors import BadInput
from ..decoding import greedy

if TYPE_CHECKING:
    from .seq2seq import Seq2Seq

GREEDY_WORDS = 128
"""How far the model goes on by itself where the user gives no output."""


def instrumented(model: "Seq2Seq") -> ModuleModel:
    """The model as `attnscope` records it and runs it again; its logits are those of the last step."""
    return instrument(
        model,
        tokenize=partial(tokenized, model),
        attention="attention",
        embeddings="embeddings",
        labels=model.vocabulary.tokens,
        readout="last",
        answer=lambda logits: logits[:, -1],
        blanks={name: model.vocabulary.number(name) for name in ("unk", "pad")},
        padding=model.vocabulary.number("pad"),
    )


def tokenized(model: "Seq2Seq", text: Any) -> Tokenized:
    """A source, or a pair of a source and its output, each a text with spaces or a list of words, with its ids."""
    source, target = text if isinstance(text, tuple) and len(text) == 2 else (text, None)
    begin, end = (model.vocabulary.special[name] for name in ("bos", "eos"))
    tokens = [*_words(source, "source"), end]
    ids = model.vocabulary.encode(tokens)
    if target is None:
        source_ids = torch.tensor([ids], device=model.embeddings.weight.device)
        (written,) = greedy(model, source_ids, torch.ones_like(source_ids).bool(), GREEDY_WORDS)
    else:
        written = model.vocabulary.encode(_words(target, "output"))
    read = [model.vocabulary.number("bos"), *written]
    return Tokenized(
        tokens=tokens,
        inputs={"input_ids": ids, "target_in": read},
        special=[False] * (len(tokens) - 1) + [True],
        word_ids=[*range(len(tokens) - 1), None],
        query_tokens=[begin, *(model.vocabulary.decode(written) if target is None else _words(target, "output"))],
    )


def _words(text: Any, what: str) -> Sequence[str]:
    words = text.split() if isinstance(text, str) else list(text)
    if not words and what == "source":
        raise BadInput("The source is empty; give at least one word.")
    return words
