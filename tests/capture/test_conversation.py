"""Conversations in: the ids of the chat template, the place of each turn and document, an answer given or generated."""

import copy

import pytest

import attnscope
from attnscope import BadInput, Segments
from attnscope.capture.conversation import given_ids, spelled_behind

DOCUMENTS = [("Rome", "Rome fell. It was late."), ("The Ald", "The river is called Ald.\nYou see it.")]
QUESTION = "Which river?"
MESSAGES = [
    {"role": "system", "content": "Answer."},
    {"role": "user", "content": " user "},
    {"role": "assistant", "content": "Rome fell."},
    {"role": "user", "content": "Which documents?"},
]


def template_ids(model, messages):
    return list(
        model.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"]
    )


def leaves(record, level):
    """(name, kind, text by its tokens) of each segment of a level."""
    groups, labels, kinds = record.segments.groups(level, record.tokens, record.special)
    text, offsets = record.segments.text, record.segments.offsets
    pieces = ["".join(text[slice(*offsets[place])] for place in group) for group in groups]
    return list(zip(labels, kinds, pieces, strict=True))


def test_the_ids_are_those_of_the_template_and_the_turns_are_known(chat_model):
    record = chat_model.record(messages=MESSAGES, max_new_tokens=3)
    ids, prompt = record.inputs["input_ids"].tolist(), record.card["prompt_tokens"]
    assert ids[:prompt] == template_ids(chat_model, MESSAGES)
    assert ids.count(0) == 1
    assert 1 <= len(ids) - prompt <= 3
    told = leaves(record, "turn")
    assert [name for name, _, _ in told] == [
        "markers", "system", "markers", "user", "markers", "assistant", "markers", "user 2", "markers", "answer",
    ]  # fmt: skip
    # the content that is the name of a role is not taken for the role's marker; the template trims it
    assert [piece for name, _, piece in told if name != "markers"][:-1] == [
        "Answer.", "user", "Rome fell.", "Which documents?",
    ]  # fmt: skip
    markers = [piece for name, _, piece in told if name == "markers"]
    assert markers[0] == "<s><|system|>\n"
    assert "".join(piece for _, _, piece in told) == record.text == record.segments.text
    quiet = [place for place in range(prompt) if record.special[place]]
    groups, _, kinds = record.segments.groups("turn", record.tokens, record.special)
    assert quiet == sorted(p for group, kind in zip(groups, kinds, strict=True) if kind == "marker" for p in group)
    assert record.card["answer"] == told[-1][2]


def test_documents_and_question_stand_in_the_users_turn(chat_model):
    record = chat_model.record(documents=DOCUMENTS, question=QUESTION, answer="The Ald.")
    told = leaves(record, "document")
    assert [(name, kind) for name, kind, _ in told if kind != "marker"] == [
        ("Answer the question from these documents.", "turn"), ("Rome", "document"), ("The Ald", "document"),
        ("question", "question"), ("answer", "answer"),
    ]  # fmt: skip
    assert [piece for _, kind, piece in told if kind in ("document", "answer")] == [
        "Rome\nRome fell. It was late.\n\n", "The Ald\nThe river is called Ald.\nYou see it.\n\n", "The Ald.",
    ]  # fmt: skip
    sentences = [name for name, kind, _ in leaves(record, "sentence") if kind == "document"]
    assert sentences == ["Rome", "Rome fell.", "It was late.", "The Ald", "The river is called Ald.", "You see it."]
    content = record.text.split("<|user|>\n")[1].split("<|end|>")[0]
    assert record.inputs["input_ids"].tolist()[: record.card["prompt_tokens"]] == template_ids(
        chat_model, [{"role": "user", "content": content}]
    )
    scores = attnscope.rollout(record)
    for level in ("turn", "document", "sentence", "word"):
        assert scores.by(level)["score"].sum() == pytest.approx(1, abs=1e-5)
    # by titles, without titles, and in messages of one's own: the same places
    by_title = chat_model.record(documents=dict(DOCUMENTS), question=QUESTION, answer="The Ald.")
    asking = [{"role": "user", "content": QUESTION}]
    in_messages = chat_model.record(messages=asking, documents=DOCUMENTS, answer="The Ald.")
    assert by_title.segments == record.segments == in_messages.segments
    untitled = chat_model.record(documents=["Rome fell.", "It was late."], question=QUESTION, answer="Late.")
    assert [name for name, kind, _ in leaves(untitled, "document") if kind == "document"] == [
        "document 1",
        "document 2",
    ]


