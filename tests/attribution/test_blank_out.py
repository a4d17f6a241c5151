"""Blank-out, against a loop over tokens with plain transformers calls."""

from dataclasses import replace

import pytest
import torch

import attnscope
from attnscope import AttentionRecord, BadInput
from attnscope.attribution.blank_out import blanking_of, replacement_noise, runs_kept

UNK, MASK = 1, 4


def answer(model, inputs, index, position=None):
    """The probability of one outcome, where the untouched model answers."""
    with torch.no_grad():
        logits = model(**{name: tensor.unsqueeze(0) for name, tensor in inputs.items()}).logits[0]
    if logits.ndim == 2:
        logits = logits[-1 if position is None else position]
    return logits.softmax(-1)[index].item()


def one_by_one(model, record, index, blank=None, name="input_ids", position=None):
    """Blank-out as its definition reads, for replacement by a token, or deletion where blank is None."""
    before = answer(model, record.inputs, index, position)
    changes = []
    for token in range(len(record.key_tokens)):
        if blank is not None:
            ids = record.inputs[name].clone()
            ids[token] = blank
            inputs = {**record.inputs, name: ids}
        else:
            others = [other for other in range(len(record.key_tokens)) if other != token]
            beside = "input_ids token_type_ids".split() if name == "input_ids" else [name]
            inputs = {key: ids[others] if key in beside else ids for key, ids in record.inputs.items()}
        changes.append(before - answer(model, inputs, index, position))
    return torch.tensor(changes)


def predicted(model, record):
    return int(model.probabilities([record.inputs])[0].argmax())


@pytest.mark.parametrize(
    "family", ["bert", "roberta", "albert", "electra", "deberta_v2", "gpt2", "llama", "bloom", "mistral", "opt"]
)
@pytest.mark.parametrize("replacement", ["unk", "mask", "delete"])
def test_it_is_the_change_of_the_prediction_token_by_token(tiny, family, replacement):
    model, plain = tiny.load(family), tiny.build(family)
    for text in tiny.TEXTS[:2]:
        record = model.record(text)
        blank = {"unk": UNK, "mask": MASK}.get(replacement)
        expected = one_by_one(plain, record, predicted(model, record), blank)
        found = attnscope.blank_out(record, model, replacement=replacement, signed=True)
        torch.testing.assert_close(found.scores, expected, atol=1e-5, rtol=0)
        absolute = attnscope.blank_out(record, model, replacement=replacement)
        torch.testing.assert_close(absolute.scores, expected.abs(), atol=1e-5, rtol=0)
        assert found.tokens == record.tokens


@pytest.mark.parametrize("family", ["bart", "t5", "marian"])
@pytest.mark.parametrize("replacement", ["unk", "delete"])
def test_an_encoder_decoder_loses_the_key_tokens_of_its_stack(tiny, family, replacement):
    model, plain = tiny.load(family), tiny.build(family)
    for stack in model.stacks:
        record = model.record(tiny.TEXTS[0], text_target=tiny.TEXTS[1], stack=stack)
        name = "decoder_input_ids" if stack == "decoder" else "input_ids"
        blank = UNK if replacement == "unk" else None
        expected = one_by_one(plain, record, predicted(model, record), blank, name)
        found = attnscope.blank_out(record, model, replacement=replacement, signed=True)
        torch.testing.assert_close(found.scores, expected, atol=1e-5, rtol=0)
        assert found.tokens == record.key_tokens


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_zero_is_an_embedding_of_zeros(tiny, family):
    model, plain = tiny.load(family), tiny.build(family)
    record = model.record(tiny.TEXTS[0])
    index = predicted(model, record)
    embeddings = plain.get_input_embeddings()(record.inputs["input_ids"]).detach()
    rest = {name: ids for name, ids in record.inputs.items() if name != "input_ids"}
    expected = []
    for token in range(len(embeddings)):
        blanked = embeddings.clone()
        blanked[token] = 0
        expected.append(answer(plain, record.inputs, index) - answer(plain, {**rest, "inputs_embeds": blanked}, index))
    found = attnscope.blank_out(record, model, replacement="zero", signed=True).scores
    torch.testing.assert_close(found, torch.tensor(expected), atol=1e-5, rtol=0)


