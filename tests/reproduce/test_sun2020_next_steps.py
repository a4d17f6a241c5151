"""The next steps of Sun & Lu (2020): pretrained vectors, and a frozen contextual encoder."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertForSequenceClassification, BertModel, PreTrainedTokenizerFast

from attnscope.errors import BadInput
from attnscope.lab.data import ClassifiedTexts, PackedTexts
from attnscope.lab.data.classified import classified_texts
from attnscope.lab.sweep import RunSettings, initial_weights, sweep, train_epoch
from attnscope.lab.word_vectors import word_vectors
from attnscope.reproduce.sun2020 import next_steps
from attnscope.reproduce.sun2020.figures import contextual_finding, pretrained_finding
from attnscope.reproduce.sun2020.paper import SCALES, Scale
from attnscope.reproduce.sun2020.words import comparisons, rare_word_groups, rare_words, score_summary

POSITIVE = ["superb", "lovely", "moving", "witty"]
NEGATIVE = ["awful", "boring", "clumsy", "dreary"]
FILLING = ["the", "film", "a", "scene", "plot", "actor", "is", "was", "and", "it"]
RARE = {"radiant": "superb", "tedious": "awful", "tractor": None}
UNSEEN = {"dazzling": "lovely", "gorgeous": "superb", "dismal": "dreary", "drab": "boring", "carburettor": None}
PIECES = {"superb": ["sup", "##erb"], "dreary": ["dre", "##ar", "##y"], "actor": ["act", "##or"]}


@pytest.fixture(scope="module")
def data() -> ClassifiedTexts:
    """Sentences of one polar word among others; some words occur once, some in test texts alone."""
    dice = np.random.default_rng(0)

    def sentences(count: int) -> list[tuple[list[str], int]]:
        rows = []
        for number in range(count):
            words = dice.choice(FILLING, int(dice.integers(2, 6))).tolist()
            words.insert(int(dice.integers(len(words))), str(dice.choice((NEGATIVE, POSITIVE)[number % 2])))
            rows.append((words, number % 2))
        return rows

    train, dev, test = sentences(300), sentences(90), sentences(90)
    for place, word in enumerate(RARE):
        train[place][0].append(word)
    for place, word in enumerate([*UNSEEN, "wordless"]):
        test[place][0].append(word)
    return classified_texts("sst", ("negative", "positive"), {"train": train, "dev": dev, "test": test})


@pytest.fixture(scope="module")
def scale() -> Scale:
    return replace(SCALES["smoke"], toy=False, epochs=dict.fromkeys(SCALES["smoke"].epochs, 60))


# ---- pretrained vectors


@pytest.fixture(scope="module")
def glove(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors in which polar words of a kind lie together, and rare words next to one of them, or to none."""
    dice = np.random.default_rng(1)
    axes = np.linalg.qr(dice.normal(size=(12, 12)))[0]
    vectors = {word: 5 * axes[0] + 0.5 * dice.normal(size=12) for word in POSITIVE}
    vectors |= {word: 5 * axes[1] + 0.5 * dice.normal(size=12) for word in NEGATIVE}
    beside = {word: neighbour for word, neighbour in (RARE | UNSEEN).items() if neighbour is not None}
    vectors |= {word: vectors[neighbour] + 0.1 * dice.normal(size=12) for word, neighbour in beside.items()}
    others = [*FILLING, "tractor", "carburettor"]
    vectors |= {word: dice.normal(size=10) @ axes[2:] for word in others}
    path = tmp_path_factory.mktemp("vectors") / "glove.txt"
    path.write_text("".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in vectors.items()))
    return path


@pytest.fixture(scope="module")
def rare_scores(
    tmp_path_factory: pytest.TempPathFactory, data: ClassifiedTexts, scale: Scale, glove: Path
) -> tuple[Path, pd.DataFrame]:
    folder = tmp_path_factory.mktemp("pretrained")
    return folder, next_steps.pretrained_words(folder, data, (1, 2), scale, glove)


