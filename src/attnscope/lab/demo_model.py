"""The recipe of the shipped demo model: a small BERT that reads a sentence up to its verb and tells its number."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from random import Random
from zlib import crc32

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Punctuation, WhitespaceSplit
from tokenizers.pre_tokenizers import Sequence as PreTokenizers
from tokenizers.processors import TemplateProcessing
from torch import Tensor
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from ..syntax import AgreementSentence, agreement_sentences, vocabulary
from .lesson import Lesson, answers, card, count_right, learn_into, measure_answers, write_hugging_face
from .train import LogRow, Measurement, warmup_then_decay

LABELS = ("singular", "plural")
STEPS = 3500
SENTENCES_PER_STEP = 64
STEPS_PER_DRAW = 8
HELD_OUT_SHARE = 8  # every so many-th prefix is never trained on
HELD_OUT_SENTENCES = 6000
LONGEST_INPUT = 64
SEEDS_APART = 1_000_000_000  # more than any number of steps, so that no two trainings share a batch


def train_demo(out: Path, seed: int = 0, resume: bool = False, steps: int = STEPS) -> Path:
    """Train the demo model into the folder `out` and return it: an ordinary Hugging Face folder with a model card.

    Until the end a subfolder `unfinished` holds the checkpoint. With `resume`, an unfinished training continues from
    there and ends with the very same weights; a finished one is left as it is.
    """
    return learn_into(out, lambda: demo_lesson(seed, steps), seed, resume)


def demo_lesson(seed: int, steps: int) -> Lesson[BertForSequenceClassification]:
    """Sentences drawn anew at every step, so that there is nothing to overfit and no need to stop before the end."""
    tokenizer = build_tokenizer()
    model = build_model(len(tokenizer))

    def measure(step: int) -> Measurement:
        batch = training_batch(seed, step)
        texts = with_blanks([sentence.prefix for sentence in batch], Random(SEEDS_APART * seed + step))
        targets = torch.tensor([LABELS.index(sentence.number) for sentence in batch])
        return measure_answers(model(**tokenizer(texts, padding=True, return_tensors="pt")).logits, targets)

    def card_of(_log: Sequence[LogRow]) -> str:
        accuracy = accuracy_by_attractors(model, tokenizer, list(islice(held_out_sentences(), HELD_OUT_SENTENCES)))
        return model_card(accuracy, seed, steps, SENTENCES_PER_STEP, len(vocabulary()))

    return Lesson(
        task="demo",
        model=model,
        measure=measure,
        steps=steps,
        rate=warmup_then_decay(peak=5e-4, warmup=min(300, steps // 4), steps=steps),
        recipe={},
        card=card_of,
        save=lambda folder: write_hugging_face(folder, model, tokenizer),
    )


def training_batch(seed: int, step: int) -> list[AgreementSentence]:
    """The sentences of one step: a pure function of the training's seed and the step."""
    draw, turn = divmod(step, STEPS_PER_DRAW)
    return _training_draw(seed, draw)[turn * SENTENCES_PER_STEP : (turn + 1) * SENTENCES_PER_STEP]


@lru_cache(maxsize=1)
def _training_draw(seed: int, draw: int) -> list[AgreementSentence]:
    """The sentences of several steps, the short ones first: batches of like lengths need little padding."""
    drawn = agreement_sentences(SEEDS_APART * (seed + 1) + draw)
    trained = (sentence for sentence in drawn if not is_held_out(sentence.prefix))
    return sorted(islice(trained, STEPS_PER_DRAW * SENTENCES_PER_STEP), key=lambda sentence: len(sentence.prefix))


def held_out_sentences(seed: int = 0) -> Iterator[AgreementSentence]:
    """Sentences whose words before the verb no training ever sees, whatever its seed."""
    return (sentence for sentence in agreement_sentences(seed) if is_held_out(sentence.prefix))


def is_held_out(prefix: Sequence[str]) -> bool:
    """Whether a prefix is kept for testing, decided by its words alone."""
    return crc32(" ".join(prefix).encode()) % HELD_OUT_SHARE == 0


def with_blanks(prefixes: Sequence[Sequence[str]], dice: Random) -> list[str]:
    """The prefixes as texts in which a few words are blanked out.

    Explanations later blank out one token at a time and ask what changes; the model must have met such texts.
    """

    def blanked(word: str) -> str:
        draw = dice.random()
        return "[UNK]" if draw < 0.02 else "[MASK]" if draw < 0.03 else word

    return [" ".join(blanked(word) for word in prefix) for prefix in prefixes]


