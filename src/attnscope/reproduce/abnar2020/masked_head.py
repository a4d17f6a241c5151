"""A masked-LM head for an encoder that has none, learned on plain text together with the encoder's layers.

Figure 4 needs a model that fills a gap. Encoders for sentences come without the head they were pretrained with, and
what MiniLM keeps at a mask says hardly anything of the word: with its layers left as they are, a new head found 6% of
the words, as one does that only knows which words are frequent. So the layers learn too, and the attention is theirs
afterwards. The embeddings stay as they are; the head ends in them (tied), with a bias that begins as the log of how
frequent each word is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoModelForMaskedLM, AutoTokenizer

from ...corpora import dataset_file
from ...errors import BadInput
from ...files import write_tensors
from ...lab.batches import Batches
from ...lab.data.labelled import labelled_splits
from ...lab.lesson import CODE, Lesson, card, fingerprint, learn_into, measure_answers
from ...lab.models.word_model import WEIGHTS
from ...lab.train import LogRow, Measurement, adam, warmup_then_decay
from ...syntax import wikitext_lines
from .paper import HeadScale
from .sentiment import spread_evenly

# What it learns from: blocks of tokens, and the places of each that are masked.


SHARE = 0.2
"""Of the tokens of a block that are masked."""
BLOCK, SHORTEST = 62, 8
"""Tokens of a block at most, without the special ones, and at least."""
BLOCKS_PER_STEP, PEAK = 8, 5e-4
HEADS = ("cls", "lm_head")
"""What masked language models call their head."""
Block = list[int]


def texts_of(split: str, reviews: int, data: str | Path | None) -> Iterator[str]:
    """Lines of WikiText-2 and so many reviews of IMDB: `train` to learn from, `test` to be measured on."""
    articles = {"train": "valid", "test": "test"}[split]
    yield from (sentence.text for sentence in wikitext_lines(dataset_file("wikitext2", articles, data)))
    # spread over all of them, because they stand in the order of their labels
    for item in spread_evenly(labelled_splits("imdb", data)[split], reviews):
        yield item.text.replace("<br />", " ")


def blocks_of(tokenizer: Any, texts: Iterator[str]) -> Iterator[Block]:
    """The texts cut into blocks that the encoder can read, each between its special tokens."""
    for text in texts:
        ids = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        for begin in range(0, len(ids), BLOCK):
            if len(part := ids[begin : begin + BLOCK]) >= SHORTEST:
                yield [tokenizer.cls_token_id, *part, tokenizer.sep_token_id]


@dataclass(frozen=True, eq=False)
class MaskedBlocks:
    """A batch of blocks with gaps, and the tokens that stood there."""

    ids: Int[Tensor, "block token"]
    real: Int[Tensor, "block token"]
    gaps: Tensor
    """Where they are, true."""
    right: Int[Tensor, " gap"]


def mask_blocks(blocks: Sequence[Block], mask: int, pad: int, seed: Sequence[int]) -> MaskedBlocks:
    """Mask a share of each block's tokens, at least one, never the special ones at its ends; by the seed alone."""
    random = np.random.default_rng(list(seed))
    longest = max(map(len, blocks))
    ids = torch.full((len(blocks), longest), pad)
    real, gaps = torch.zeros_like(ids), torch.zeros_like(ids).bool()
    for row, block in enumerate(blocks):
        ids[row, : len(block)], real[row, : len(block)] = torch.tensor(block), 1
        inner = len(block) - 2
        places = 1 + random.permutation(inner)[: max(1, round(SHARE * inner))]
        gaps[row, torch.from_numpy(places)] = True
    right = ids[gaps]
    return MaskedBlocks(ids.masked_fill(gaps, mask), real, gaps, right)


# The head and its training.