def test_pretrained_vectors_begin_as_large_as_random_ones_or_as_found(data: ClassifiedTexts, glove: Path) -> None:
    found = word_vectors(glove, data.vocabulary.words)
    random, same, own = next_steps.beginnings(data, found, seed=3).values()
    assert torch.equal(random, initial_weights("dot", len(data.vocabulary), 12, 1, 3)["embeddings.weight"])
    numbers = data.vocabulary.encode(found.words)
    without = data.vocabulary.encode(["wordless", "[PAD]", "[UNK]"])
    assert torch.equal(same[without], random[without])
    assert torch.equal(own[without], random[without])
    assert torch.equal(own[numbers], found.table.double())
    assert same[numbers].square().mean().sqrt() == pytest.approx(float(random.square().mean().sqrt()))
    factors = same[numbers] / own[numbers]
    torch.testing.assert_close(factors, factors[0, 0].expand_as(factors))


def test_rare_words_find_the_nearest_polar_word(data: ClassifiedTexts, glove: Path) -> None:
    found = word_vectors(glove, data.vocabulary.words)
    table = rare_words(data, found).set_index("word")
    vectors = dict(zip(found.words, found.table.double(), strict=True))
    assert set(table.index) == {*RARE, *UNSEEN}  # "wordless" has no vector
    for word, neighbour in (RARE | UNSEEN).items():
        cosines = {
            polar: float(torch.cosine_similarity(vectors[word], vectors[polar], 0)) for polar in POSITIVE + NEGATIVE
        }
        nearest = max(cosines, key=cosines.__getitem__)
        row = table.loc[word]
        assert (row["neighbour"], row["cosine"]) == (nearest, pytest.approx(cosines[nearest]))
        assert row["rarity"] == ("unseen" if word in UNSEEN else "once or twice")
        if neighbour is None:
            assert row["group"] == "near neither"
        else:
            side = "positive" if neighbour in POSITIVE else "negative"
            assert (row["neighbour"], row["group"]) == (neighbour, f"near a {side} word")


def test_unseen_words_get_the_polarity_of_their_neighbours_from_pretrained_vectors(rare_scores) -> None:
    _, words = rare_scores
    assert len(words) == 3 * 2 * len(RARE | UNSEEN)
    for _, row in words[words["beginning"] == "pretrained of own size"].iterrows():
        neighbour = UNSEEN.get(row["word"])
        if neighbour is not None:
            assert np.sign(row["polarity"]) == (1 if neighbour in POSITIVE else -1), row["word"]
    told = rare_word_groups(words).dropna(subset="with_sign")
    assert told.loc[(told["beginning"] == "random") & (told["rarity"] == "unseen"), "with_sign"].mean() < 1


def test_an_unseen_word_keeps_its_random_beginning(rare_scores, data: ClassifiedTexts, scale: Scale) -> None:
    words = rare_scores[1]
    table = words[(words["beginning"] == "random") & (words["seed"] == 2)].set_index("word")
    (run,) = sweep(data, [RunSettings("dot", 10.0, seed=2)], width=12, epochs=scale.epochs["dot"])
    begun = initial_weights("dot", len(data.vocabulary), 12, 1, 2)["embeddings.weight"].float()
    for word, row in table.iterrows():
        number = int(row["number"])
        assert torch.equal(run.weights["embeddings.weight"][number], begun[number]) == (word in UNSEEN)
        vector = run.weights["embeddings.weight"][number]
        assert row["polarity"] == pytest.approx(float(vector @ run.weights["output.weight"][0]), abs=1e-6)
        assert row["attention"] == pytest.approx(float(vector @ run.weights["context"]) / 10, abs=1e-6)
        assert row["test_accuracy"] == run.test_accuracy


def test_groups_are_set_against_words_near_neither() -> None:
    groups = ["near a positive word"] * 2 + ["near a negative word"] * 2 + ["near neither"] * 3
    words = pd.DataFrame(
        {
            "beginning": "random",
            "seed": 1,
            "rarity": "unseen",
            "group": groups,
            "polarity": [1.0, -0.5, -1.0, -2.0, 0.5, -1.5, 0.0],
            "attention": [3.0, 1.0, 0.0, 5.0, 1.0, 2.0, 4.0],
            "test_accuracy": 0.75,
        }
    )
    table = rare_word_groups(words).set_index("group")
    assert table["words"].tolist() == [2, 2, 3]
    assert table["with_sign"].tolist()[:2] == [0.5, 1.0]
    assert np.isnan(table.loc["near neither", ["with_sign", "attention_above", "polarity_p"]].astype(float)).all()
    assert table["polarity"].tolist() == pytest.approx([0.25, -1.5, -1 / 3])
    # pairs by hand: 3 is above 1 and 2, 1 ties with 1; 5 is above all three
    assert table["attention_above"].tolist()[:2] == pytest.approx([2.5 / 6, 3 / 6])
    # further to the positive side: 1 than all, -0.5 than -1.5; to the negative side: -1 than 0.5 and 0, -2 than all
    assert table["polarity_above"].tolist()[:2] == pytest.approx([4 / 6, 5 / 6])


