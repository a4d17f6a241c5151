"""Snapshots: what a model thought of every position of some texts at one step of its training, kept as files.

Snell et al. 2021 compare attention, lexical knowledge and saliency of runs with each other at many steps. A training
keeps such tables as it goes; every agreement is computed afterwards from them alone. Symbols of the paper: α is
"attention", log β (Eq. 4) is "lexical", Δ is "saliency".
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn import functional as F

from ...engine import load_checkpoint, save_checkpoint
from ...errors import BadInput
from ...lab.batches import in_order_of_length
from ...lab.data import PackedTexts
from ...lab.models import BagOfWords, RecurrentClassifier, Seq2Seq, WordTranslation
from ...lab.models.seq2seq import BEAMS, beam_search
from ...lab.probes.optimal_attention import optimal_attention
from ...lab.probes.saliency import read_with_saliency
from ...lab.vocabulary import Vocabulary
from .sentence_pairs import PairBatch, TranslatedPart, pair_batch, plain_text

SUFFIX = ".safetensors"


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The quantities of each position at one step of a training, and how well the model did then.

    A row is a text, or one word of a translation. The names of values are "attention" (α), "lexical" (β as a logit or
    a log probability) and "saliency" (Δ, positive helps); what stands where `real` is false means nothing.
    """

    step: int
    performance: Mapping[str, float]
    values: Mapping[str, Float[Tensor, "row position"]]
    real: Bool[Tensor, "row position"]

    def __post_init__(self) -> None:
        if bool((self.real[:, 1:] & ~self.real[:, :-1]).any()):
            raise BadInput("The positions of a snapshot's row stand at its beginning, and its padding behind them.")


