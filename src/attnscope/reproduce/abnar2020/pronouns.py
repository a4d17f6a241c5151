"""Figure 4: to whom a masked pronoun attends, and which pronoun a masked language model puts there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ...errors import BadInput
from ...record import AttentionRecord
from ...record.words import word_groups, word_labels
from .attention_graph import maps_by_method

KINDS = {
    "classifier": "a classifier",
    "causal_lm": "a causal language model",
    "encoder_decoder": "an encoder-decoder",
    "encoder": "an encoder without such a head",
    "masked_lm": "an encoder without such a head",
}


@dataclass(frozen=True)
class MaskedSentence:
    """A sentence with a gap, and the word that each pronoun in it would refer to."""

    text: str
    """With `{}` for the pronoun."""
    words: dict[str, str]
    """The word by its pronoun."""

    @property
    def shown(self) -> str:
        """The sentence for readers, whatever the model's own mask is."""
        return self.text.format("[MASK]")


SENTENCES = (
    MaskedSentence("The author talked to Sara about {} book.", {"his": "author", "her": "Sara"}),
    MaskedSentence("Mary convinced John of {} love.", {"his": "John", "her": "Mary"}),
)
"""The paper's two."""


@dataclass(frozen=True)
class Pronouns:
    """What a masked language model does in these sentences."""

    model: str
    sentences: Sequence[MaskedSentence]
    shares: pd.DataFrame
    """What the mask has from each word: sentence, method, layer (from 1), word, share; flow is divided by its sum."""
    probabilities: pd.DataFrame
    """Which pronoun is put there: sentence, pronoun, probability, and relative: of the two pronouns together."""

    def relative(self, sentence: MaskedSentence) -> dict[str, float]:
        """The relative probability of each pronoun of a sentence."""
        rows = self.probabilities[self.probabilities["sentence"] == sentence.shown]
        return dict(zip(rows["pronoun"], rows["relative"], strict=True))

    def predicted(self, sentence: MaskedSentence) -> str:
        """The pronoun that the model prefers."""
        relative = self.relative(sentence)
        return max(relative, key=relative.__getitem__)

    def last(self, sentence: MaskedSentence, method: str) -> dict[str, float]:
        """The share of each word in the last layer."""
        rows = self.shares[(self.shares["sentence"] == sentence.shown) & (self.shares["method"] == method)]
        rows = rows[rows["layer"] == rows["layer"].max()]
        return dict(zip(rows["word"], rows["share"], strict=True))


def masked_pronouns(model: Any, sentences: Sequence[MaskedSentence] = SENTENCES) -> Pronouns:
    """Put the model's mask in the place of each pronoun, and see what it has from the words that could be meant."""
    _check_model(model)
    shares, probabilities, name = [], [], ""
    for sentence in sentences:
        record = model.record(sentence.text.format(model.tokenizer.mask_token))
        ids, name = record.inputs["input_ids"], str(record.card["model"])
        mask = int(record.readout.argmax())
        if int(ids[mask]) != model.tokenizer.mask_token_id:
            raise BadInput(f"{model.name} is not read at its mask: load it without readout=.")
        found = model.probabilities([record.inputs])[0]
        chances = {
            pronoun: float(found[_pronoun_id(model, sentence, pronoun, ids.tolist(), mask)])
            for pronoun in sentence.words
        }
        for pronoun, chance in chances.items():
            told = {"probability": chance, "relative": chance / sum(chances.values())}
            probabilities.append({"sentence": sentence.shown, "pronoun": pronoun} | told)
        pieces = {word: pieces_of(record, word) for word in sentence.words.values()}
        for method, weights in maps_by_method(record).items():
            for number, layer in zip(record.layers, weights, strict=True):
                for word, places in pieces.items():
                    row = {"sentence": sentence.shown, "method": method, "layer": number + 1, "word": word}
                    shares.append(row | {"share": float(layer[mask, places].sum())})
    return Pronouns(name, tuple(sentences), pd.DataFrame(shares), pd.DataFrame(probabilities))


def _check_model(model: Any) -> None:
    """Refuse what cannot fill a gap."""
    task = getattr(model, "task", None)
    if task != "masked_lm" or model.model.get_output_embeddings() is None:
        raise BadInput(
            f"Figure 4 needs a masked language model with its head, such as bert-base-uncased; {_name(model)} is"
            f" {KINDS.get(str(task), 'a model of another kind')}."
        )
    if model.tokenizer.mask_token is None:
        raise BadInput(f"The tokenizer of {_name(model)} has no mask token, so no pronoun can be masked.")


def _name(model: Any) -> str:
    return str(getattr(model, "name", type(model).__name__))


def _pronoun_id(model: Any, sentence: MaskedSentence, pronoun: str, masked: list[int], mask: int) -> int:
    """The token that a pronoun is in its place: markers of a space before it are part of it."""
    ids = model.tokenizer(sentence.text.format(pronoun), verbose=False)["input_ids"]
    fits = len(ids) == len(masked) and ids[:mask] == masked[:mask] and ids[mask + 1 :] == masked[mask + 1 :]
    if not fits or ids[mask] == model.tokenizer.unk_token_id:
        raise BadInput(
            f"“{pronoun}” is not one token of {_name(model)}, so it has no probability of its own: give an English"
            " model with his and her in its vocabulary."
        )
    return int(ids[mask])


def pieces_of(record: AttentionRecord, word: str) -> list[int]:
    """The tokens of a word, wherever the tokenizer has cut it and whether or not it keeps capitals."""
    groups = word_groups(record.word_ids, record.special)
    labels = word_labels(record.tokens, groups)
    found = [group for group, label in zip(groups, labels, strict=True) if label.casefold() == word.casefold()]
    if len(found) != 1:
        raise BadInput(f"The word “{word}” is not among the words this model reads: {', '.join(labels)}.")
    return found[0]
