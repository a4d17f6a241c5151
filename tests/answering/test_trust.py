"""Trust on answers: figures against plain loops, baselines against their equations, and files that go on."""

import json
import math
import re

import pytest
import scipy.stats
import torch
from typer.testing import CliRunner

import attnscope
from attnscope import BadInput
from attnscope.answering.trust import FIRST, bm25
from attnscope.cli import app
from attnscope.evaluation.per_text import SEGMENT_BASELINES

DOCUMENTS = [
    ["Rome", "Rome fell. It was late."],
    ["The Ald", "The river is called Ald.\nYou see it."],
    ["", "Why? No."],
]
LINES = [
    {"question": "Which river?", "documents": DOCUMENTS, "answer": "The river is called Ald, you see.", "span": "Ald"},
    {"question": "What fell?", "documents": DOCUMENTS[:2], "answer": "Rome fell.", "evidence": {"document": 0}},
]
METHODS = ["raw", "gradient", "sampled_ablation"]


def value(table, method, measure):
    """One figure over all answers."""
    rows = table[(table["method"] == method) & (table["measure"] == measure) & (table["bucket"] == "all")]
    assert len(rows) == 1
    return float(rows["value"].iloc[0])


def plain_log_probability(model, ids, start, tokens, without=()):
    """Of some tokens of an answer that begins at `start`, with places of the prompt deleted: transformers alone."""
    kept = [place for place in range(len(ids)) if place not in set(without)]
    begun = sum(place < start for place in kept)
    with torch.no_grad():
        logits = model.model(input_ids=ids[kept][None], use_cache=False).logits[0].double().log_softmax(-1)
    return sum(float(logits[begun + token - 1, ids[start + token]]) for token in tokens)


def test_figures_are_those_of_a_plain_loop(chat_model):
    trust = attnscope.trust_answers(chat_model, LINES[:1], METHODS, by="sentence", masks=8)
    line = dict(LINES[0])
    answer = attnscope.answer(chat_model, line["question"], line["documents"], answer=line["answer"])
    tokens, ids = answer.tokens_of("Ald"), answer.record.inputs["input_ids"]
    groups, kinds = answer.groups("sentence")[0], answer.groups("sentence")[2]
    segments = [groups[place] for place in answer.removable("sentence")]
    assert 4 < len(segments) < len(groups)
    assert not {kinds[place] for place in answer.removable("sentence")} & {"answer", "marker", "sink"}
    whole = plain_log_probability(chat_model, ids, answer.start, tokens)
    drops = [whole - plain_log_probability(chat_model, ids, answer.start, tokens, some) for some in segments]
    rows = answer.rows("raw", [tokens])[0][0]
    scores = [float(rows[some].sum()) for some in segments]
    expected = scipy.stats.spearmanr(scores, drops).statistic
    assert value(trust.table, "raw", "spearman") == pytest.approx(expected, abs=1e-9)
    order = sorted(range(len(segments)), key=lambda place: -scores[place])
    lost = {}
    for count in FIRST:
        gone = [place for number in order[:count] for place in segments[number]]
        lost[count] = whole - plain_log_probability(chat_model, ids, answer.start, tokens, gone)
        assert value(trust.table, "raw", f"drop_{count}") == pytest.approx(lost[count], abs=1e-4)
    assert value(trust.table, "raw", "comprehensiveness") == pytest.approx(sum(lost.values()) / 3, abs=1e-4)


def test_every_method_stands_beside_every_baseline_with_its_cost(chat_model):
    trust = attnscope.trust_answers(chat_model, LINES, [*METHODS, "raw"], by="document", masks=8)
    assert set(trust.table["method"]) == {*METHODS, *SEGMENT_BASELINES}
    assert set(trust.table.query("method == 'raw'")["baseline"]) <= {*SEGMENT_BASELINES, ""}
    costs = trust.card["costs"]
    assert costs["raw"]["runs"] == 0  # rows of the record there is
    assert costs["gradient"]["runs"] == 1
    assert costs["sampled_ablation"]["runs"] >= 9  # eight masks, the whole, and what is held against it
    assert "by document" in repr(trust)
    assert trust.verdict().startswith("Only 2 texts")
    assert math.isnan(value(trust.table, "raw", "drop_5"))  # there are not so many documents


@pytest.mark.parametrize("asked", ["key", "the old key", "nothing of it"])
def test_overlap_is_that_of_its_equation(asked):
    texts = ["the old key is in the door", "a door", "The KEY, the key!"]
    split = [re.findall(r"\w+", text.lower()) for text in texts]
    mean = sum(map(len, split)) / 3
    expected = []
    for words in split:
        score = 0.0
        for word in {*asked.lower().split()}:
            holding = sum(word in others for others in split)
            often = words.count(word)
            rarity = math.log((3 - holding + 0.5) / (holding + 0.5) + 1)
            score += rarity * often / (often + 1.5 * (0.25 + 0.75 * len(words) / mean))
        expected.append(score)
    assert bm25(texts, asked) == pytest.approx(expected)


def test_a_measurement_goes_on_to_the_same_table(chat_model, tmp_path, monkeypatch):
    monkeypatch.setattr("attnscope.answering.trust.TOGETHER", 1)
    asked = {"methods": ["raw"], "by": "document"}
    whole = attnscope.trust_answers(chat_model, LINES, **asked)

    def stop(done, _):
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attnscope.trust_answers(chat_model, LINES, **asked, out=tmp_path / "t", watch=stop)
    again = attnscope.trust_answers(chat_model, LINES, **asked, out=tmp_path / "t", resume=True)
    assert again.table.equals(whole.table)
    assert attnscope.Trust.load(tmp_path / "t").table.equals(whole.table)
    with pytest.raises(BadInput, match="by"):
        attnscope.trust_answers(chat_model, LINES, methods=["raw"], by="word", out=tmp_path / "t", resume=True)


def test_the_command_takes_answers_where_it_takes_texts(chat_model, tmp_path):
    chat_model.model.save_pretrained(tmp_path / "chat")
    chat_model.tokenizer.save_pretrained(tmp_path / "chat")
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    command = ["trust", str(tmp_path / "chat"), str(file), "--methods", "raw", "--by", "document", "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["card"]["by"] == "document"


@pytest.mark.parametrize(
    ("lines", "options", "sentence"),
    [
        ([], {}, "no answers"),
        ([{"question": "Who?"}], {}, 'no "answer"'),
        ([{**LINES[0], "colour": 1}], {}, "colour"),
        ([{**LINES[0], "span": 3}], {}, "span"),
        ([{**LINES[0], "span": "Thames"}], {}, "Thames"),
        ([LINES[0]], {"methods": ["magic"]}, "magic"),
        ([LINES[0]], {"by": "chapter"}, "chapter"),
        ([LINES[0]], {"limit": -1}, "limit must be at least 1"),
        ([{"answer": "No."}], {}, "question"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_a_sentence(chat_model, lines, options, sentence):
    with pytest.raises(BadInput, match=sentence):
        attnscope.trust_answers(chat_model, lines, **options)
