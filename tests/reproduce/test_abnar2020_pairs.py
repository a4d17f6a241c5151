"""Pronouns in pairs of sentences, and the masked-LM head that is trained for them, on tiny models."""

import gzip

import pandas as pd
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, BertModel

import attnscope
from attnscope.errors import BadInput
from attnscope.reproduce.abnar2020 import reproduce_abnar2020
from attnscope.reproduce.abnar2020.figures import pair_summary
from attnscope.reproduce.abnar2020.masked_head import (
    blocks_of,
    gap_logits,
    load_without_head,
    mask_blocks,
    measure_head,
    train_masked_head,
)
from attnscope.reproduce.abnar2020.paper import HeadScale
from attnscope.reproduce.abnar2020.pronoun_pairs import PAIRS, Sign, pair_table, sign_of, study_pronouns
from attnscope.reproduce.abnar2020.pronouns import Pronouns

from .test_abnar2020_pronouns import SPECIAL, WORDS, tokenizer

NAMES = [word for pair in PAIRS for word in pair.text.replace(".", " .").lower().split() if "{" not in word]
NAMES += [name.lower() for pair in PAIRS for name in (pair.his, pair.her)]
VOCABULARY = list(dict.fromkeys([*WORDS, *NAMES]))


def encoder(kind: type = BertModel) -> BertModel:
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    torch.manual_seed(5)
    return kind(BertConfig(vocab_size=len(SPECIAL) + len(VOCABULARY), initializer_range=0.5, **sizes)).eval()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An encoder without a head, as a folder."""
    place = tmp_path_factory.mktemp("encoder")
    encoder().save_pretrained(place)
    tokenizer(VOCABULARY).save_pretrained(place)
    return place


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A few lines of text in the place of the data sets."""
    place = tmp_path_factory.mktemp("data")
    for name in ("wikitext2", "imdb"):
        (place / name).mkdir()
    line = "the author talked to sara about love of john and mary about the book"
    for split in ("valid", "test"):
        with gzip.open(place / "wikitext2" / f"{split}.txt.gz", "wt") as file:
            file.write(f" {line} . \n" * 6)
    for split in ("train", "val", "test"):
        with gzip.open(place / "imdb" / f"{split}.tsv.gz", "wt") as file:
            file.write("label\tid\trating\ttext\n" + "".join(f"neg\t{row}\t1\t{line} {line}\n" for row in range(4)))
    return place


def test_a_pair_is_one_sentence_with_its_names_exchanged():
    assert len(PAIRS) == 20
    for pair in PAIRS:
        one, other = (form.text for form in pair.forms)
        hidden = one.replace(pair.his, "X").replace(pair.her, pair.his).replace("X", pair.her)
        assert hidden == other
        assert one.count("{}") == 1
        assert one.index(pair.his) < one.index(pair.her)
        assert all(form.words == {"his": pair.his, "her": pair.her} for form in pair.forms)
    assert len({name for pair in PAIRS for name in (pair.his, pair.her)}) == 40


def test_the_table_says_whether_the_likelier_pronouns_name_has_more():
    model = attnscope.load(encoder(BertForMaskedLM), tokenizer=tokenizer(VOCABULARY))
    study = study_pronouns(model, "tiny", PAIRS[:3])
    table = study.table()
    assert len(table) == 3 * 2 * 3
    for row in table.itertuples():
        one, other = (row.his, row.her) if row.predicted == "his" else (row.her, row.his)
        assert row.agrees == (0.5 if abs(one - other) <= 1e-9 else float(one > other))
        assert row.probability >= 0.5
    shares = study.pairs.shares
    for row in table[table["form"] == "her first"].itertuples():
        pair = PAIRS[row.pair - 1]
        last = shares[(shares["sentence"] == row.sentence) & (shares["method"] == row.method) & (shares["layer"] == 2)]
        assert last.set_index("word")["share"][pair.her] == row.her
        assert row.sentence.startswith(pair.her)
    assert [row[0] for row in pair_summary(table).rows] == ["raw", "rollout", "flow"]