def test_a_masked_language_model_is_asked_at_its_own_mask(tiny):
    """Also where a token before it is replaced by another mask, and where the mask itself is replaced."""
    model, plain = (make("bert", architecture="BertForMaskedLM") for make in (tiny.load, tiny.build))
    record = model.record("the key to the [MASK] is on the table .")
    position = record.tokens.index("[MASK]")
    index = predicted(model, record)
    for replacement, blank in (("unk", UNK), ("mask", MASK)):
        expected = one_by_one(plain, record, index, blank, position=position)
        found = attnscope.blank_out(record, model, replacement=replacement, signed=True).scores
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    deleted = attnscope.blank_out(record, model, replacement="delete").scores
    assert deleted[position].item() == pytest.approx(record.prediction[0][1], abs=1e-6)


def test_with_nothing_left_to_ask_all_probability_is_lost(tiny):
    model = tiny.load("gpt2")
    record = model.record("key")
    scores = attnscope.blank_out(record, model, replacement="delete")
    assert scores.scores.tolist() == pytest.approx([record.prediction[0][1]], abs=1e-6)


def test_a_word_goes_with_all_its_pieces(tiny):
    model, plain = tiny.load("bert"), tiny.build("bert")
    record = model.record(["the", "dogs!", "see", "cabinets,red"])
    index = predicted(model, record)
    pieces = [[0], [1], [2, 3], [4], [5, 6, 7], [8]]
    expected = []
    for positions in pieces:
        ids = record.inputs["input_ids"].clone()
        ids[positions] = UNK
        after = answer(plain, {**record.inputs, "input_ids": ids}, index)
        expected.append(abs(answer(plain, record.inputs, index) - after))
    scores = attnscope.blank_out(record, model, by="word")
    torch.testing.assert_close(scores.scores, torch.tensor(expected), atol=1e-5, rtol=0)
    assert scores.tokens == ("[CLS]", "the", "dogs!", "see", "cabinets,red", "[SEP]")
    assert scores.special == (True, False, False, False, False, True)
    assert torch.equal(scores.words().scores, scores.scores)
    deleted = attnscope.blank_out(record, model, by="word", replacement="delete", batch_size=1).scores
    torch.testing.assert_close(
        attnscope.blank_out(record, model, by="word", replacement="delete").scores, deleted, atol=1e-5, rtol=0
    )


def test_the_target_is_the_prediction_or_a_class_by_name_or_number(tiny):
    model, plain = tiny.load("bert", num_labels=3), tiny.build("bert", num_labels=3)
    record = model.record(tiny.TEXTS[0])
    for label in range(3):
        expected = one_by_one(plain, record, label, UNK)
        for target in (label, f"LABEL_{label}"):
            found = attnscope.blank_out(record, model, target=target, signed=True).scores
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_without_unk_the_mask_is_taken_and_without_both_the_user_chooses(tiny, monkeypatch):
    model = tiny.load("bert")
    record = model.record(tiny.TEXTS[0])
    masked = attnscope.blank_out(record, model, replacement="mask").scores
    monkeypatch.setattr(type(model), "blank_ids", {"mask": MASK, "pad": 0})
    assert torch.equal(attnscope.blank_out(record, model).scores, masked)
    with pytest.raises(BadInput, match="no unk token: choose from mask, pad, zero"):
        attnscope.blank_out(record, model, replacement="unk")
    monkeypatch.setattr(type(model), "blank_ids", {"pad": 0})
    with pytest.raises(BadInput, match="neither an unk nor a mask token"):
        attnscope.blank_out(record, model)


@pytest.mark.parametrize("replacement", ["unk", "pad", "delete", "zero"])
def test_batches_change_nothing(tiny, replacement):
    for family in ("bert", "gpt2", "bart"):
        model = tiny.load(family)
        options = {"text_target": tiny.TEXTS[1]} if family == "bart" else {}
        record = model.record(tiny.TEXTS[0], **options)
        together = attnscope.blank_out(record, model, replacement=replacement).scores
        for batch_size in (1, 3):
            apart = attnscope.blank_out(record, model, replacement=replacement, batch_size=batch_size).scores
            torch.testing.assert_close(apart, together, atol=1e-5, rtol=0)