def save_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write a snapshot, all at once; padding is not kept.

    >>> path = getfixture("tmp_path") / "10.safetensors"
    >>> table, real = torch.tensor([[0.7, 0.3], [1.0, 0.0]]), torch.tensor([[True, True], [True, False]])
    >>> save_snapshot(path, Snapshot(10, {"accuracy": 0.5}, {"attention": table}, real))
    >>> load_snapshot(path).values["attention"].tolist()[1]
    [1.0, 0.0]
    """
    save_checkpoint(
        path,
        {
            "step": snapshot.step,
            "performance": dict(snapshot.performance),
            "lengths": snapshot.real.sum(1),
            "values": {name: table[snapshot.real] for name, table in snapshot.values.items()},
        },
    )


def load_snapshot(path: Path) -> Snapshot:
    """The snapshot that was written, with zeros where there is padding."""
    parts = load_checkpoint(path)
    if set(parts) != {"step", "performance", "lengths", "values"}:
        raise BadInput(f"{path} is not a snapshot of a training.")
    lengths = parts["lengths"]
    real = torch.arange(int(lengths.max()) if len(lengths) else 0) < lengths[:, None]
    values = {name: torch.zeros(real.shape, dtype=flat.dtype) for name, flat in parts["values"].items()}
    for name, flat in parts["values"].items():
        values[name][real] = flat
    return Snapshot(parts["step"], parts["performance"], values, real)


def load_snapshots(folder: Path) -> Iterator[Snapshot]:
    """The snapshots of a folder one by one, in the order of their steps."""
    # by number, because a kill may have left half a file beside them
    found = [path for path in Path(folder).glob(f"*{SUFFIX}") if path.stem.isdecimal()]
    files = sorted(found, key=lambda path: int(path.stem))
    if not files:
        raise BadInput(f"There are no snapshots in {folder}.")
    return map(load_snapshot, files)


def best_snapshot(snapshots: Iterable[Snapshot], by: str = "accuracy") -> Snapshot:
    """The first snapshot with the best performance of that name."""
    return max(snapshots, key=lambda snapshot: snapshot.performance[by])


@dataclass(frozen=True)
class SnapshotProbe:
    """A probe that keeps a snapshot of what `look(step)` sees in `folder`, one file to each of its steps.

    Its row in the log is the performance. A training that is continued writes the same snapshots again.
    """

    name: str
    folder: Path
    steps: Container[int]
    look: Callable[[int], Snapshot]

    def __call__(self, step: int) -> dict[str, int | float | str]:
        """Look, keep, and tell how well the model does."""
        snapshot = self.look(step)
        save_snapshot(self.folder / f"{step}{SUFFIX}", snapshot)
        return dict(snapshot.performance)


# What a recurrent classifier thinks of every word.


TEXT_QUANTITIES = ("attention", "lexical", "saliency")
TOGETHER = 64
"""Texts or sentences that are looked at at once."""


def look_at(model: RecurrentClassifier, texts: PackedTexts, quantities: Sequence[str], step: int) -> Snapshot:
    """Quantities of every position of these texts, with accuracy and mean loss.

    They are "attention", α; "lexical", the logit of β for the right class; and "saliency", Δ, which takes a backward
    pass.
    """
    if unknown := [name for name in quantities if name not in TEXT_QUANTITIES]:
        raise BadInput(f"There is no quantity {unknown[0]!r}: choose of {', '.join(TEXT_QUANTITIES)}.")
    # texts of like length together, so that little is computed for padding
    order = np.argsort(texts.lengths, kind="stable")
    width = int(texts.lengths.max())
    values = {name: torch.zeros(len(texts), width) for name in quantities}
    logits = torch.zeros(len(texts), 1)
    labels = torch.from_numpy(texts.labels)
    for start in range(0, len(order), TOGETHER):
        numbers = order[start : start + TOGETHER]
        found, answers = _look_at_batch(model, texts, numbers, with_saliency="saliency" in quantities)
        chosen = torch.from_numpy(numbers)
        logits[chosen] = answers
        for name, table in values.items():
            table[chosen, : found[name].shape[1]] = found[name]
    real = torch.arange(width) < torch.from_numpy(texts.lengths)[:, None]
    right = float((model.predicted(logits) == labels).double().mean())
    return Snapshot(step, {"accuracy": right, "loss": float(model.loss(logits, labels))}, values, real)


def _look_at_batch(
    model: RecurrentClassifier, texts: PackedTexts, numbers: Int64[np.ndarray, " text"], *, with_saliency: bool
) -> tuple[dict[str, Float[Tensor, "text token"]], Float[Tensor, "text 1"]]:
    ids, real = (torch.from_numpy(table) for table in texts.padded(numbers))
    labels = torch.from_numpy(texts.labels[numbers])
    found: dict[str, Float[Tensor, "text token"]] = {}
    if with_saliency:
        reading, found["saliency"] = read_with_saliency(model, ids, real, labels)
    else:
        reading = model.read(model.embeddings(ids), real)
    found["attention"] = reading.weights
    found["lexical"] = (2 * labels - 1)[:, None] * model.output(reading.states).squeeze(-1)
    return found, reading.logits


# What a translation model thinks of every source token, for every word it should write. A row is one word of a target,
# eos included, in the order of sentences and words; its positions are the tokens of the source, eos included.


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
        logits = model.decode(encoded, batch.target_in).logits
        picked = logits.gather(-1, batch.target_out.unsqueeze(-1)).squeeze(-1) - logits.logsumexp(-1)
        right = picked.masked_fill(~batch.words, 0.0)
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


def _batches(vocabulary: Vocabulary, part: TranslatedPart) -> Iterator[tuple[Sequence[int], PairBatch]]:
    """All pairs in batches of like length, each with the numbers of its pairs."""
    for numbers in in_order_of_length([len(sentence) for sentence in part.sources], TOGETHER):
        yield numbers, pair_batch(vocabulary, part, numbers)


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
    vocabulary: Vocabulary, part: TranslatedPart, quantity: Callable[[PairBatch], Float[Tensor, "batch step source"]]
) -> Float[Tensor, "row position"]:
    widest = max(len(sentence) for sentence in part.sources)
    rows: dict[int, Float[Tensor, "step position"]] = {}
    for numbers, batch in _batches(vocabulary, part):
        table = quantity(batch)
        padded = F.pad(table, (0, widest - table.shape[-1]))
        for place, number in enumerate(numbers):
            rows[number] = padded[place, batch.words[place]]
    return torch.cat([rows[number] for number in range(len(part))])


@torch.no_grad()
def bag_rows(model: BagOfWords, vocabulary: Vocabulary, part: TranslatedPart) -> Float[Tensor, "row position"]:
    """The log of β^px (Eq. 6): how likely the proxy translates each source word to the word to write."""

    def log_chances(batch: PairBatch) -> Float[Tensor, "batch step source"]:
        chances = model.word_logits(batch.source).log_softmax(-1)
        right = batch.target_out.unsqueeze(1).expand(-1, batch.source.shape[1], -1)
        return chances.gather(-1, right).transpose(1, 2)

    return _rows(vocabulary, part, log_chances)


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
    for _, batch in _batches(model.vocabulary, part):
        likeliest = model(batch.source, batch.target_in, batch.real).argmax(-1)
        right += int((likeliest == batch.target_out)[batch.words].sum())
        words += int(batch.words.sum())
    return right / words


def translations(model: Seq2Seq, part: TranslatedPart, beams: int = BEAMS) -> list[str]:
    """What the model writes by itself, as plain text."""
    longest = max(len(sentence) for sentence in part.targets) + LONGER
    written: dict[int, str] = {}
    for numbers, batch in _batches(model.vocabulary, part):
        for number, words in zip(numbers, beam_search(model, batch.source, batch.real, beams, longest), strict=True):
            written[number] = plain_text(model.vocabulary, words)
    return [written[number] for number in range(len(part))]


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