def test_the_finding_is_told_from_the_table(rare_scores) -> None:
    table = rare_word_groups(rare_scores[1])
    told = pretrained_finding(table)
    assert told.startswith("Words that no training text has and that are near a polar one have its sign in")
    assert "100% (more in 2 of 2 seeds) with those of their own size" in told
    turned = {"random": "pretrained of own size", "pretrained of own size": "random", "pretrained": "pretrained"}
    swapped = pretrained_finding(table.assign(beginning=table["beginning"].map(turned)))
    assert "have its sign in 100% of cases with random beginnings" in swapped
    assert "(more in 0 of 2 seeds) with those of their own size" in swapped
    assert pretrained_finding(table.head(0)) == "No rare word has a pretrained vector."


def test_finished_runs_are_not_trained_again(
    rare_scores, data: ClassifiedTexts, scale: Scale, glove: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, words = rare_scores
    monkeypatch.setattr(next_steps, "sweep", forbidden)
    again = next_steps.pretrained_words(folder, data, (1, 2), scale, glove)
    pd.testing.assert_frame_equal(again, words)
    assert not (folder / "sst-pretrained" / "unfinished").exists()
    with pytest.raises(BadInput, match=r"vectors was glove.txt, is now other.txt"):
        next_steps.pretrained_words(folder, data, (1, 2), scale, "other.txt")


def test_a_killed_run_goes_on_to_the_same_words(
    rare_scores,
    data: ClassifiedTexts,
    scale: Scale,
    glove: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(next_steps, "sweep", stopped_after(3, sweep))
    with pytest.raises(KeyboardInterrupt):
        next_steps.pretrained_words(tmp_path, data, (1, 2), scale, glove)
    monkeypatch.setattr(next_steps, "sweep", sweep)
    monkeypatch.setattr("attnscope.lab.sweep.training.train_epoch", stopped_after(3 * 60, train_epoch))
    pd.testing.assert_frame_equal(next_steps.pretrained_words(tmp_path, data, (1, 2), scale, glove), rare_scores[1])


def test_without_vectors_there_is_nothing_to_run(data: ClassifiedTexts, scale: Scale, tmp_path: Path) -> None:
    assert next_steps.pretrained_words(tmp_path, data, (1,), scale, "scratch") is None
    assert next_steps.pretrained_words(tmp_path, data, (1,), SCALES["smoke"], None) is None
    assert list(tmp_path.iterdir()) == []


# ---- a contextual encoder


@pytest.fixture(scope="module")
def longer(scale: Scale) -> Scale:
    """Two vectors are learned more slowly than the words' own."""
    return replace(scale, epochs=dict.fromkeys(scale.epochs, 200))


def tokenizer() -> PreTrainedTokenizerFast:
    """Most words are one piece, some two or three."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    whole = [word for word in POSITIVE + NEGATIVE + FILLING + list(RARE) if word not in PIECES]
    pieces = [piece for word in PIECES.values() for piece in word]
    numbers = {token: number for number, token in enumerate([*special, *whole, *pieces])}
    made = Tokenizer(WordPiece(numbers, unk_token="[UNK]"))
    made.pre_tokenizer = WhitespaceSplit()
    made.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(token, numbers[token]) for token in ("[CLS]", "[SEP]")]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=made, **names)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with random weights, in a folder."""
    folder = tmp_path_factory.mktemp("encoder") / "tiny"
    words = tokenizer()
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(vocab_size=len(words), max_position_embeddings=32, **sizes)
    BertModel(config).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def state_by_hand(model: BertModel, text: list[str]) -> torch.Tensor:
    """One text at a time, its pieces written down above."""
    ids = [tokenizer().convert_tokens_to_ids(PIECES.get(word, [word])) for word in text]
    begin, end = tokenizer().convert_tokens_to_ids(["[CLS]", "[SEP]"])
    with torch.no_grad():
        hidden = model.eval()(torch.tensor([[begin, *(piece for word in ids for piece in word), end]]))[0][0]
    states, place = [], 1
    for word in ids:
        states.append(hidden[place : place + len(word)].mean(0))
        place += len(word)
    return torch.stack(states)


def test_the_state_of_a_word_is_the_mean_of_its_pieces(bert: Path) -> None:
    texts = [["the", "superb", "actor"], ["dreary"], ["a", "film", "and", "it", "was", "dreary", "and", "unheard"]]
    found = next_steps.word_states(next_steps.encoder_named(str(bert)), texts)
    model = BertModel.from_pretrained(bert)
    for text, states in zip(texts, found, strict=True):
        torch.testing.assert_close(states, state_by_hand(model, text), atol=1e-5, rtol=1e-5)


def test_a_head_is_left_out(bert: Path, tmp_path: Path) -> None:
    headed = BertForSequenceClassification.from_pretrained(bert)
    headed.save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    model = next_steps.encoder_named(str(tmp_path))
    assert type(model.model).__name__ == "BertModel"
    text = ["the", "witty", "plot"]
    (states,) = next_steps.word_states(model, [text])
    torch.testing.assert_close(states, state_by_hand(headed.bert, text), atol=1e-5, rtol=1e-5)


def test_states_are_kept_part_by_part(bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_steps, "PART", 2)
    model = next_steps.encoder_named(str(bert))
    texts = [["the", "film"], ["superb"], ["a", "dreary", "plot"], ["it", "was", "witty"], ["boring"]]
    work = next_steps.word_states
    monkeypatch.setattr(next_steps, "word_states", stopped_after(2, work))
    with pytest.raises(KeyboardInterrupt):
        next_steps.read_states(model, texts, tmp_path, lambda _done, _whole: None)
    assert sorted(path.name for path in tmp_path.glob("*.safetensors")) == ["000000.safetensors", "000001.safetensors"]
    done: list[list[str]] = []
    monkeypatch.setattr(next_steps, "word_states", lambda model, part: done.extend(part) or work(model, part))
    told: list[tuple[int, int]] = []
    states = next_steps.read_states(model, texts, tmp_path, lambda *at: told.append(at))
    assert done == [["boring"]]
    assert told == [(0, 5), (2, 5), (4, 5), (5, 5)]
    assert states.dtype == torch.float16
    torch.testing.assert_close(states, torch.cat(work(model, texts)).half(), atol=2e-3, rtol=2e-3)
    with pytest.raises(BadInput, match="was made of other input"):
        next_steps.read_states(model, texts[::-1], tmp_path, lambda _done, _whole: None)


@pytest.fixture(scope="module")
def context_scores(
    tmp_path_factory: pytest.TempPathFactory, data: ClassifiedTexts, longer: Scale, bert: Path
) -> tuple[Path, pd.DataFrame]:
    folder = tmp_path_factory.mktemp("contextual")
    return folder, next_steps.contextual_words(folder, data, (1, 2), longer, bert)


def test_both_kinds_of_scores_are_those_of_a_plain_loop(
    context_scores, data: ClassifiedTexts, longer: Scale, bert: Path, tmp_path: Path
) -> None:
    """Encoder, means and products once more, one word at a time."""
    reading = next_steps.read_by(next_steps.encoder_named(str(bert)), data, tmp_path)
    model, best_epoch = next_steps.train_classifier(reading, data.classes, 2, longer.epochs["dot"], None)
    context, output = model.context.detach().double(), model.output.weight.detach().double()[0]
    encoder, tokens, scaling = BertModel.from_pretrained(bert), data.vocabulary.tokens, 64**0.5

    def read(texts: PackedTexts) -> list[tuple[list[str], torch.Tensor]]:
        written = [[tokens[number] for number in text] for text in texts]
        return [(words, state_by_hand(encoder, words).double()) for words in written]

    local: dict[str, list[tuple[float, float]]] = {}
    for words, states in read(data.train):
        for word, state in zip(words, states, strict=True):
            local.setdefault(word, []).append((float(state @ output), float(state @ context) / scaling))
    weights: dict[str, list[float]] = {}
    right = 0
    for (words, states), label in zip(read(data.test), data.test.labels, strict=True):
        shares = (states @ context / scaling).softmax(0)
        right += int((shares @ states @ output > 0) == bool(label))
        for word, share in zip(words, shares, strict=True):
            weights.setdefault(word, []).append(float(share))
    table = context_scores[1]
    table = table[table["seed"] == 2]
    assert set(table["kind"]) == {"positive", "negative", "neutral", "neutral of like frequency"}
    close = {"abs": 5e-3, "rel": 5e-3}  # states are kept in half precision
    for _, row in table.iterrows():
        word = row["word"]
        alone = state_by_hand(encoder, [word])[0].double()
        assert row["polarity"] == pytest.approx(float(alone @ output), **close)
        assert row["attention"] == pytest.approx(float(alone @ context) / scaling, **close)
        means = np.mean(local[word], 0)
        assert [row["local_polarity"], row["local_attention"]] == pytest.approx(means.tolist(), **close)
        assert row["weight"] == pytest.approx(np.mean(weights.get(word, [np.nan])), nan_ok=True, **close)
        assert row["count"] == len(local[word])
    assert table["test_accuracy"].unique().tolist() == pytest.approx([right / len(data.test)])
    assert table["best_epoch"].unique().tolist() == [best_epoch]
    assert table["context_dot_output"].iloc[0] == pytest.approx(float(context @ output), rel=1e-4)


def test_polar_words_part_on_a_frozen_encoder(context_scores) -> None:
    words = context_scores[1]
    assert (words["test_accuracy"] > 0.7).all()  # 63 of 90 texts: a coin does that once in 10,000 times
    table = comparisons(words)
    apart = table[(table["first"] == "positive") & (table["second"] == "negative")]
    assert (apart.loc[apart["score"].isin(["polarity", "local_polarity"]), "above"] == 1).all()
    assert set(score_summary(words)["score"]) == {
        "polarity",
        "attention",
        "weight",
        "local_polarity",
        "local_attention",
    }
    told = contextual_finding(words)
    assert told.startswith("A positive word has a higher polarity than a negative one in 100% (p < 0.001 in 0 of 2")
    lower = words.assign(local_polarity=-words["local_polarity"])
    assert contextual_finding(lower).startswith("A positive word has a higher polarity than a negative one in 0%")


def test_a_finished_encoder_is_not_read_again(
    context_scores, data: ClassifiedTexts, longer: Scale, bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, words = context_scores
    monkeypatch.setattr(next_steps, "encoder_named", forbidden)
    monkeypatch.setattr(next_steps, "train_classifier", forbidden)
    pd.testing.assert_frame_equal(next_steps.contextual_words(folder, data, (1, 2), longer, bert), words)
    assert not (folder / "sst-contextual" / "states").exists()
    with pytest.raises(BadInput, match="encoder was tiny, is now other"):
        next_steps.contextual_words(folder, data, (1, 2), longer, "other")


def test_a_killed_encoder_goes_on_to_the_same_words(
    context_scores,
    data: ClassifiedTexts,
    longer: Scale,
    bert: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    train = next_steps.train_classifier
    monkeypatch.setattr(next_steps, "train_classifier", stopped_after(1, train))
    with pytest.raises(KeyboardInterrupt):
        next_steps.contextual_words(tmp_path, data, (1, 2), longer, bert)
    monkeypatch.setattr(next_steps, "word_states", forbidden)
    monkeypatch.setattr(next_steps, "train_classifier", stopped_after(1, train))
    pd.testing.assert_frame_equal(next_steps.contextual_words(tmp_path, data, (1, 2), longer, bert), context_scores[1])


def test_an_encoder_that_is_not_there_leaves_nothing_behind(
    data: ClassifiedTexts, longer: Scale, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match="cannot be loaded"):
        next_steps.contextual_words(tmp_path / "out", data, (1,), longer, tmp_path / "nowhere")
    assert not (tmp_path / "out").exists()


def forbidden(*_given, **_options) -> None:
    raise AssertionError("This was done before, and is done again.")


def stopped_after(calls: int, work: Callable) -> Callable:
    """The same function, killed at the call after so many."""
    left = [calls]

    def counted(*given, **options):
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        return work(*given, **options)

    return counted
