"""Figure 4: to whom a masked pronoun attends, and which pronoun a masked language model puts there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ...errors import BadInput
from ...paint import CATEGORICAL
from ...record import AttentionRecord
from ...record.words import word_groups, word_labels
from ...views.printing import INK, PAGE, QUIET, Plot, drawn_figure, whole_numbers
from ..claims import rows_with
from ..document import Block, Code, Figure, Paragraph, Piece, Table, under
from .drawing import TITLES, maps_by_method

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
        rows = rows_with(self.shares, sentence=sentence.shown, method=method)
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
            row = {"sentence": sentence.shown, "pronoun": pronoun}
            probabilities.append(row | {"probability": chance, "relative": chance / sum(chances.values())})
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


# Figure 4 as it stands in the report: the pronouns a masked language model prefers, and whom the mask attends to.


TITLE = "Figure 4: whom a masked pronoun attends to"
ROW = 1.6
"""Inches of the panels of one sentence."""
STYLES: tuple[dict[str, Any], ...] = (
    {"color": CATEGORICAL[0], "marker": "o", "linestyle": "solid"},
    {"color": CATEGORICAL[5], "marker": "s", "linestyle": (0, (4, 1.5))},
)
"""A pronoun and the word that it would mean have one colour; words are told apart by more than that."""
TIE = 1e-9
"""Shares this close are the same: deep flow is saturated, and then often equal for both words."""


def pronoun_figure(found: Pronouns) -> Plot:
    """For each sentence the relative probability of its pronouns, then the shares of its words by layer and method."""
    with drawn_figure(PAGE, ROW * len(found.sentences)) as figure:
        parts = figure.subfigures(len(found.sentences), 1, squeeze=False)
        for part, sentence in zip(parts.flat, found.sentences, strict=True):
            part.suptitle(sentence.shown, fontsize=8, x=0.01, ha="left", color=INK, fontweight="bold")
            bars, *panels = part.subplots(1, 1 + len(TITLES), width_ratios=[0.55, *[1] * len(TITLES)])
            _draw_bars(bars, found.relative(sentence))
            rows = found.shares[found.shares["sentence"] == sentence.shown]
            for axes, method in zip(panels, TITLES, strict=True):
                _draw_lines(axes, rows[rows["method"] == method], list(sentence.words.values()))
                axes.set_ylim(0, 1.08 * float(rows["share"].max()))
                axes.set_title(TITLES[method], loc="left", fontsize=8, pad=3)
                axes.tick_params(labelleft=axes is panels[0])
            panels[0].set_ylabel("share")
            panels[-1].legend(loc="upper left", bbox_to_anchor=(1, 1), borderaxespad=0.2, handlelength=2.2)
    return Plot(
        figure,
        f"A masked pronoun in {found.model}: left the relative probability of the two pronouns, then what the mask has"
        " from each word that could be meant, by layer, for raw attention, rollout and flow; heads averaged, the pieces"
        " of a word summed, flow divided by its sum over the tokens.",
    )


def _draw_bars(axes: Any, relative: dict[str, float]) -> None:
    colours = [style["color"] for style in STYLES]
    axes.bar(list(relative), list(relative.values()), 0.6, color=colours)
    axes.axhline(0.5, color=QUIET, linewidth=0.6, linestyle=(0, (4, 2)))
    axes.set(ylim=(0, 1), yticks=[0, 0.5, 1], xlim=(-0.6, len(relative) - 0.4))
    axes.set_ylabel("probability")
    axes.tick_params(axis="x", length=0)


def _draw_lines(axes: Any, rows: pd.DataFrame, words: Sequence[str]) -> None:
    for word, style in zip(words, STYLES, strict=True):
        of_word = rows[rows["word"] == word]
        axes.plot(of_word["layer"], of_word["share"], label=word, linewidth=1, markersize=2.5, **style)
    axes.xaxis.set_major_locator(whole_numbers(6))
    axes.set_xlabel("layer")


def pronoun_blocks(found: Pronouns | None) -> list[Block]:
    """Figure 4 of a masked language model, or what is missing where there is none."""
    if found is not None:
        return list(_figure_blocks(found))
    missing: list[Piece] = [
        "Not drawn: it needs a masked language model, which must be given with ",
        Code("--model"),
        ", for example ",
        Code("--model bert-base-uncased"),
        " or the folder of one; or an encoder, given with ",
        Code("--head-on"),
        ", that a head is trained on.",
    ]
    return under(TITLE, Paragraph(missing))


def _figure_blocks(found: Pronouns) -> Iterator[Block]:
    words = (
        ". In the paper, in the first sentence rollout and flow agree with each other and with the model's"
        " answer, while raw attention varies much from layer to layer and ends against it; in the second only"
        " flow agrees. A pronoun has the colour of the word it would mean: look whether the line of the"
        " likelier pronoun's word is the upper one in the last layer."
    )
    figure = Figure("fig04_pronouns", pronoun_figure(found), ["A pronoun is masked in ", Code(found.model), words])
    yield from under(TITLE, figure)
    names = ["sentence", "predicted", "it would mean", *(f"{title}, last layer" for title in TITLES.values())]
    yield Table(names, [_outcome_row(found, sentence) for sentence in found.sentences])


def _outcome_row(found: Pronouns, sentence: MaskedSentence) -> list[list[Piece]]:
    """What is predicted, and for each method the shares of both words and whether they agree with it."""
    pronoun = found.predicted(sentence)
    meant = sentence.words[pronoun]
    cells: list[Piece] = [Code(sentence.shown), f"{pronoun} ({found.relative(sentence)[pronoun]:.2f})", meant]
    for method in TITLES:
        shares = found.last(sentence, method)
        both = ", ".join(f"{word} {share:.3f}" for word, share in shares.items())
        ahead = shares[meant] - max(share for word, share in shares.items() if word != meant)
        cells.append(f"{'tie' if abs(ahead) <= TIE else 'agrees' if ahead > 0 else 'differs'}: {both}")
    return [[cell] for cell in cells]
