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