def test_a_given_answer_is_what_was_generated(chat_model):
    asked = {"documents": DOCUMENTS, "question": QUESTION}
    written = chat_model.record(**asked, max_new_tokens=6, do_sample=True, seed=3)
    again = chat_model.record(**asked, max_new_tokens=6, do_sample=True, seed=3)
    assert written.tokens == again.tokens
    assert written.card["generation"]["seed"] == 3
    turn = written.text.split("<|user|>\n")[1].split("<|end|>")[0]
    for answer in ("The river is called Ald.", "Rome, 你好!"):
        given = chat_model.record(**asked, answer=answer)
        as_turn = chat_model.record(
            messages=[{"role": "user", "content": turn}, {"role": "assistant", "content": answer}]
        )
        assert given.card["answer"] == as_turn.card["answer"] == answer
        assert given.tokens == as_turn.tokens
        start = given.card["prompt_tokens"]
        covered = [given.segments.text[slice(*offset)] for offset in given.segments.offsets[start:]]
        assert "".join(covered) == answer
        direct = chat_model.tokenizer(answer, add_special_tokens=False)["input_ids"]
        assert given.inputs["input_ids"].tolist()[start:] == direct


def test_an_answer_ends_where_the_template_ends_a_turn(chat_model, monkeypatch):
    """Some models' generation configuration names another end than the template writes."""
    model = chat_model.model
    biased = {"sequence_bias": [[[1], 1e4]]}
    monkeypatch.setattr(model.generation_config, "eos_token_id", 5)
    monkeypatch.setattr(model.config, "eos_token_id", 5)
    tokenizer = copy.deepcopy(chat_model.tokenizer)
    tokenizer.eos_token = "<pad>"
    with pytest.raises(BadInput, match="ends at once"):
        attnscope.load(model, tokenizer=tokenizer).record(messages=MESSAGES, max_new_tokens=5, **biased)


def test_progress_is_told_while_an_answer_is_written(chat_model):
    from attnscope.progress import told_to

    seen = []
    with told_to(lambda done, whole: seen.append((done, whole))):
        chat_model.record(messages=MESSAGES, max_new_tokens=4, min_new_tokens=4, num_beams=2)
    assert seen[:4] == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_without_a_template_documents_and_question_are_plain_text(base_model):
    record = base_model.record(documents=DOCUMENTS, question=QUESTION, answer="The Ald.")
    assert record.text.endswith("Question: Which river?\nAnswer:\nThe Ald.")
    assert record.card["form"] == "plain text"
    assert record.tokens[0] == "<s>"
    assert [kind for _, kind, _ in leaves(record, "document")].count("document") == 2
    assert record.segments.levels == ("document", "sentence")


def test_segments_of_ones_own_lie_in_one_of_the_texts(chat_model):
    fields = Segments.from_spans(DOCUMENTS[0][1], [(0, 4, "city")], level="field")
    record = chat_model.record(documents=DOCUMENTS, question=QUESTION, answer="The Ald.", segments=fields)
    assert ("city", "field", "Rome") in leaves(record, "field")
    assert record.segments.levels == ("turn", "document", "field", "sentence")


def test_an_answer_goes_on_from_the_prompt_also_where_its_first_token_would_join_it(chat_model):
    tokenizer = chat_model.tokenizer
    before = tokenizer("The", add_special_tokens=False)["input_ids"]
    ids = given_ids(tokenizer, "The", before, " river")
    assert tokenizer.decode([*before, *ids]) == "The river"
    text, offsets = spelled_behind(tokenizer, before, tokenizer("é!", add_special_tokens=False)["input_ids"])
    assert text == "é!"
    assert [text[start:end] for start, end in offsets] == ["", "é", "!"]


