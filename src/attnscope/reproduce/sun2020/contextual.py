"""Beyond the paper, its second next step: the classifier on the words of a frozen contextual encoder.

h_j is the encoder's last hidden state of word j, and does not change; V and W alone are trained, as in the other runs:
a_j = h_j · V / λ with λ = √width (the paper's 10 is √100), α = softmax(a), s = Σ α_j h_j · W, dropout of a half on h_j
and on their weighted mean, Adagrad at .02 that falls by .001 with the updates, 100 texts to a step, V from N(0, 1), the
first epoch that is best on dev. "Local" scores of a word are the means over its occurrences in training texts, "global"
ones (without that word in their names) those of the word alone as a text.
"""

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float
from torch import Tensor

from ...capture import InstrumentedModel
from ...files import written_atomically
from ...lab.data import ClassifiedTexts, PackedTexts
from ...lab.models import AttentionClassifier
from ...lab.token_classes import class_counts, gamma
from ...progress import items_done, working
from ..recipe import check_begun, keep_recipe
from .contextual_training import Reading, ReadTexts, accuracy, scores_of, trained_on, weights_of
from .encoder_states import encoder_named, kept_states
from .scales import Scale
from .summaries import comparisons
from .word_tables import MATCHED, NEGATIVE, OUTLIER, POSITIVE, kinds_of

VARIANT = "contextual"
PARTS = ("train", "dev", "test")
CERTAIN = 0.001


def contextual_words(
    folder: Path, data: ClassifiedTexts, seeds: Sequence[int], scale: Scale, encoder: str | Path
) -> pd.DataFrame:
    """A row for each word of each kind and seed, from runs trained now or kept in `folder` from before.

    Columns: those of `word_table`, with local_polarity and local_attention, those that tell runs apart, as
    `comparisons` and `score_summary` take them, and test_accuracy, best_epoch and context_dot_output (V·W).
    The states are kept until all seeds are done; of SST, with an encoder 384 wide, they take 131 MB.
    """
    place = folder / f"{data.name}-{VARIANT}"
    training = {name: value for name, value in scale.training("dot").items() if name != "width"}
    recipe = {"encoder": Path(encoder).name, **training}
    check_begun(place, recipe)
    files = {seed: place / f"seed-{seed}.parquet" for seed in seeds}
    if missing := [seed for seed in seeds if not files[seed].exists()]:
        with working("Loading the encoder"):
            model = encoder_named(str(encoder))
        keep_recipe(place, recipe)
        reading = read_by(model, data, place / "states")
        with items_done("Classifiers on the encoder") as watch:
            for done, seed in enumerate(missing):
                watch(done, len(missing))
                table = run_of(data, reading, seed, **training)
                with written_atomically(files[seed]) as temporary:
                    table.to_parquet(temporary)
        shutil.rmtree(place / "states", ignore_errors=True)
    return pd.concat([pd.read_parquet(file) for file in files.values()], ignore_index=True)


def read_by(model: InstrumentedModel, data: ClassifiedTexts, folder: Path) -> Reading:
    """The states of all texts, and of the words of each kind alone; parts are kept in the folder."""
    tokens = data.vocabulary.tokens
    words = np.unique(np.concatenate(list(_kinds(data).values())))
    parts = {}
    for part in PARTS:
        packed: PackedTexts = getattr(data, part)
        with items_done(f"The encoder reads {part} texts") as watch:
            texts = [[tokens[number] for number in text] for text in packed]
            parts[part] = ReadTexts(packed, kept_states(model, texts, folder / part, watch))
    with items_done("The encoder reads words alone") as watch:
        alone = kept_states(model, [[tokens[number]] for number in words], folder / "alone", watch)
    return Reading(parts, alone, words)


def _kinds(data: ClassifiedTexts) -> dict[str, np.ndarray]:
    return {kind: numbers for kind, numbers in kinds_of(data).items() if kind != OUTLIER}