def load_without_head(encoder: str) -> tuple[Any, Any]:
    """An encoder with a fresh head, and its tokenizer; all but the embeddings can learn.

    Raises:
        BadInput: If there is no such model, or it has no mask.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(encoder)
        model = AutoModelForMaskedLM.from_pretrained(encoder, dtype=torch.float32, tie_word_embeddings=True)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".:")
        raise BadInput(f'No masked-LM head can be trained on "{encoder}": {reason}.') from None
    if tokenizer.mask_token_id is None or not any(hasattr(model, name) for name in HEADS):
        raise BadInput(f'No masked-LM head can be trained on "{encoder}": it has no mask, or no head that is known.')
    for name, weights in model.named_parameters():
        weights.requires_grad_(".embeddings." not in name)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0  # so few steps overfit nothing
    model.config.architectures = [type(model).__name__]
    return model, tokenizer


def gap_logits(model: Any, batch: MaskedBlocks) -> Float[Tensor, "gap word"]:
    """What the model says of each gap; the head is run on the gaps alone."""
    states = model.base_model(input_ids=batch.ids, attention_mask=batch.real).last_hidden_state[batch.gaps]
    head = next(getattr(model, name) for name in HEADS if hasattr(model, name))
    found: Float[Tensor, "gap word"] = head(states)
    return found


def train_masked_head(
    out: Path, encoder: str, scale: HeadScale, data: str | Path | None = None, *, seed: int = 0, resume: bool = False
) -> Path:
    """Train a head on an encoder (a hub name or a folder) into `out`, an ordinary Hugging Face folder.

    Until the end a subfolder `unfinished` holds the checkpoint, from which `resume` goes on to the very same weights.
    """
    return learn_into(out, partial(_lesson, encoder, scale, data, seed), seed, resume)


def _lesson(encoder: str, scale: HeadScale, data: str | Path | None, seed: int) -> Lesson[Any]:
    model, tokenizer = load_without_head(encoder)
    blocks = list(blocks_of(tokenizer, texts_of("train", scale.reviews, data)))
    _begin_by_frequency(model, blocks)
    batches = Batches([len(block) for block in blocks], BLOCKS_PER_STEP, seed)

    def measure(step: int) -> Measurement:
        chosen = [blocks[place] for place in batches[step]]
        batch = mask_blocks(chosen, tokenizer.mask_token_id, tokenizer.pad_token_id, (seed, step))
        return measure_answers(gap_logits(model, batch), batch.right)

    def card_of(_log: Sequence[LogRow]) -> str:
        return card(
            f"A masked-LM head on {Path(encoder).name}",
            "It fills gaps; its embeddings are that model's, its layers have learned with the head.",
            code=CODE.format(text="a text with a [MASK]"),
            training=f"{scale.steps} steps of {BLOCKS_PER_STEP} blocks of WikiText-2 and IMDB, {SHARE:.0%} of their "
            f"tokens masked; Adam, a rate of {PEAK:g} that rises and then falls in a line, seed {seed}.",
            accuracy="What it reaches stands in the report of the reproduction that trained it.",
        )

    return Lesson(
        task="masked-LM head",
        model=model,
        measure=measure,
        steps=scale.steps,
        rate=warmup_then_decay(PEAK, max(1, scale.steps // 10), scale.steps),
        recipe={"model": Path(encoder).name, "blocks": fingerprint(str(block) for block in blocks), "share": SHARE},
        card=card_of,
        save=lambda folder: _save(folder, model, tokenizer),
        optimizer=adam,
    )


def _save(folder: Path, model: Any, tokenizer: Any) -> None:
    """Write an ordinary Hugging Face folder; what is tied is written once, and tied again when it is read."""
    model.config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    once = {tensor.data_ptr(): name for name, tensor in reversed(model.state_dict().items())}
    kept = {name: tensor for name, tensor in model.state_dict().items() if once[tensor.data_ptr()] == name}
    write_tensors(folder / WEIGHTS, kept, {"format": "pt"})


@torch.no_grad()
def _begin_by_frequency(model: Any, blocks: Sequence[Block]) -> None:
    """Let the bias of each word begin as the log of its share of the text, one added to each count."""
    bias = model.get_output_embeddings().bias
    counts = torch.bincount(torch.tensor([token for block in blocks for token in block]), minlength=len(bias)) + 1.0
    bias.copy_((counts / counts.sum()).log())


# How good it is, on texts that it has not learned from.


@dataclass(frozen=True)
class HeadFigures:
    """How well gaps are filled: the perplexity, the share of gaps whose likeliest word is right, and their number."""

    perplexity: float
    right: float
    gaps: int

    def __str__(self) -> str:
        return f"perplexity {self.perplexity:.1f}, top-1 {self.right:.1%} of {self.gaps:,} held-out gaps"


@torch.no_grad()
def measure_head(model: Any, tokenizer: Any, blocks: Sequence[Block], seed: int = 0) -> HeadFigures:
    """Perplexity and top-1 on blocks, whose gaps depend on the seed alone."""
    loss, right, gaps = 0.0, 0, 0
    for number, begin in enumerate(range(0, len(blocks), BLOCKS_PER_STEP)):
        part = blocks[begin : begin + BLOCKS_PER_STEP]
        batch = mask_blocks(part, tokenizer.mask_token_id, tokenizer.pad_token_id, (seed, number))
        logits = gap_logits(model, batch)
        loss += float(F.cross_entropy(logits, batch.right, reduction="sum"))
        right += int((logits.argmax(-1) == batch.right).sum())
        gaps += len(batch.right)
    return HeadFigures(float(np.exp(loss / gaps)), right / gaps, gaps)


def held_out_blocks(tokenizer: Any, scale: HeadScale, data: str | Path | None) -> list[Block]:
    """So many blocks of test articles and test reviews, drawn by a fixed seed."""
    blocks = list(blocks_of(tokenizer, texts_of("test", scale.held_out, data)))
    drawn = np.random.default_rng(0).permutation(len(blocks))[: scale.held_out]
    return [blocks[place] for place in sorted(drawn)]