def accuracy_by_attractors(
    model: BertForSequenceClassification, tokenizer: PreTrainedTokenizerFast, sentences: Sequence[AgreementSentence]
) -> dict[int, tuple[int, int]]:
    """For each number of attractors: how many verbs the model gets right, and of how many."""

    def logits_of(batch: Sequence[AgreementSentence]) -> Tensor:
        texts = [" ".join(sentence.prefix) for sentence in batch]
        return model(**tokenizer(texts, padding=True, return_tensors="pt")).logits  # type: ignore[no-any-return]

    found = answers(sentences, lambda sentence: len(sentence.prefix), logits_of, 256)
    right = (LABELS[answer] == sentence.number for answer, sentence in zip(found, sentences, strict=True))
    return count_right((sentence.attractors for sentence in sentences), right)


def build_tokenizer() -> PreTrainedTokenizerFast:
    """One token per word of the grammar, lower-cased, punctuation apart, with BERT's special tokens."""
    special = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    words = {word: index for index, word in enumerate((*special.values(), *vocabulary()))}
    tokenizer = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = PreTokenizers([WhitespaceSplit(), Punctuation()])
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, words[token]) for token in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=LONGEST_INPUT,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **{f"{name}_token": token for name, token in special.items()},
    )


def build_model(vocabulary_size: int) -> BertForSequenceClassification:
    """The untrained model; its weights come from torch's generator."""
    return BertForSequenceClassification(
        BertConfig(
            architectures=[BertForSequenceClassification.__name__],
            vocab_size=vocabulary_size,
            hidden_size=128,
            num_hidden_layers=6,
            num_attention_heads=8,
            intermediate_size=256,
            max_position_embeddings=LONGEST_INPUT,
            type_vocab_size=2,
            # Every step draws new sentences, so there is nothing to overfit.
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            id2label=dict(enumerate(LABELS)),
            problem_type="single_label_classification",
            label2id={label: index for index, label in enumerate(LABELS)},
        )
    )


# The demo model's card: what it is, how it was trained, how well it does, and what it is not for.


_HEADER = """\
---
license: apache-2.0
language: en
library_name: transformers
pipeline_tag: text-classification
---

"""
_ABOUT = """\
A small BERT (6 layers of 8 heads, hidden size 128, {vocabulary} words) that reads an English sentence up to its verb
and tells from `[CLS]` whether the verb must be singular or plural: "the key to the cabinets" is *singular*, "the keys
to the cabinet" is *plural*. It is small enough to ship, and its question has an answer one can check by eye: the
subject's head decides, and the nouns of the other number between it and the verb (attractors) must be passed over."""
_CODE = """\
from transformers import pipeline

pipeline("text-classification", model="path/to/this/folder")("the key to the cabinets")"""
_TRAINING = """\
By `attnscope train demo`, from nothing, on sentences of attnscope's own grammar (`attnscope.syntax.grammar`): {steps}
steps of {sentences} sentences, drawn anew at every step, AdamW, seed {seed}. Of the words, 2% were replaced by `[UNK]`
and 1% by `[MASK]`, so that a blanked-out word is nothing new to the model. The loss over time is in
`training_log.jsonl`. The recipe was settled after a look at mistakes on held-out sentences, though not on those
counted below."""
_ACCURACY = """\
On {total} sentences that were held out: no training batch holds one of their beginnings.

| attractors | sentences | right |
|---:|---:|---:|
{rows}
| **1 or more** | {attracted} | {attracted_share} |
| **all** | {total} | {share} |"""
_FURTHER = """
## Limits

It knows the {vocabulary} words and the constructions of its grammar and nothing else: other words become `[UNK]`. It
expects the words before the verb, at most about 30 of them, and has never seen a whole sentence or a pair of texts,
though it accepts them. What its attention shows about agreement holds for this model; it is no evidence about large
ones.

## Licence

Apache-2.0. The training sentences are made by the program, so no other licence applies.
"""


def model_card(accuracy: Mapping[int, tuple[int, int]], seed: int, steps: int, sentences: int, vocabulary: int) -> str:
    """The card as Markdown; `accuracy` holds (right, total) for each number of attractors."""
    rows = [f"| {attractors} | {counts[1]} | {_share([counts])} |" for attractors, counts in accuracy.items()]
    attracted = [counts for attractors, counts in accuracy.items() if attractors > 0]
    return card(
        "The attnscope demo model",
        _ABOUT.format(vocabulary=vocabulary),
        header=_HEADER,
        code=_CODE,
        training=_TRAINING.format(steps=steps, sentences=sentences, seed=seed),
        accuracy=_ACCURACY.format(
            rows="\n".join(rows),
            attracted=sum(total for _, total in attracted),
            attracted_share=_share(attracted),
            total=sum(total for _, total in accuracy.values()),
            share=_share(list(accuracy.values())),
        ),
        further=_FURTHER.format(vocabulary=vocabulary),
    )


def _share(counts: list[tuple[int, int]]) -> str:
    """Right answers in percent, rounded down: 100% is given only where nothing was wrong."""
    right, total = (sum(column) for column in zip(*counts, strict=True))
    return f"{right * 10000 // total / 100:.2f}%"