TOO_LONG = [{"role": "user", "content": "The river. " * 100}]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"messages": []}, "with at least one"),
        ({"messages": [{"role": "user"}]}, r"Message 0 has the keys .* not the keys \['role'\]"),
        ({"messages": [{"role": "user", "content": "a", "name": "x"}]}, "Message 0 has the keys"),
        ({"messages": [{"role": "robot", "content": "a"}]}, "role of message 0 is one of .* not 'robot'"),
        ({"messages": [{"role": "user", "content": " "}]}, "content of message 0 is empty"),
        ({"messages": [{"role": "user", "content": ["a"]}]}, "content of message 0 is empty, or no text"),
        ({"documents": ["a", " "], "question": "b"}, "Document 1 .* is empty"),
        ({"documents": [], "question": "b"}, "with at least one"),
        ({"documents": [("a", "b", "c")], "question": "b"}, "Document 0 is a text"),
        ({"documents": ["a"]}, "nothing is asked"),
        ({"question": " "}, "question= is a text"),
        ({"messages": MESSAGES, "question": "b"}, "one of them"),
        ({"messages": MESSAGES, "answer": ""}, "answer= is a text"),
        ({"messages": MESSAGES, "answer": "a", "do_sample": True}, "leave do_sample= out"),
        ({"messages": MESSAGES, "colour": "red"}, "no option colour"),
        ({"messages": MESSAGES, "window": 9}, "window=: they are for texts"),
        ({"messages": TOO_LONG}, "at most 400, its answer included"),
        ({"messages": MESSAGES, "answer": "The river. " * 100}, "at most 400, its answer included"),
        ({"messages": MESSAGES, "max_new_tokens": 399}, "more than the 400"),
        ({"question": "b", "answer": "a", "segments": Segments.sentences("not there")}, "to be found once"),
        ({"text": "a", "messages": MESSAGES}, "one of them"),
        ({"text": "a", "max_new_tokens": 3}, "takes no max_new_tokens"),
    ],
)
def test_what_cannot_be_gets_one_sentence(chat_model, given, sentence):
    with pytest.raises(BadInput, match=sentence) as caught:
        chat_model.record(given.pop("text", None), **given)
    assert "\n" not in str(caught.value)


def test_models_that_take_no_conversation_say_so(base_model, tiny):
    with pytest.raises(BadInput, match="has no chat template"):
        base_model.record(messages=MESSAGES)
    with pytest.raises(BadInput, match="no causal language model"):
        tiny.load("bert").record(question="the key", answer="a")
    with pytest.raises(BadInput, match="does not survive this tokenizer"):
        tiny.load("llama").record(question="the key", answer="dogs; see")


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("{{ raise_exception('no system prompt\nhere') }}", "refuses these messages: no system prompt here"),
        ("{{ messages[0]['content'] }}", "leaves out message 1"),
        ("{% for m in messages %}{{ m['content'] | upper }};{% endfor %}", "rewrites the content of message 0|leaves"),
        ("{% for m in messages %}{{ m['content'] }}{{ m['content'] | length }};{% endfor %}", "rewrites|other markers"),
    ],
)
def test_templates_that_hide_the_turns_are_refused(chat_model, monkeypatch, template, sentence):
    monkeypatch.setattr(chat_model.tokenizer, "chat_template", template)
    with pytest.raises(BadInput, match=sentence):
        chat_model.record(messages=MESSAGES, answer="a")


def test_a_real_chat_model(real_model):
    model = attnscope.load(str(real_model("smollm2")))
    record = model.record(documents=DOCUMENTS, question=QUESTION, answer="The river is called Ald.", verify="never")
    content = record.text.split("<|im_start|>user\n")[1].split("<|im_end|>")[0]
    assert record.inputs["input_ids"].tolist()[: record.card["prompt_tokens"]] == template_ids(
        model, [{"role": "user", "content": content}]
    )
    assert [name for name, kind, _ in leaves(record, "document") if kind == "document"] == ["Rome", "The Ald"]