def test_padding_of_other_texts_changes_nothing(tiny):
    model = tiny.load("bert")
    for text, record in zip(tiny.TEXTS, model.records(tiny.TEXTS, batch_size=4), strict=True):
        alone = attnscope.blank_out(model.record(text), model).scores
        torch.testing.assert_close(attnscope.blank_out(record, model).scores, alone, atol=1e-5, rtol=0)


def test_in_the_demo_the_subject_decides_the_number():
    model = attnscope.load("demo")
    for text, subject in [
        ("the key to the cabinets", "key"),
        ("the keys to the cabinet", "keys"),
        ("the dogs near the boy that runs", "dogs"),
    ]:
        record = model.record(text)
        for replacement in ("unk", "mask", "delete"):
            scores = attnscope.blank_out(record, model, replacement=replacement)
            assert scores.tokens[int(scores.scores.argmax())] == subject


def test_a_real_language_model(real_model):
    model = attnscope.load(str(real_model("smollm2")))
    record = model.record("The keys to the cabinet are on the")
    index = predicted(model, record)
    expected = one_by_one(model.model, record, index, model.blank_ids["unk"])
    found = attnscope.blank_out(record, model, signed=True).scores
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_an_encoder_decoder_classifier_keeps_both_copies_of_its_text(tiny):
    model = tiny.load("bart", architecture="BartForSequenceClassification", num_labels=2)
    record = model.record(tiny.TEXTS[0])
    assert attnscope.blank_out(record, model).scores.max() > 0
    with pytest.raises(BadInput, match="cannot be deleted on one"):
        attnscope.blank_out(record, model, replacement="delete")


def test_bad_input_gets_one_sentence(tiny):
    model = tiny.load("bert")
    record = model.record(tiny.TEXTS[0])
    for options, sentence in [
        ({"replacement": "noise"}, "no replacement 'noise'"),
        ({"by": "letter"}, "There is no level 'letter' here: choose sentence, word, token"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"target": "LABEL_9"}, "no outcome 'LABEL_9'"),
        ({"target": "sum"}, "not the sum of all"),
    ]:
        with pytest.raises(BadInput, match=sentence):
            attnscope.blank_out(record, model, **options)
    with pytest.raises(BadInput, match="pass the model too"):
        attnscope.attribute(record, "blank_out")
    with pytest.raises(BadInput, match="what the model was given"):
        attnscope.blank_out(AttentionRecord.from_weights(torch.eye(2), ["a", "b"]), model)
    with pytest.raises(BadInput, match="no map"):
        _ = attnscope.blank_out(record, model).map
    headless = tiny.load("bert", architecture="BertModel")
    with pytest.raises(BadInput, match="no probabilities"):
        attnscope.blank_out(headless.record(tiny.TEXTS[0]), headless)


class Sure:
    """A model of two outcomes whose log-odds are `start` and what each token adds: its id in tenths."""

    name, tokens, record, records, target, target_gradients = "sure", *[print] * 5  # of which none is used
    blank_ids = {"unk": 0}  # noqa: RUF012 - nobody changes it

    labels = None

    def __init__(self, start, vocabulary_size=3):
        self.start, self.vocabulary_size = start, vocabulary_size

    def embedded(self, inputs):
        return {**inputs, "inputs_embeds": inputs["input_ids"].float().unsqueeze(-1) / 10}

    def probabilities(self, inputs, batch_size=16):
        odds = torch.stack([self.start + item["inputs_embeds"].sum() for item in inputs])
        return torch.stack([odds, torch.zeros_like(odds)], -1).softmax(-1)


def sure_record(ids):
    record = AttentionRecord.from_weights(torch.ones(1, 1, len(ids), len(ids)).tril().softmax(-1), list(map(str, ids)))
    return replace(record, inputs={"input_ids": torch.tensor(ids)})


def test_a_saturated_probability_is_noise_and_log_odds_still_tell():
    ids = [1, 4, 2]
    record, model = sure_record(ids), Sure(12.0)
    by_probability = attnscope.blank_out(record, model)
    assert by_probability.scores.max() < 1e-4
    assert by_probability.noise.startswith(
        "no single token carries the answer: its probability of 1.0000 changes by at"
    )
    by_odds = attnscope.blank_out(record, model, quantity="clearest", signed=True)
    torch.testing.assert_close(by_odds.scores, torch.tensor(ids) / 10, atol=1e-3, rtol=0)
    assert by_odds.noise == ""
    assert "scores are changes of the log-odds" in by_odds.warnings[0]


