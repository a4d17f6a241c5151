"""Weights for a page: what a script decodes is the record within the stated error, and a budget is obeyed."""

import numpy as np
import pytest
import torch

from attnscope import AttentionRecord, BadInput
from attnscope.views import head
from attnscope.views.weights import Form, form_for, inflate, weight_blobs


def record_of(layers=2, heads=3, tokens=40, sharpness=3.0, **more):
    torch.manual_seed(0)
    weights = (sharpness * torch.randn(layers, heads, tokens, tokens)).softmax(-1)
    return AttentionRecord.from_weights(weights, [f"t{place}" for place in range(tokens)], causal=False, **more)


def decoded(blob, form, record):
    """A layer as a script reads it, row by row."""
    heads, queries, keys = record.weights.shape[1:]
    content, rows, width = inflate(blob), heads * queries, form.top_keys or keys
    offset = 0

    def take(kind, count):
        nonlocal offset
        array = np.frombuffer(content, dtype=kind, count=count, offset=offset)
        offset += array.nbytes
        return array

    rest = take("<f4", rows) if form.top_keys else np.zeros(rows)
    places = take("<u2", rows * width).reshape(rows, width) if form.top_keys else np.tile(np.arange(keys), (rows, 1))
    if form.code == "float16":
        values = take("<f2", rows * width).reshape(rows, width).astype(float)
    else:
        largest = take("<f4", rows)
        values = (take("u1", rows * width).reshape(rows, width) / 255.0) ** 2 * largest[:, None]
    assert offset == len(content)
    whole = np.zeros((rows, keys))
    np.put_along_axis(whole, places.astype(int), values, axis=1)
    return torch.from_numpy(whole.reshape(heads, queries, keys)), torch.from_numpy(rest.reshape(heads, queries).copy())


@pytest.mark.parametrize("form", [Form("float16"), Form("uint8"), Form("uint8", 5)], ids=str)
def test_a_layer_decodes_to_the_weights(form):
    record = record_of()
    _, blobs = weight_blobs(record, form)
    for place, layer in enumerate(record.weights.double()):
        found, rest = decoded(blobs[f"layer{place}"], form, record)
        top = (
            layer
            if form.top_keys is None
            else layer.topk(form.top_keys).values.amin(-1, keepdim=True).le(layer) * layer
        )
        error = layer / 2048 if form.code == "float16" else (layer * layer.amax(-1, keepdim=True)).sqrt() / 255 + 1e-5
        assert ((found - top).abs() <= error + 1e-7).all()
        if form.top_keys:
            assert torch.allclose(rest.double(), 1 - top.sum(-1), atol=1e-6)


def test_the_most_exact_form_that_fits_is_taken():
    record = record_of(tokens=100)
    whole = 2 * 3 * 100 * 100
    assert form_for(record_of(tokens=20)) == Form("float16")
    assert form_for(record) == Form("uint8")
    assert form_for(record, size_budget=3 * whole + 300_000) == Form("float16")
    assert form_for(record, size_budget=2 * whole + 250_000) == Form("uint8")
    kept = form_for(record, size_budget=300_000).top_keys
    assert 1 <= kept < 100
    assert Form("uint8", kept).size(record) <= 50_000 < Form("uint8", kept + 1).size(record)
    assert form_for(record, keys_per_query=7) == Form("uint8", 7)
    assert form_for(record, keys_per_query=100).top_keys is None


@pytest.mark.parametrize("budget", [330_000, 500_000, 900_000, 3_000_000])
def test_a_saved_page_obeys_its_budget(budget, tmp_path):
    record = record_of(layers=4, heads=4, tokens=120, sharpness=0.3)
    assert head(record, size_budget=budget).save(tmp_path / "head.html").stat().st_size <= budget


def test_a_budget_that_is_too_small_is_refused():
    with pytest.raises(BadInput, match=r"do not fit into 1,000 bytes.*give a larger size_budget"):
        head(record_of(), size_budget=1000)
    with pytest.raises(BadInput, match="At least one key"):
        head(record_of(), keys_per_query=0)


def test_rows_of_masked_queries_have_no_rest():
    weights = torch.ones(1, 1, 3, 3) / 3
    weights[:, :, 1] = 0
    record = AttentionRecord.from_weights(weights, list("abc"), causal=False, masked_queries=[False, True, False])
    _, blobs = weight_blobs(record, Form("uint8", 1))
    _, rest = decoded(blobs["layer0"], Form("uint8", 1), record)
    assert torch.allclose(rest, torch.tensor([[2 / 3, 0, 2 / 3]], dtype=rest.dtype))


def test_a_whole_page_of_512_tokens_stays_small(tmp_path):
    # weights drawn evenly are the hardest to deflate: 12 x 12 of them would take 45 MB at most
    torch.manual_seed(0)
    weights = torch.nn.functional.normalize(torch.rand(1, 12, 512, 512), p=1, dim=-1)
    record = AttentionRecord.from_weights(weights, ["t"] * 512, causal=False)
    fixed = 300_000
    whole = head(record).save(tmp_path / "whole.html").stat().st_size
    assert 12 * (whole - fixed) + fixed <= 45_000_000
    cut = head(record, keys_per_query=16).save(tmp_path / "cut.html").stat().st_size
    assert 12 * (cut - fixed) + fixed <= 6_000_000
