"""Wrong types and shapes at every public door: one sentence, never a TypeError from somewhere inside.

The calls are made in a process of their own, without the run-time type checks of tests: those would refuse them first.
"""

import json
import subprocess
import sys
import traceback
from functools import cache
from types import SimpleNamespace

import pytest

import attnscope

VALUES = {
    "None": lambda: None,
    "True": lambda: True,
    "half": lambda: 0.5,
    "nan": lambda: float("nan"),
    "huge": lambda: 10**30,
    "far": lambda: -99,
    "text": lambda: "x",
    "surrogate": lambda: "\ud800",
    "bytes": lambda: b"x",
    "empty list": list,
    "floats": lambda: [0.5],
    "texts": lambda: ["a"],
    "nones": lambda: [None],
    "ragged": lambda: [[1], [1, 2]],
    "mapping": lambda: {"a": 1},
    "set": lambda: {1, 2},
    "object": object,
    "complex": lambda: 1j,
    "function": lambda: len,
    "class": lambda: int,
    "tensor": lambda: __import__("torch").zeros(7, 7),
}
NOTHING = ("None",)


def fields(subject, **changes):
    """All that a record needs, with some of it changed."""
    weights = subject.record.weights
    given = {"weights": weights, "query_tokens": ("a", "b"), "key_tokens": ("a", "b"), "stack": "encoder"}
    return {**given, "causal": False, "readout": subject.record.readout, **changes}


def record_with(name):
    return lambda subject, value: attnscope.AttentionRecord(**fields(subject, **{name: value}))


def weights_with(name):
    return lambda subject, value: attnscope.AttentionRecord.from_weights(
        **{"attentions": subject.record.weights, "tokens": ["a", "b"], name: value}
    )


def scores_with(name):
    whole = {"method": "mine", "tokens": ("a", "b"), "special": (False, False), "word_ids": (0, 1)}
    return lambda subject, value: attnscope.TokenScores(**{**whole, "scores": subject.record.readout, name: value})


def method(name, **named):
    if not named:
        return lambda subject, value: getattr(attnscope, name)(value)
    option = named["option"]
    return lambda subject, value: getattr(attnscope, name)(subject.record, **{option: value})


def view(name, option=None):
    if option is None:
        return lambda subject, value: getattr(attnscope.views, name)(value)
    return lambda subject, value: getattr(attnscope.views, name)(subject.record, **{option: value})


def survey_with(name):
    return lambda subject, value: attnscope.survey("demo", "demo", **{name: value})


def trust_with(name):
    return lambda subject, value: attnscope.trust(
        **{"model": subject.model, "texts": ["the dog", "a cat"], "methods": ["raw"], name: value}
    )


