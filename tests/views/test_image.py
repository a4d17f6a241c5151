"""The image view from Python: which tokens are patches, images in every form, its table and its printed figure."""

import json
import re
from base64 import b64decode
from dataclasses import replace
from hashlib import sha256
from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image

from attnscope import AttentionRecord
from attnscope.attribution import raw, rollout
from attnscope.errors import BadInput
from attnscope.paint import heat
from attnscope.record.scores import TokenScores
from attnscope.views import image
from attnscope.views.image import overlay, pixels_of

ROWS, COLUMNS = 2, 3
PATCHES = [f"patch {row},{column}" for row in range(ROWS) for column in range(COLUMNS)]


def scored(method=rollout, tokens=("[CLS]", *PATCHES), special=None, grid=(ROWS, COLUMNS)) -> TokenScores:
    weights = torch.randn(2, 2, len(tokens), len(tokens), generator=torch.Generator().manual_seed(0)).softmax(-1)
    record = AttentionRecord.from_weights(weights, list(tokens), causal=False, special=special, readout=0)
    return replace(method(record), grid=grid)


@pytest.fixture
def picture() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)


def pixels_in(view) -> np.ndarray:
    kind, content = view.payload["image"].split(";base64,")
    assert kind == "data:image/png"
    return np.asarray(Image.open(BytesIO(b64decode(content))))


def test_the_patches_have_their_scores_and_other_tokens_their_share(picture):
    scores = scored()
    view = image(scores, picture)
    assert (view.payload["grid"], view.payload["size"]) == ([ROWS, COLUMNS], [60, 40])
    (method,) = view.payload["methods"]
    assert np.array(method["scores"]).reshape(-1) == pytest.approx(scores.scores[1:].tolist())
    assert method["elsewhere"] == pytest.approx(float(scores.scores[0]))
    frame = view.to_frame()
    assert list(frame.columns) == ["method", "row", "column", "score"]
    assert frame["score"].tolist() == pytest.approx(scores.scores[1:].tolist())
    json.dumps(dict(view.payload), allow_nan=False)


def test_patches_without_names_are_the_tokens_that_are_not_special(picture):
    special = [True, *[False] * 6, True]
    scores = scored(tokens=("<cls>", *"abcdef", "<end>"), special=special, grid=None)
    (method,) = image(scores, picture, grid=(3, 2)).payload["methods"]
    assert np.array(method["scores"]).reshape(-1) == pytest.approx(scores.scores[1:7].tolist())
    assert np.array(method["scores"]).shape == (3, 2)


def test_an_image_in_every_form_is_the_same(picture, tmp_path):
    Image.fromarray(picture).save(tmp_path / "picture.png")
    floats = picture / 255
    forms = [
        picture,
        floats,
        floats.astype(np.float32),
        torch.tensor(picture).permute(2, 0, 1),
        torch.tensor(floats).permute(2, 0, 1),
        picture.astype(np.int64),
        Image.fromarray(picture),
        Image.fromarray(picture).convert("RGBA"),
        tmp_path / "picture.png",
        str(tmp_path / "picture.png"),
    ]
    for form in forms:
        assert np.array_equal(pixels_in(image(scored(), form)), picture)


def test_a_large_image_is_made_smaller_and_a_heavy_one_travels_as_jpeg():
    noise = np.random.default_rng(0).integers(0, 256, (1500, 3000, 3), dtype=np.uint8)
    assert pixels_of(noise).shape == (512, 1024, 3)
    assert image(scored(), noise).payload["image"].startswith("data:image/jpeg;base64,")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("missing.png", "There is no image missing.png"),
        (__file__, "cannot be read as an image"),
        (np.zeros((4, 4)), "not float64 numbers of the shape [4, 4]"),
        (np.zeros((4, 4, 5)), "of the shape [4, 4, 5]"),
        (np.zeros((0, 4, 3)), "of the shape [0, 4, 3]"),
        (np.full((4, 4, 3), "a"), "An image is"),
        (None, "An image is"),
        (3, "An image is"),
        (torch.randn(3, 8, 8) * 2, "before the model's processor has normalised it"),
        (np.full((4, 4, 3), np.nan), "not finite"),
        (np.full((4, 4, 3), 300), "bytes from 0 to 255"),
    ],
)
def test_what_is_no_image_is_refused(given, sentence):
    with pytest.raises(BadInput, match=re.escape(sentence)) as refused:
        image(scored(), given)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize(
    ("scores", "more", "sentence"),
    [
        (scored(grid=None), {}, "give grid=(rows, columns)"),
        (scored(grid=(3, 3)), {}, "A grid of 3 x 3 has 9 patches, and these scores are of 6"),
        (scored(), {"grid": (4, 4)}, "has 16 patches, and these scores are of 6"),
        (scored(tokens=("[CLS]", *"abcdef"), grid=(2, 3)), {}, "these scores are of 7"),
        (scored(), {"grid": (0, 6)}, "not (0, 6)"),
        ([], {}, "There is nothing to show"),
        ("rollout", {}, "not 'rollout'"),
        (None, {}, "not None"),
    ],
)
def test_scores_that_do_not_fit_are_refused(scores, more, sentence, picture):
    with pytest.raises(BadInput, match=re.escape(sentence)):
        image(scores, picture, **more)


def test_heat_is_even_and_leaves_what_has_no_score():
    drawn = overlay(np.array([[0.0, 0.5], [1.0, np.nan]]), {"opacity": 0.8})
    assert drawn[..., 3].tolist() == [[0.0, 0.4], [0.8, 0.0]]
    bright = [int(colour, 16) / 255 for colour in (heat()[-1][1:3], heat()[-1][3:5], heat()[-1][5:7])]
    assert drawn[1, 0, :3].tolist() == pytest.approx(bright)
    rooted = overlay(np.array([[0.25, 1.0], [0.0, 0.0]]), {"opacity": 1.0, "root": True})
    assert rooted[0, :, 3].tolist() == [0.5, 1.0]


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_its_figure_is_the_same_on_every_run_and_names_every_method(kind, picture, tmp_path):
    view = image([scored(raw), scored(rollout)], picture)
    first, second = (view.save(tmp_path / f"{name}.{kind}").read_bytes() for name in "ab")
    assert sha256(first).digest() == sha256(second).digest()
    plot = view.selecting(methods=["rollout"]).figure()
    assert "rollout" in plot.caption
    assert "raw" not in plot.caption
    with pytest.raises(BadInput, match="opacity is a number from 0 to 1"):
        view.selecting(opacity=2)