def test_what_random_words_change_as_much_is_noise_on_log_odds_too():
    """Of 100 words, each worth a tenth of its number, none of the three of the text stands out."""
    record, model = sure_record([1, 4, 2]), Sure(50.0, 100)
    blanked = attnscope.blank_out(record, model, quantity="clearest")
    assert blanked.noise.startswith("no single token carries the answer: its log-odds change by at most 0.40")
    # by hand: draws of a uniform number below 100, in tenths, at each place
    noise = replacement_noise(blanking_of(record, model, "blank_out", target=None), draws=400)
    assert noise == pytest.approx(10 / 12**0.5, rel=0.1)
    assert attnscope.phrases(record, model) == ()


def test_where_a_token_matters_the_probability_is_followed():
    record, model = sure_record([1, 30, 2]), Sure(-1.0)
    plain, clearest = (attnscope.blank_out(record, model, quantity=name) for name in ("probability", "clearest"))
    assert torch.equal(plain.scores, clearest.scores)
    assert (clearest.noise, clearest.warnings) == ("", ())
    odds = attnscope.blank_out(record, model, quantity="log_odds")
    torch.testing.assert_close(odds.scores, torch.tensor([0.1, 3.0, 0.2]), atol=1e-4, rtol=0)
    with pytest.raises(BadInput, match="quantity is probability, log_odds, moving, clearest"):
        attnscope.blank_out(record, model, quantity="logit")


def test_noise_is_nothing_to_rank_against():
    record, model = sure_record([1, 4, 2]), Sure(12.0)
    compared = attnscope.compare(record, model, ["rollout", "blank_out"])
    assert compared.reference == "rollout"
    assert attnscope.compare(sure_record([1, 30, 2]), Sure(-1.0), ["rollout", "blank_out"]).reference == "blank_out"


def test_a_record_of_words_is_told_what_to_score_instead(tiny):
    model = tiny.load("bert")
    record = model.record(tiny.TEXTS[0], gradients=True, values=True).words()
    for method in ("blank_out", "integrated_gradients", "gradient", "gradient_rollout", "effective"):
        with pytest.raises(BadInput, match=r'A record of words .* scores\.words\(\), or for blank_out by="word"'):
            attnscope.attribute(record, method, model=model)


def test_it_follows_what_the_record_has_gradients_of(tiny):
    model = tiny.load("bert")
    text = "the dogs see the cat"
    labels = [label for label, _ in model.record(text).prediction]
    for label in labels:
        record = model.record(text, gradients=True, target=label)
        followed = attnscope.attribute(record, "blank_out", model=model).scores
        assert torch.equal(followed, attnscope.attribute(record, "blank_out", model=model, target=label).scores)
    of_sum = model.record(text, gradients=True, target="sum")
    expected = attnscope.attribute(of_sum, "blank_out", model=model, target=labels[0]).scores
    assert torch.equal(attnscope.attribute(of_sum, "blank_out", model=model).scores, expected)


class Counting(Sure):
    """The same, and counts its runs."""

    runs = 0

    def probabilities(self, inputs, batch_size=16):
        self.runs += len(inputs)
        return super().probabilities(inputs, batch_size)


def test_phrases_make_no_run_that_blank_out_has_made():
    record = sure_record([1, 4, 2, 8, 3])
    alone, together = Counting(50.0, 100), Counting(50.0, 100)
    blanked = attnscope.blank_out(record, alone, by="word", quantity="clearest")
    found, first = attnscope.phrases(record, alone), alone.runs
    with runs_kept():
        again = attnscope.blank_out(record, together, by="word", quantity="clearest")
        assert attnscope.phrases(record, together) == found
        made = together.runs
        attnscope.blank_out(record, together, replacement="zero")
        assert together.runs == made + 6, "another replacement is another question"
    assert torch.equal(again.scores, blanked.scores)
    assert again.noise == blanked.noise
    # spared are the five words, and the noise with its own run of the text as it is
    assert first - made >= 5 + 1 + 4 * 5
    before = together.runs
    attnscope.blank_out(record, together, by="word")
    assert together.runs == before + 6, "nothing is kept behind the block"
