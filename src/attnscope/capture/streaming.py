"""Attention as it passes: each layer is shown once, as weights or as vectors, and kept nowhere.

The weights of all layers are never held together, so memory does not grow with the layers. Only families off the
AttentionInterface whose modules do not give what the model returns hold them for the time of a batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel

from ..errors import BadInput
from ..numerals import counted
from ..record.attention import Stack
from ..record.checks import looks_causal
from ..record.vectors import LayerVectors
from .collect import no_attention
from .encoding import Encoded, Passage, encode, encode_ids
from .hub_model import HubModel, Ids, decoder_start
from .hugging_face import HuggingFaceReader
from .request import Request
from .vectors import VectorCall, follows_from_vectors, watch_vectors
from .verifying import observed_run, self_check
from .watching import AttentionCall

Show = Callable[[int, Float[Tensor, "text head query key"]], None]
"""Is given the number of a layer and its weights on a padded batch."""
See = Callable[[int, Float[Tensor, "head query key"]], object]
"""Who is shown the weights of a layer, by its number."""


@dataclass(frozen=True)
class Shape:
    """What a model's attention looks like, as seen on one text."""

    layers: int
    heads: int
    causal: bool


def body_of(reader: HubModel) -> HubModel:
    """The same model without the head on top, which attention does not need."""
    body = reader.model.base_model
    return replace(reader, model=body) if isinstance(body, PreTrainedModel) else reader


def stream(body: HubModel, texts: Sequence[Encoded], stack: Stack, show: Show) -> None:
    """Run texts as one batch and show the self-attention of a stack, layer by layer."""
    lengths = torch.tensor([len(text) for text in texts])
    longest = int(lengths.max())
    real = torch.arange(longest) < lengths[:, None]
    seen = 0

    def observe(call: AttentionCall) -> None:
        nonlocal seen
        if call.stack != stack:
            return
        if call.sink is not None:
            raise BadInput(
                f"{type(body.model).__name__} has learned sinks that take attention from the text, so shares of its"
                " attention mean nothing."
            )
        if call.weights.shape[-2] < longest or call.weights.shape[-1] < longest:
            raise BadInput(_not_whole(body))
        weights = call.weights[..., :longest, :longest].detach()
        if call.weights.shape[-1] > longest and bool((call.weights[..., longest:][real.to(weights.device)] > 0).any()):
            raise BadInput(
                f"{type(body.model).__name__} attends to more than its tokens, so shares of its attention mean nothing."
            )
        # a row that went wrong is so throughout: its first weight tells
        if (weights[..., 0].isnan() & real.to(weights.device)[:, None]).any():
            raise BadInput(_not_a_number(body, seen))
        show(seen, weights)
        seen += 1

    with torch.no_grad():
        batch = body.batch_of([_inputs(body, text) for text in texts])
        observed_run(body.model, batch, observe, self_check(body.model, batch, "once"))
    if seen == 0:
        raise BadInput(no_attention(body.model, stack))


def stream_layers(reader: HuggingFaceReader, passage: Passage, request: Request, see: See) -> None:
    """Run the model on one text, and hand each layer's weights over as they come."""
    queries, keys = passage.sides(request.stack)
    numbers = count()

    def hand_over(call: AttentionCall) -> None:
        if call.stack == request.stack:
            see(next(numbers), call.weights[0, :, : len(queries), : len(keys)])

    batch = reader.answer_batch([passage.inputs])
    with torch.no_grad():
        observed_run(reader.model, batch, hand_over, self_check(reader.model, batch, request.verify))
    if next(numbers) == 0:
        raise BadInput(no_attention(reader.model, request.stack))


def stream_vectors(body: HubModel, text: Encoded, stack: Stack, show: Callable[[int, LayerVectors], None]) -> None:
    """Run one text and show the vectors that the self-attention of a stack follows from, layer by layer.

    The vectors of every layer are compared with what it put out; the answer of the whole model is not looked at.
    """
    seen = 0

    def observe(call: VectorCall) -> None:
        nonlocal seen
        if call.stack != stack:
            return
        if call.layer.shape[1:] != (len(text), len(text)):
            raise BadInput(_not_whole(body))
        if call.layer.normalizers.isnan().any():
            raise BadInput(_not_a_number(body, seen))
        if not follows_from_vectors(call):
            raise BadInput(
                f"The queries and keys of {type(body.model).__name__} in layer {seen} do not give what the layer put"
                f" out, so a text of {counted(len(text), 'token')} cannot be surveyed: leave out texts so long."
            )
        show(seen, call.layer)
        seen += 1

    with torch.no_grad(), watch_vectors(body.model, observe) as run:
        run(**body.batch_of([_inputs(body, text)]))
    if seen == 0:
        raise BadInput(no_attention(body.model, stack))


def _not_whole(body: HubModel) -> str:
    return (
        f"The attention of {type(body.model).__name__} is not a whole query x key matrix (it is local, pooled or"
        " sparse), so it cannot be surveyed."
    )


def _not_a_number(body: HubModel, layer: int) -> str:
    return (
        f"Attention of {type(body.model).__name__} in layer {layer} is not a number: load the model in float32 (in"
        " float64, padding behind a sliding window does this), and see whether its weights are in order."
    )


def shape_of(body: HubModel, stack: Stack) -> Shape:
    """Run a few words to see the layers and heads, and whether tokens see only what stands before them."""
    layers: list[Tensor] = []
    few_words = encode(body.tokenizer, "one two three four", body.longest, truncation=True)
    stream(body, [few_words], stack, lambda _, weights: layers.append(weights[0].float().cpu()))
    heads = {len(weights) for weights in layers}
    if len(heads) > 1:
        raise BadInput(f"The layers of {type(body.model).__name__} have different numbers of heads: {sorted(heads)}.")
    return Shape(len(layers), heads.pop(), stack == "decoder" and looks_causal(torch.stack(layers)))


def _inputs(body: HubModel, text: Encoded) -> Ids:
    """What the model is given; the encoder below a decoder asks that decoder for nothing but its start."""
    if not body.has_both_sides:
        return text.inputs
    start = encode_ids(body.tokenizer, [decoder_start(body)])
    return {**text.inputs, "decoder_input_ids": start.inputs["input_ids"]}
