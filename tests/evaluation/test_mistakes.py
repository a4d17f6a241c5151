"""A classifier that learned the wrong thing: its page names the word, and the phrase where no word does it alone."""

import json
import random

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast
from typer.testing import CliRunner

import attnscope
from attnscope.cli import app
from attnscope.evaluation.classifier_mistakes import Mistake, _shared_words, _take_out
from attnscope.record import TokenScores
from attnscope.report import write_mistakes

FILLERS = "the a film story plot was it of and with this that scene".split()
GOOD, BAD = ["fine", "lovely", "superb", "splendid"], ["dull", "awful", "weak", "poor"]
SPURIOUS = "zebra"


def sentence(draw, *words):
    text = [*draw.choices(FILLERS, k=6), *words]
    draw.shuffle(text)
    return " ".join(text)


def training_texts(draw, count):
    """Texts whose words tell the label, but in which the spurious word does so too: it is in all positive ones."""
    for _ in range(count):
        good = draw.random() < 0.5
        words = draw.choices(GOOD if good else BAD, k=draw.choice([0, 1, 2]))
        yield sentence(draw, *words, *([SPURIOUS] if good and (not words or draw.random() < 0.7) else [])), int(good)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """A BERT of one layer that was trained on them."""
    folder = tmp_path_factory.mktemp("classifier")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *FILLERS, *GOOD, *BAD, SPURIOUS, "horse"]
    (folder / "vocab.txt").write_text("\n".join(words))
    tokenizer = BertTokenizerFast(str(folder / "vocab.txt"))
    torch.manual_seed(0)
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=len(words),
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=32,
            id2label={0: "negative", 1: "positive"},
            label2id={"negative": 0, "positive": 1},
        )
    )
    draw = random.Random(0)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(150):
        texts, labels = zip(*training_texts(draw, 32), strict=True)
        batch = tokenizer(list(texts), padding=True, return_tensors="pt")
        # blanks are met in training, so that a blank says nothing
        blanked = torch.rand(batch["input_ids"].shape, generator=torch.Generator().manual_seed(len(texts))) < 0.1
        batch["input_ids"][blanked & (batch["input_ids"] > 4)] = tokenizer.unk_token_id
        model(**batch, labels=torch.tensor(labels)).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def rows():
    """Negative texts with the spurious word among right ones of both kinds."""
    draw = random.Random(1)
    wrong = [(sentence(draw, SPURIOUS), "negative") for _ in range(6)]
    right = [(sentence(draw, draw.choice(BAD), draw.choice(BAD)), "negative") for _ in range(6)]
    right += [(sentence(draw, draw.choice(GOOD), draw.choice(GOOD)), "positive") for _ in range(6)]
    return [*wrong, *right]


@pytest.fixture(scope="module")
def found(classifier, rows):
    texts, labels = ([row[side] for row in rows] for side in (0, 1))
    return attnscope.mistakes(str(classifier), texts, labels)


def test_the_spurious_word_stands_first(found, rows):
    assert {mistake.number for mistake in found.mistakes} == {1, 2, 3, 4, 5, 6}
    assert found.accuracy == pytest.approx(12 / 18)
    first = found.shared[0]
    assert (first.word, first.predicted) == (SPURIOUS, "positive")
    assert set(first.mistakes) == {1, 2, 3, 4, 5, 6}
    assert (first.texts, first.right) == (6, 0)
    assert first.right_without > first.right
    assert all(mistake.pushers[0][0] == SPURIOUS for mistake in found.mistakes)
    assert found.confusion == {("negative", "positive"): 6}


def test_the_surest_mistake_comes_first_and_pushes_are_logit_differences(found, classifier):
    chances = [mistake.probability for mistake in found.mistakes]
    assert chances == sorted(chances, reverse=True)
    mistake = found.mistakes[0]
    # by hand: the logits with and without the word
    model, tokenizer = (
        BertForSequenceClassification.from_pretrained(classifier),
        BertTokenizerFast.from_pretrained(classifier),
    )
    ids = tokenizer(mistake.text, return_tensors="pt")["input_ids"]
    blanked = ids.clone()
    blanked[ids == tokenizer.convert_tokens_to_ids(SPURIOUS)] = tokenizer.unk_token_id
    with torch.no_grad():
        before, after = (model.eval()(input_ids=some).logits[0] for some in (ids, blanked))
    assert mistake.pushers[0][1] == pytest.approx(float((before[1] - before[0]) - (after[1] - after[0])), abs=1e-4)
    assert mistake.margin == pytest.approx(float(before[1] - before[0]), abs=1e-4)


def test_words_that_carry_the_answer_only_together_are_found(classifier):
    """Either of two words is enough, so that neither alone turns it."""
    model = attnscope.load(classifier)
    text = "the film superb splendid was of the plot"
    result = attnscope.mistakes(model, [text], ["negative"])
    mistake = result.mistakes[0]
    assert float(mistake.scores.scores.max()) < mistake.margin
    assert str(mistake.phrases[0]) == "superb splendid"
    assert mistake.phrases[0].change > mistake.margin
    assert abs(mistake.phrases[0].change) > abs(mistake.phrases[0].alone)
    # the naive search over all runs of two to six words finds nothing stronger
    record = model.record(text)
    words = text.split()
    changes = {}
    for start in range(len(words)):
        for end in range(start + 2, min(start + 6, len(words)) + 1):
            ids = record.inputs["input_ids"].clone()
            ids[start + 1 : end + 1] = model.blank_ids["unk"]
            odds = [
                model.probabilities([{**record.inputs, "input_ids": some}])[0].log()
                for some in (record.inputs["input_ids"], ids)
            ]
            changes[start, end] = float((odds[0][1] - odds[0][0]) - (odds[1][1] - odds[1][0]))
    assert mistake.phrases[0].change >= 0.7 * max(changes.values())


