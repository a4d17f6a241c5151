"""Records on disk: what is written is what is read, and what cannot be read says why."""

import dataclasses
import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from attnscope import AttentionRecord, BadInput
from attnscope.record import Target
from attnscope.record.storage import decoded_rows, encoded_rows

BOUNDS = {"float32": 1e-7, "float16": 6e-4, "uint8": 2e-2}


@given(data=st.data(), precision=st.sampled_from(sorted(BOUNDS)))
def test_round_trip(records, data, precision, tmp_path_factory):
    record = AttentionRecord.from_weights(**data.draw(records))
    path = record.save(tmp_path_factory.mktemp("record") / "r.safetensors", precision=precision)
    again = AttentionRecord.load(path)
    for field in dataclasses.fields(record):
        before, after = getattr(record, field.name), getattr(again, field.name)
        if field.name == "card":
            assert after["storage"]["precision"] == precision
        elif field.name == "weights":
            error = (before - after).abs().max().item()
            assert error <= min(after_bound(again), BOUNDS[precision])
            torch.testing.assert_close(after.sum(-1), torch.ones(after.shape[:-1]))
            assert torch.equal(before == 0, after == 0) or precision != "float32"
        elif isinstance(before, torch.Tensor):
            torch.testing.assert_close(before, after, atol=1e-6, rtol=0)
        else:
            assert before == after


def after_bound(record):
    """The largest error the file states; a little more for the renormalisation on reading."""
    return record.card["storage"]["largest_error"] + 5e-4


def test_every_field_comes_back(tmp_path):
    even = torch.full((1, 2, 2, 2), 0.5)
    record = AttentionRecord(
        weights=even,
        query_tokens=("a", "b"),
        key_tokens=("a", "b"),
        stack="encoder",
        causal=False,
        readout=torch.tensor([1.0, 0.0]),
        prediction=(("good", 0.75), ("bad", 0.25)),
        query_word_ids=(None, 0),
        key_word_ids=(None, 0),
        query_special=(True, False),
        key_special=(True, False),
        layers=(4,),
        heads=(1, 3),
        queries=torch.rand(1, 2, 2, 3),
        keys=torch.rand(1, 2, 2, 3),
        scaling=(0.5,),
        softcap=2.0,
        score_bias=torch.tensor([0.0, -torch.inf]).expand(1, 1, 2, 2),
        values=torch.rand(1, 2, 2, 5),
        embeddings=torch.rand(2, 4),
        embedding_gradients=torch.rand(2, 4),
        attention_gradients=torch.rand(1, 2, 2, 2),
        target=Target("good", 1, "difference"),
        text=("first", "second"),
        inputs={"input_ids": torch.tensor([2, 7]), "token_type_ids": torch.tensor([0, 1])},
        card={"model": "mine", "versions": {"torch": "2"}},
    )
    again = AttentionRecord.load(record.save(tmp_path / "r.safetensors"))
    for field in dataclasses.fields(record):
        before, after = getattr(record, field.name), getattr(again, field.name)
        if isinstance(before, torch.Tensor):
            assert torch.equal(before, after), field.name
        elif field.name == "inputs":
            assert {name: ids.tolist() for name, ids in after.items()} == {
                "input_ids": [2, 7],
                "token_type_ids": [0, 1],
            }
        elif field.name != "card":
            assert before == after, field.name
    assert again.card["versions"] == {"torch": "2"}


def test_sink_rows_keep_their_mass_as_bytes():
    """A sink of .9 over 511 tokens of .0002 each: a linear code makes them all zero."""
    row = torch.full((512,), 0.1 / 511)
    row[0] = 0.9
    sinks = row.expand(1, 1, 512, 512).contiguous()
    linear = (sinks * 255 / 0.9).round() * 0.9 / 255
    assert linear[..., 1:].sum(-1).max() == 0
    again = decoded_rows(*encoded_rows(sinks))
    assert (again - sinks).abs().max() < 0.02
    assert (again[..., 1:].sum(-1) - 0.1).abs().max() < 0.02
    random = torch.randn(2, 2, 512, 512, generator=torch.Generator().manual_seed(0)).mul(2)
    random[..., 0] += 9
    random = random.softmax(-1)
    assert (decoded_rows(*encoded_rows(random)) - random).abs().max() < 5e-3