METHODS = (
    "raw rollout flow layerwise_tracing effective value_weighted gradient_rollout gradient gradient_x_input"
    " integrated_gradients blank_out compare"
).split()
# each door with the values that are right there, and so are not tried
DOORS = {
    **{f"AttentionRecord({name}=)": (record_with(name), ()) for name in (
        "weights", "query_tokens", "stack", "causal", "readout", "prediction", "query_word_ids", "key_special",
        "layers", "heads",
    )},
    **{f"AttentionRecord({name}=)": (record_with(name), NOTHING) for name in (
        "pooled", "queries", "scaling", "embeddings", "score_bias", "target",
    )},
    "AttentionRecord(softcap=)": (record_with("softcap"), ("None", "half", "far", "huge")),
    "AttentionRecord(text=)": (record_with("text"), ("None", "text", "surrogate")),
    "AttentionRecord(inputs=)": (record_with("inputs"), ()),
    "AttentionRecord(card=)": (record_with("card"), ("mapping",)),
    "from_weights(attentions)": (weights_with("attentions"), ()),
    "from_weights(tokens)": (weights_with("tokens"), ()),
    "from_weights(causal=)": (weights_with("causal"), NOTHING),
    "from_weights(key_tokens=)": (weights_with("key_tokens"), NOTHING),
    "from_weights(index=)": (weights_with("index"), NOTHING),
    "from_weights(attention_mask=)": (weights_with("attention_mask"), NOTHING),
    "from_weights(readout=)": (weights_with("readout"), NOTHING),
    "from_weights(word_ids=)": (weights_with("word_ids"), NOTHING),
    "from_weights(special=)": (weights_with("special"), NOTHING),
    "from_weights(masked_queries=)": (weights_with("masked_queries"), NOTHING),
    "from_weights(card=)": (weights_with("card"), ("None", "mapping")),
    "select(layers)": (lambda subject, value: subject.record.select(value), NOTHING),
    "select(heads=)": (lambda subject, value: subject.record.select(heads=value), NOTHING),
    "save(path)": (lambda subject, value: subject.record.save(value), ()),
    "save(precision=)": (lambda subject, value: subject.record.save("/nowhere/r.safetensors", value), ()),
    "load(path)": (lambda subject, value: attnscope.AttentionRecord.load(value), ()),
    "Survey.load": (lambda subject, value: attnscope.Survey.load(value), ()),
    "Trust.load": (lambda subject, value: attnscope.Trust.load(value), ()),
    "Survey(tables)": (lambda subject, value: attnscope.Survey(value, {}, {}), ()),
    "Trust(table)": (lambda subject, value: attnscope.Trust(value, {}), ()),
    **{f"TokenScores({name}=)": (scores_with(name), ()) for name in (
        "tokens", "scores", "special", "word_ids", "size",
    )},
    "TokenScores(method=)": (scores_with("method"), ("text", "surrogate")),
    "TokenScores(compute_map=)": (scores_with("compute_map"), ("None", "function", "class")),
    "scores.at(query)": (lambda subject, value: subject.scores.at(value), ()),
    "scores.at(layer=)": (lambda subject, value: subject.scores.at(0, value), ()),
    **{f"{name}(record)": (method(name), ()) for name in METHODS},
    "attribute(record)": (lambda subject, value: attnscope.attribute(value, "raw"), ()),
    # what a function of the user's own raises is the user's
    "attribute(method)": (lambda subject, value: attnscope.attribute(subject.record, value), ("function",)),
    **{f"{name}(heads=)": (method(name, option="heads"), ()) for name in ("raw", "rollout", "flow")},
    "rollout(residual=)": (method("rollout", option="residual"), ("half",)),
    "rollout(queries=)": (method("rollout", option="queries"), ("None", "empty list")),
    "raw(layer=)": (method("raw", option="layer"), ()),
    "blank_out(model=)": (method("blank_out", option="model"), ()),
    "compare(methods=)": (method("compare", option="methods"), NOTHING),
    **{f"views.{name}()": (view(name), ()) for name in ("head", "model", "neuron", "flow", "tracing", "scores")},
    **{f"views.head({name}=)": (view("head", name), NOTHING) for name in ("layer", "include_layers", "include_heads")},
    "views.head(heads=)": (view("head", "heads"), ("None", "empty list")),
    **{f"views.{name}(layer=)": (view(name, "layer"), NOTHING) for name in ("model", "tracing")},
    **{f"survey({name}=)": (survey_with(name), NOTHING) for name in ("statistics", "limit", "shard_size", "threads")},
    "survey(resume=)": (survey_with("resume"), ("True",)),
    "survey(engine=)": (survey_with("engine"), ("function", "class")),
    "survey(tokens_per_batch=)": (survey_with("tokens_per_batch"), ("huge",)),
    **{f"record({name}=)": (lambda subject, value, name=name: subject.chat.record(**{name: value}), ()) for name in (
        "messages", "documents",
    )},
    **{f"record(question=, {name}=)": (
        lambda subject, value, name=name: subject.chat.record(question="b", answer="a", **{name: value}), NOTHING
    ) for name in ("documents", "segments")},
    "record(answer=)": (lambda subject, value: subject.chat.record(question="b", answer=value), ("None", "text")),
    "Segments(text)": (lambda subject, value: attnscope.Segments(value, {}), ("text", "surrogate")),
    **{f"Segments.{name}": (
        lambda subject, value, name=name: getattr(attnscope.Segments, name)("x", value), ("text", "surrogate"),
    ) for name in ("by_separator", "sentences", "paragraphs")},
    "Segments(levels)": (lambda subject, value: attnscope.Segments("x", value), ()),
    "Segments.from_spans(spans)": (lambda subject, value: attnscope.Segments.from_spans("x", value), ("empty list",)),
    "Segments.turns": (lambda subject, value: attnscope.Segments.turns("x", value), ("empty list",)),
    "scores.by(level)": (lambda subject, value: subject.scores.by(value), ()),
    "scores.sum_by(level)": (lambda subject, value: subject.scores.sum_by(value), ()),
    "record.by(level)": (lambda subject, value: subject.record.by(value), ()),
    "trust(model)": (trust_with("model"), ()),
    "trust(texts)": (trust_with("texts"), ("texts",)),
    "trust(methods=)": (trust_with("methods"), ("None", "empty list")),
    "trust(against=)": (trust_with("against"), ()),
    "trust(layers=)": (trust_with("layers"), ("None", "empty list")),
    "trust(batch_size=)": (trust_with("batch_size"), ("huge",)),
    "trust(top=)": (trust_with("top"), ("huge",)),
}  # fmt: skip


def chat_model():
    """A causal model of random weights that reads the demo's words."""
    import transformers

    tokenizer = attnscope.load("demo").tokenizer
    config = transformers.GPT2Config(vocab_size=len(tokenizer), n_embd=8, n_layer=1, n_head=1, n_positions=64)
    return attnscope.load(transformers.GPT2LMHeadModel(config), tokenizer=tokenizer)


CALLS = [(door, value) for door, (_, right) in DOORS.items() for value in VALUES if value not in right]


def outcome(subject, door, value):
    """What a call comes to: the sentence of a refusal, or what else happened, after a *."""
    try:
        DOORS[door][0](subject, VALUES[value]())
    except attnscope.BadInput as error:
        return str(error)
    except Exception:  # noqa: BLE001 - whatever else is raised is what is looked for
        return f"*{traceback.format_exc()}"
    return "*nothing was refused"


@cache
def outcomes():
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_there_are_many_calls():
    assert len(CALLS) >= 1000


@pytest.mark.parametrize("door", DOORS)
def test_wrong_arguments_get_one_sentence(door):
    wrong = {value: told for value, told in outcomes()[door].items() if told.startswith("*") or "\n" in told}
    assert wrong == {}
    assert all(0 < len(told) < 700 for told in outcomes()[door].values())


if __name__ == "__main__":
    record = attnscope.AttentionRecord.from_weights([[[[0.5, 0.5], [0.25, 0.75]]]], ["a", "b"])
    subject = SimpleNamespace(record=record, scores=attnscope.raw(record), model=attnscope.load("demo"))
    subject.chat = chat_model()
    found = {door: {} for door in DOORS}
    for door, value in CALLS:
        found[door][value] = outcome(subject, door, value)
    sys.stdout.write(json.dumps(found) + "\n")
