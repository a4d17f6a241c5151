"""What a translation model thinks of every source token of some sentences, for every word it should write.

A row is one word of a target, eos included, in the order of sentences and words; its positions are the tokens of the
source, eos included. Symbols of Snell et al. 2021: α is "attention", log β (Eq. 4) is "lexical", Δ is "saliency".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from ..errors import BadInput
from .data.subwords import plain_text
from .data.translation import PairBatch, TranslatedPart, pair_batch
from .decoding import BEAMS, beam_search, in_order_of_length
from .models.bag_of_words import BagOfWords
from .models.seq2seq import Seq2Seq
from .models.word_translation import WordTranslation
from .probes.optimal_attention import optimal_attention
from .snapshots import Snapshot
from .vocabulary import Vocabulary

TOGETHER = 64
"""Sentences in one batch."""
GAP = 1e-4
"""How much likelier, in nats, the right word might still be under another attention than the best one found."""
LONGER = 10
"""How many words more than the longest reference a translation may have."""

Quantity = Callable[[Seq2Seq, PairBatch], Float[Tensor, "batch step source"]]


def attention(model: Seq2Seq, batch: PairBatch) -> Float[Tensor, "batch step source"]:
    """α, the mean over heads where there are several."""
    return model.weights(batch.source, batch.target_in, batch.real).mean(1)


def lexical(model: Seq2Seq, batch: PairBatch) -> Float[Tensor, "batch step source"]:
    """The probe: log β, the log probability of the right word with all attention on one token; padding has zero."""
    found = model.lexical(batch.source, batch.target_in, batch.target_out, batch.real)
    return found.masked_fill(~batch.real[:, None], 0.0)


def saliency(model: Seq2Seq, batch: PairBatch) -> Float[Tensor, "batch step source"]:
    """Δ: by how much the log probability of the right word grows with a number that scales a token's embedding.

    It is minus the derivative of the loss of that word, so that what helps is positive. One backward pass for each
    step gives it for all sentences of the batch.
    """
    with torch.enable_grad():
        vectors = model.embeddings(batch.source).detach()
        factors = torch.ones_like(vectors[..., 0], requires_grad=True)
        encoded = model.encode(batch.source, batch.real, vectors * factors.unsqueeze(-1))
        right = _right(model.decode(encoded, batch.target_in).logits, batch)
        found = [
            torch.autograd.grad(right[:, step].sum(), factors, retain_graph=True)[0] for step in range(right.shape[1])
        ]
    return torch.stack(found, 1)


def optimal(model: Seq2Seq, batch: PairBatch) -> Float[Tensor, "batch step source"]:
    """α_opt: the attention under which the right word is likeliest, in the variant whose logits are linear in it."""
    if model.settings.output != "sum":
        raise BadInput('The best attention is found for a model with output="sum" (Eq. 31).')
    encoded = model.encode(batch.source, batch.real)
    states = model.decode(encoded, batch.target_in).states
    by_source, by_state = (
        model.output.words(vectors).double() for vectors in (model.attention.alone(encoded.values), states)
    )
    return optimal_attention(by_source, by_state, batch.target_out, batch.real, GAP).weights.float()


QUANTITIES: Mapping[str, Quantity] = {
    "attention": attention,
    "lexical": lexical,
    "saliency": saliency,
    "optimal": optimal,
}


@dataclass(frozen=True, eq=False)
class TranslationLook:
    """What `SnapshotProbe` asks: these quantities on these sentences, token accuracy (teacher forced) and BLEU."""

    model: Seq2Seq
    part: TranslatedPart
    quantities: Sequence[str] = ("attention", "lexical")
    beams: int = BEAMS

    def __call__(self, step: int) -> Snapshot:
        """The quantities now."""
        values = {name: quantity_rows(self.model, self.part, QUANTITIES[name]) for name in self.quantities}
        performance = {
            "accuracy": token_accuracy(self.model, self.part),
            "bleu": corpus_bleu(translations(self.model, self.part, self.beams), self.part.references),
        }
        return Snapshot(step, performance, values, source_rows(self.part))


def source_rows(part: TranslatedPart) -> Bool[Tensor, "row position"]:
    """Where the source of each word to write has a token."""
    lengths = torch.tensor([len(sentence) for sentence in part.sources])
    rows = lengths.repeat_interleave(torch.tensor([len(sentence) for sentence in part.targets]))
    return torch.arange(int(lengths.max())) < rows[:, None]


@torch.no_grad()
def quantity_rows(model: Seq2Seq, part: TranslatedPart, quantity: Quantity) -> Float[Tensor, "row position"]:
    """A quantity on all sentences, computed in batches of like length; padding has zero."""
    return _rows(model.vocabulary, part, lambda batch: quantity(model, batch))


def _rows(
    vocabulary: Vocabulary, part: TranslatedPart, told: Callable[[PairBatch], Float[Tensor, "batch step source"]]
) -> Float[Tensor, "row position"]:
    widest = max(len(sentence) for sentence in part.sources)
    rows: dict[int, Float[Tensor, "step position"]] = {}
    for numbers in in_order_of_length([len(sentence) for sentence in part.sources], TOGETHER):
        batch = pair_batch(vocabulary, part, numbers)
        table = told(batch)
        padded = F.pad(table, (0, widest - table.shape[-1]))
        for place, number in enumerate(numbers):
            rows[number] = padded[place, batch.words[place]]
    return torch.cat([rows[number] for number in range(len(part))])


@torch.no_grad()
def bag_rows(model: BagOfWords, vocabulary: Vocabulary, part: TranslatedPart) -> Float[Tensor, "row position"]:
    """The log of β^px (Eq. 6): how likely the proxy translates each source word to the word to write."""

    def told(batch: PairBatch) -> Float[Tensor, "batch step source"]:
        chances = model.word_logits(batch.source).log_softmax(-1)
        right = batch.target_out.unsqueeze(1).expand(-1, batch.source.shape[1], -1)
        return chances.gather(-1, right).transpose(1, 2)

    return _rows(vocabulary, part, told)


def translation_rows(model: WordTranslation, part: TranslatedPart) -> Float[Tensor, "row position"]:
    """β of IBM Model 1 (Eq. 18), as probabilities, because many are zero; padding has zero."""
    widest = max(len(sentence) for sentence in part.sources)
    tables = [
        F.pad(torch.from_numpy(model.probabilities(source, target)), (0, widest - len(source)))
        for source, target in zip(part.sources, part.targets, strict=True)
    ]
    return torch.cat(tables)


@torch.no_grad()
def token_accuracy(model: Seq2Seq, part: TranslatedPart) -> float:
    """The share of target words, eos included, that are the likeliest after the right words before them."""
    right, words = 0, 0
    for numbers in in_order_of_length([len(sentence) for sentence in part.sources], TOGETHER):
        batch = pair_batch(model.vocabulary, part, numbers)
        told = model(batch.source, batch.target_in, batch.real).argmax(-1)
        right += int((told == batch.target_out)[batch.words].sum())
        words += int(batch.words.sum())
    return right / words


def translations(model: Seq2Seq, part: TranslatedPart, beams: int = BEAMS) -> list[str]:
    """What the model writes by itself, as plain text."""
    longest = max(len(sentence) for sentence in part.targets) + LONGER
    written: dict[int, str] = {}
    for numbers in in_order_of_length([len(sentence) for sentence in part.sources], TOGETHER):
        batch = pair_batch(model.vocabulary, part, numbers)
        for number, words in zip(numbers, beam_search(model, batch.source, batch.real, beams, longest), strict=True):
            written[number] = plain_text(model.vocabulary, words)
    return [written[number] for number in range(len(part))]


def _right(logits: Float[Tensor, "batch step vocabulary"], batch: PairBatch) -> Float[Tensor, "batch step"]:
    """The log probability of each right word; zero at padding."""
    picked = logits.gather(-1, batch.target_out.unsqueeze(-1)).squeeze(-1) - logits.logsumexp(-1)
    return picked.masked_fill(~batch.words, 0.0)


# BLEU of whole texts, by sacreBLEU (Post 2018) with its usual settings.


def corpus_bleu(written: Sequence[str], references: Sequence[str]) -> float:
    """BLEU from 0 to 100 of translations as plain text, each with one reference."""
    if len(written) != len(references) or not references:
        raise BadInput(f"BLEU needs a reference to each translation: here are {len(written)} and {len(references)}.")
    try:
        import sacrebleu
    except ImportError:
        raise BadInput('BLEU needs sacreBLEU: pip install "attnscope[lab]".') from None
    return float(sacrebleu.corpus_bleu(list(written), [list(references)]).score)