def test_twelve_by_twelve_by_512_takes_less_than_40_megabytes(tmp_path):
    record = AttentionRecord.from_weights(torch.full((12, 12, 512, 512), 1 / 512), ["a"] * 512)
    path = record.save(tmp_path / "r.safetensors", precision="uint8")
    assert path.stat().st_size < 40e6


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    record = AttentionRecord.from_weights(torch.eye(2), ["a", "b"])
    path = record.save(tmp_path / "r.safetensors")
    before = path.read_bytes()
    monkeypatch.setattr(
        "attnscope.record.storage.save_file", lambda *_, **__: (_ for _ in ()).throw(OSError("disk full"))
    )
    with pytest.raises(OSError, match="disk full"):
        record.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def spoil(path, kind):
    whole = path.read_bytes()
    match kind:
        case "missing":
            path.unlink()
        case "truncated":
            path.write_bytes(whole[: len(whole) // 2])
        case "text":
            path.write_text("hello, this is no safetensors file at all")
        case "foreign":
            save_file({"x": torch.zeros(2)}, path)
        case "newer":
            save_file({"x": torch.zeros(2)}, path, metadata={"format": "attnscope.AttentionRecord", "version": "99"})
        case "headless":
            save_file({"x": torch.zeros(2)}, path, metadata={"format": "attnscope.AttentionRecord", "version": "1"})


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("missing", "There is no file"),
        ("truncated", "not a whole safetensors file"),
        ("text", "not a whole safetensors file"),
        ("foreign", "not an attention record"),
        ("newer", "reads up to 1: upgrade"),
        ("headless", "its header missing"),
    ],
)
def test_files_that_cannot_be_read_get_one_sentence(tmp_path, kind, sentence):
    path = AttentionRecord.from_weights(torch.eye(2), ["a", "b"]).save(tmp_path / "r.safetensors")
    spoil(path, kind)
    with pytest.raises(BadInput, match=sentence) as caught:
        AttentionRecord.load(path)
    assert "\n" not in str(caught.value)


def test_the_header_is_json_with_a_version(tmp_path):
    path = AttentionRecord.from_weights(torch.eye(2), ["a", "b"]).save(tmp_path / "r.safetensors")
    length = int.from_bytes(path.read_bytes()[:8], "little")
    metadata = json.loads(path.read_bytes()[8 : 8 + length])["__metadata__"]
    assert metadata["version"] == "1"
    assert json.loads(metadata["record"])["query_tokens"] == ["a", "b"]


# ---- a file is data from a stranger


def written_by_version_1(path, tensors=None, **changes):
    """A file as the first format wrote it, by hand; `changes` replace fields of its header, None leaves them out."""
    header = {
        "query_tokens": ["[CLS]", "so"],
        "key_tokens": ["[CLS]", "so"],
        "stack": "encoder",
        "causal": False,
        "prediction": [["good", 0.75]],
        "query_word_ids": [None, 0],
        "key_word_ids": [None, 0],
        "query_special": [True, False],
        "key_special": [True, False],
        "masked_queries": [False, False],
        "layers": [3],
        "heads": [0],
        "scaling": [0.5],
        "softcap": 2.0,
        "target": {"outcome": "good", "index": 1, "quantity": "logit"},
        "text": "so",
        "card": {"model": "mine", "storage": {"precision": "float32", "largest_error": 0.0}},
    }
    header = {name: value for name, value in (header | changes).items() if value is not ...}
    whole = {"weights": torch.full((1, 1, 2, 2), 0.5), "readout": torch.tensor([1.0, 0.0])}
    whole |= {"inputs.input_ids": torch.tensor([2, 7])} | (tensors or {})
    save_file(
        {name: tensor for name, tensor in whole.items() if tensor is not None},
        path,
        metadata={"format": "attnscope.AttentionRecord", "version": "1", "record": json.dumps(header)},
    )
    return path