def run_of(data: ClassifiedTexts, reading: Reading, seed: int, *, epochs: int, patience: int | None) -> pd.DataFrame:
    """Train the classifier of a seed, and tell the words' scores in it."""
    model, best_epoch = trained_on(reading, data.classes, seed, epochs, patience)
    scored = scored_words(data, model, reading)
    return scored.assign(
        data=data.name,
        variant=VARIANT,
        scaling=model.settings.scaling,
        seed=seed,
        penalty=0.0,
        test_accuracy=accuracy(model, reading.parts["test"]),
        best_epoch=best_epoch,
        context_dot_output=float((model.output.weight[0] @ model.context).detach()),
    )


def scored_words(data: ClassifiedTexts, model: AttentionClassifier, reading: Reading) -> pd.DataFrame:
    """The words of each kind with both kinds of scores; the weight is the mean over occurrences in test texts."""
    counts = class_counts(data.train, len(data.classes), len(data.vocabulary))
    train, test = reading.parts["train"], reading.parts["test"]
    alone, everywhere = scores_of(model, reading.alone), scores_of(model, train.states)
    mean = partial(_means, size=len(data.vocabulary))
    columns = {
        "count": counts.sum(0),
        "gamma": gamma(counts),
        "attention": _spread(alone.attention, reading.words, len(data.vocabulary)),
        "weight": mean(weights_of(model, test), test.texts.tokens),
        "polarity": _spread(alone.polarity[:, 0], reading.words, len(data.vocabulary)),
        "local_attention": mean(everywhere.attention, train.texts.tokens),
        "local_polarity": mean(everywhere.polarity[:, 0], train.texts.tokens),
    }
    tables = [
        pd.DataFrame(
            {"word": data.vocabulary.decode(numbers.tolist()), "kind": kind}
            | {name: values[numbers] for name, values in columns.items()}
        )
        for kind, numbers in _kinds(data).items()
    ]
    return pd.concat(tables, ignore_index=True)


def _means(values: Float[Tensor, " occurrence"], tokens: np.ndarray, size: int) -> np.ndarray:
    """The mean over the occurrences of each word; not a number where it has none."""
    sums, counts = np.bincount(tokens, values.double().numpy(), size), np.bincount(tokens, minlength=size)
    means = np.full(size, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def _spread(values: Float[Tensor, " word"], numbers: np.ndarray, size: int) -> np.ndarray:
    """The values at the numbers of their words; not a number elsewhere."""
    table = np.full(size, np.nan)
    table[numbers] = values.numpy()
    return table


def contextual_finding(words: pd.DataFrame) -> str:
    """What came out, in three sentences: polarity, attention against words as frequent, accuracy."""
    table = comparisons(words)
    seeds = words["seed"].nunique()

    def told(score: str, *pairs: tuple[str, str]) -> str:
        shares, certain = [], pd.Series(True, index=words["seed"].unique())
        for first, second in pairs:
            rows = table[(table["first"] == first) & (table["second"] == second) & (table["score"] == score)]
            shares.append(f"{rows['above'].mean():.2f}")
            certain &= (rows.set_index("seed")["p"] < CERTAIN).reindex(certain.index, fill_value=False)
        return f"{' and '.join(shares)} (p < {CERTAIN} in {int(certain.sum())} of {seeds} seeds)"

    attended = [(POSITIVE, MATCHED), (NEGATIVE, MATCHED)]
    apart = (POSITIVE, NEGATIVE)
    right = words.groupby("seed")["test_accuracy"].first().mean()
    return (
        f"A positive word has a higher polarity than a negative one in {told('local_polarity', apart)} of pairs by its "
        f"occurrences, and in {told('polarity', apart)} alone. Positive and negative words have more attention than "
        f"neutral ones of like frequency in {told('local_attention', *attended)} of pairs by their occurrences, and in "
        f"{told('attention', *attended)} alone. Test accuracy is {right:.3f}."
    )