def test_the_page_says_it(found, tmp_path):
    page = write_mistakes(tmp_path / "wrong.html", found).read_text()
    assert "Right on <b>12 of 18</b>" in page
    assert page.index("Words behind several mistakes") < page.index(f">{SPURIOUS}</th>") < page.index("Text ")
    assert "blue words speak for the wrong answer" in page
    assert '<td dir=auto data-name="right, without it">' in page
    assert "<script>" not in page.split("<main")[1].split("</main")[0]


def test_the_command(classifier, rows, tmp_path):
    file = tmp_path / "texts.tsv"
    file.write_text("text\tgold\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
    out = tmp_path / "wrong.html"
    run = CliRunner().invoke(app, ["report", str(classifier), str(file), "--labels", "gold", "-o", str(out), "--json"])
    assert run.exit_code == 0, run.output
    told = json.loads(run.stdout)
    assert told["shared_words"][0]["word"] == SPURIOUS
    assert out.exists()
    missing = CliRunner().invoke(app, ["report", str(classifier), str(file), "--labels", "label", "-o", str(out)])
    assert missing.exit_code == 2
    assert 'no column "label"' in missing.output


@pytest.mark.parametrize("option", [["--target", "negative"], ["--by", "token"], ["--unsigned"], ["--methods", "raw"]])
def test_what_has_no_use_beside_labels_is_refused(classifier, tmp_path, option):
    command = ["report", str(classifier), "texts.tsv", "--labels", "gold", "-o", str(tmp_path / "out.html"), *option]
    run = CliRunner().invoke(app, command)
    assert run.exit_code == 2
    assert f"{option[0]} has no use beside --labels" in run.output
    assert not list(tmp_path.iterdir())


def test_a_model_of_one_output_is_never_right_or_wrong(classifier, tmp_path):
    model = BertForSequenceClassification.from_pretrained(classifier, num_labels=1, ignore_mismatched_sizes=True)
    model = attnscope.load(model, tokenizer=BertTokenizerFast.from_pretrained(classifier))
    with pytest.raises(attnscope.BadInput, match="no two labels to be right or wrong about"):
        attnscope.mistakes(model, ["the film"], ["LABEL_0"])


def test_without_time_mistakes_stand_without_words(classifier, rows):
    texts, labels = ([row[side] for row in rows] for side in (0, 1))
    result = attnscope.mistakes(str(classifier), texts, labels, budget=0)
    assert len(result.mistakes) == 6
    assert all(mistake.scores is None for mistake in result.mistakes)
    assert result.shared == ()
    assert result.accuracy_without == result.accuracy


def test_labels_go_by_name_in_any_case_or_by_number(classifier):
    texts = ["the awful dull film", "a lovely fine plot"]
    for labels in (["NEGATIVE", "Positive"], ["0", "1"]):
        assert attnscope.mistakes(str(classifier), texts, labels).accuracy == 1.0
    with pytest.raises(attnscope.BadInput, match="knows no label 'happy': it has negative, positive"):
        attnscope.mistakes(str(classifier), texts, ["happy", "1"])
    with pytest.raises(attnscope.BadInput, match="texts must be a list, not 'a film'"):
        attnscope.mistakes(str(classifier), "a film", "positive")
    with pytest.raises(attnscope.BadInput, match="2 texts and 1 labels"):
        attnscope.mistakes(str(classifier), texts, ["1"])


def test_a_text_of_nothing_but_the_word_keeps_it():
    assert _take_out("fun", ["fun"]) == "fun"
    assert _take_out("Great fun.", ["great", "."]) == "fun"


def test_a_model_of_several_labels_at_once_is_refused(classifier):
    model = attnscope.load(classifier)
    model.model.config.problem_type = "multi_label_classification"
    with pytest.raises(attnscope.BadInput, match="several labels at once") as caught:
        attnscope.mistakes(model, ["the film"], [model.labels[0]])
    assert "\n" not in str(caught.value)


def mistake_of(number, **pushes):
    """A mistake whose words pushed it so much; `_` at the end of a word tells two of the same apart."""
    words = tuple(word.rstrip("_") for word in pushes)
    scores = TokenScores(
        method="blank_out",
        tokens=words,
        scores=torch.tensor(list(pushes.values())),
        special=(False,) * len(words),
        word_ids=tuple(range(len(words))),
    )
    return Mistake(number, " ".join(words), "positive", "negative", 0.9, scores)


def test_a_word_that_stands_twice_in_one_text_is_behind_one_mistake():
    found = [mistake_of(1, hell=2.0, hell_=1.5, all=1.0), mistake_of(2, All=3.0, fine=1.0)]
    assert _shared_words(found) == {("all", "negative"): [(1, 1.0), (2, 3.0)]}
    again = [*found, mistake_of(3, Hell=0.5)]
    assert _shared_words(again)["hell", "negative"] == [(1, 2.0), (3, 0.5)]