def test_a_file_of_version_1_is_read(tmp_path):
    record = AttentionRecord.load(written_by_version_1(tmp_path / "r.safetensors"))
    assert (record.tokens, record.layers, record.word_ids) == (("[CLS]", "so"), (3,), (None, 0))
    assert record.target == Target("good", 1, "logit")
    assert record.prediction == (("good", 0.75),)
    assert record.inputs["input_ids"].tolist() == [2, 7]
    bare = dict.fromkeys(("prediction", "scaling", "softcap", "target", "text", "card", "layers"), ...)
    assert AttentionRecord.load(written_by_version_1(tmp_path / "bare.safetensors", **bare)).layers == (0,)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"query_tokens": ["a", 5]}, r"query_tokens\[1\] must be a text, not 5"),
        ({"query_tokens": "ab"}, "query_tokens must be a"),
        ({"query_tokens": ...}, "query_tokens is missing"),
        ({"query_tokens": ["a"], "key_tokens": ["a"]}, "query_tokens has 1 entries"),
        ({"query_tokens": ["x" * 1_000_001, "b"]}, r"query_tokens\[0\] must be a text of at most 1000000 characters"),
        ({"stack": "sideways"}, "stack must be 'encoder', 'decoder' or 'cross', not 'sideways'"),
        ({"stack": ["encoder"]}, "stack must be"),
        ({"causal": 0}, "causal must be True or False, not 0"),
        ({"causal": "no"}, "causal must be True or False"),
        ({"prediction": [["good", "0.75"]]}, r"prediction\[0\]\[1\] must be a number, not '0.75'"),
        ({"prediction": [["good", float("nan")]]}, r"prediction\[0\]\[1\] must be a finite number"),
        ({"prediction": [["good"]]}, r"prediction\[0\]"),
        ({"prediction": {"good": 1}}, "prediction must be a"),
        ({"query_word_ids": [-1, 0]}, r"query_word_ids\[0\] must be greater than or equal to 0, not -1"),
        ({"query_word_ids": [0.5, 0]}, r"query_word_ids\[0\] must be a whole number"),
        ({"key_special": [0, 1]}, r"key_special\[0\] must be True or False, not 0"),
        ({"layers": [-3]}, r"layers\[0\] must be greater than"),
        ({"layers": [3, 3]}, "layers must be numbers that are all different"),
        ({"layers": [1, 2]}, "layers has 2 entries"),
        ({"layers": [10**400]}, r"layers\[0\] must be"),
        ({"scaling": [float("inf")]}, r"scaling\[0\] must be a finite number"),
        ({"scaling": [0.5, 0.5]}, "scaling has 2 entries"),
        ({"softcap": [1]}, "softcap must be a number"),
        ({"target": {"outcome": "good"}}, "target is missing"),
        ({"target": ["good", 1, "logit"]}, "target must be"),
        ({"text": {"a": "b"}}, "text must be a"),
        ({"card": ["mine"]}, "card must be a"),
        ({"card": {"a": float("nan")}}, "card must be finite numbers only"),
        ({"card": json.loads('{"a":' * 40 + "1" + "}" * 40)}, "card must be at most 32 levels"),
        ({"inputs": {"input_ids": [1]}}, "inputs"),
        ({"unknown": 1}, "unknown is no field of it"),
        ({"pooled": "max"}, "pooled must be 'mean'"),
    ],
)
def test_a_header_with_a_wrong_field_is_refused_by_its_name(tmp_path, changes, sentence):
    path = written_by_version_1(tmp_path / "r.safetensors", **changes)
    with pytest.raises(BadInput, match=sentence) as caught:
        AttentionRecord.load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("tensors", "sentence"),
    [
        ({"weights": None}, r"parts missing \(weights\)"),
        ({"readout": None}, r"parts missing \(readout\)"),
        ({"readout": torch.tensor([1, 0])}, "'readout' holds numbers of the kind int64"),
        ({"readout": torch.tensor([1.0])}, "'readout' has the shape 1; beside these weights it must be 2"),
        ({"weights": torch.full((1, 2, 2), 0.5)}, "'weights' has the shape 1 x 2 x 2"),
        ({"weights": torch.zeros(1, 0, 2, 2)}, "weights is empty"),
        ({"weights": torch.full((1, 1, 2, 2), True)}, "'weights' holds numbers of the kind unknown"),
        ({"inputs.input_ids": torch.tensor([0.5])}, "'inputs.input_ids' holds numbers of the kind float32"),
        ({"inputs.input_ids": torch.tensor([[1]])}, "'inputs.input_ids' has the shape 1 x 1"),
        ({"queries": torch.zeros(1, 1, 3, 2)}, "'queries' has the shape 1 x 1 x 3 x 2"),
        ({"values": torch.full((1, 1, 2, 2), torch.nan)}, "values holds a value that is not a finite number"),
        ({"weight_codes": torch.zeros(1, 1, 2, 2, dtype=torch.uint8)}, r"parts missing \(row_largest\)"),
        ({"other": torch.zeros(2)}, "a tensor called 'other', which no record has"),
        ({f"inputs.{number}": torch.tensor([1]) for number in range(80)}, "more than any record has"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(tmp_path, tensors, sentence):
    path = written_by_version_1(tmp_path / "r.safetensors", tensors)
    with pytest.raises(BadInput, match=sentence):
        AttentionRecord.load(path)


def test_a_header_that_nests_too_deep_or_is_no_json_is_refused(tmp_path):
    for inner in ("[" * 100_000, "{", "", '{"card": "\\ud800"}', "NaN"):
        save_file(
            {"weights": torch.ones(1, 1, 1, 1)},
            tmp_path / "r.safetensors",
            metadata={"format": "attnscope.AttentionRecord", "version": "1", "record": inner},
        )
        with pytest.raises(BadInput, match=r"The header of .* is damaged"):
            AttentionRecord.load(tmp_path / "r.safetensors")


@pytest.mark.parametrize("name", ["r.txt", "r", "x" * 5000 + ".safetensors"])
def test_a_name_that_cannot_be_written_to_gets_one_sentence(tmp_path, name):
    record = AttentionRecord.from_weights(torch.eye(2), ["a", "b"])
    with pytest.raises(BadInput, match=r"ends in \.safetensors|File name too long"):
        record.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_and_a_forbidden_place_get_one_sentence(tmp_path):
    record = AttentionRecord.from_weights(torch.eye(2), ["a", "b"])
    (tmp_path / "f.safetensors").mkdir()
    with pytest.raises(BadInput, match="is a folder"):
        record.save(tmp_path / "f.safetensors")
    with pytest.raises(BadInput, match="There is no file"):
        AttentionRecord.load(tmp_path / "f.safetensors")
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot be written"):
        record.save(tmp_path / "file" / "r.safetensors")


def test_half_a_surrogate_pair_becomes_the_sign_that_views_show(tmp_path):
    record = AttentionRecord.from_weights(torch.eye(2), ["\ud800", "b\udfff"])
    assert record.tokens == ("\ufffd", "b\ufffd")
    changed = dataclasses.replace(record, text="a\ud800", prediction=(("\ud800", 1.0),))
    path = changed.save(tmp_path / "r.safetensors")
    length = int.from_bytes(path.read_bytes()[:8], "little")
    path.read_bytes()[8 : 8 + length].decode("utf-8")
    again = AttentionRecord.load(path)
    assert (again.tokens, again.text, again.prediction) == (record.tokens, "a\ufffd", (("\ufffd", 1.0),))
    with pytest.raises(BadInput, match="card must be a text that UTF-8 can write"):
        AttentionRecord.from_weights(torch.eye(2), ["a", "b"], card={"note": "\ud800"})