def test_a_tie_is_half_right():
    pair = PAIRS[0]
    shown = [form.shown for form in pair.forms]
    shares = [
        {"sentence": text, "method": method, "layer": 1, "word": word, "share": 0.25}
        for text in shown
        for method in ("raw", "rollout", "flow")
        for word in (pair.his, pair.her)
    ]
    chances = [
        {"sentence": text, "pronoun": pronoun, "probability": chance, "relative": chance}
        for text in shown
        for pronoun, chance in (("his", 0.4), ("her", 0.6))
    ]
    table = pair_table(Pronouns("tiny", pair.forms, pd.DataFrame(shares), pd.DataFrame(chances)))
    assert set(table["agrees"]) == {0.5}
    assert set(table["predicted"]) == {"her"}


def test_the_sign_test_is_that_of_coins():
    table = pd.DataFrame(
        [
            {"sentence": str(number), "method": method, "agrees": float(number < right)}
            for number in range(10)
            for method, right in (("raw", 2), ("rollout", 8))
        ]
    )
    found = sign_of(table, "rollout")
    assert (found.ahead, found.behind) == (6, 0)
    assert found.more == pytest.approx(0.5**6)
    assert found.fewer == 1
    assert Sign(0, 0).more == 1


def test_gaps_depend_on_the_seed_alone_and_spare_the_ends():
    blocks = [[2, *range(10, 30), 3], [2, *range(10, 16), 3]]
    one, same, other = (mask_blocks(blocks, 4, 0, (seed, 7)) for seed in (1, 1, 2))
    assert torch.equal(one.ids, same.ids)
    assert not torch.equal(one.ids, other.ids)
    assert one.gaps.sum(1).tolist() == [4, 1]
    assert not one.gaps[:, 0].any()
    assert not one.gaps[0, -1]
    assert not one.gaps[1, 7:].any()
    whole = one.ids.clone()
    whole[one.gaps] = one.right
    assert whole[0].tolist() == blocks[0]
    assert whole[1, :8].tolist() == blocks[1]


def test_the_head_learns_while_the_embeddings_stay(folder, data, tmp_path):
    scale = HeadScale(steps=200, reviews=4, held_out=4)
    out = train_masked_head(tmp_path / "head", str(folder), scale, data)
    trained = attnscope.load(str(out))
    before, _ = load_without_head(str(folder))
    same = {
        name for name, weights in before.named_parameters() if torch.equal(weights, trained.model.get_parameter(name))
    }
    assert same == {name for name, _ in before.named_parameters() if name.startswith("bert.embeddings.")}
    output = trained.model.get_output_embeddings().weight
    assert torch.equal(output, trained.model.get_input_embeddings().weight)
    held = list(blocks_of(trained.tokenizer, iter(["the author talked to sara about love of john and mary"])))
    fresh, learned = (measure_head(model, trained.tokenizer, held) for model in (before, trained.model))
    assert learned.perplexity < fresh.perplexity / 2
    # the perplexity by hand
    batch = mask_blocks(held, trained.tokenizer.mask_token_id, 0, (0, 0))
    whole = trained.model(input_ids=batch.ids, attention_mask=batch.real).logits[batch.gaps]
    assert torch.allclose(whole, gap_logits(trained.model, batch), atol=1e-5)
    surprise = -whole.log_softmax(-1).gather(1, batch.right[:, None]).mean().detach()
    assert learned.perplexity == pytest.approx(float(surprise.exp()), rel=1e-5)


def test_an_encoder_that_is_not_there_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(BadInput, match="No masked-LM head can be trained on"):
        reproduce_abnar2020(tmp_path / "run", head_on=str(tmp_path / "nowhere"))
    assert not any(tmp_path.iterdir())
