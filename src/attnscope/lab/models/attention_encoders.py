"""What an attention classifier makes of the vectors of its words: the values it adds up, and the keys it scores.

The four variants of Sun & Lu 2020. Symbols of the paper: x_j is a word's vector, h_j its value, and the attention score
is a_j = key_j · V / λ. Except for additive attention, the key is the value.
"""

from collections.abc import Callable, Mapping

from jaxtyping import Bool, Float
from torch import Tensor, nn

from ...errors import BadInput

Vectors = Float[Tensor, "batch token width"]
Encoder = Callable[[Mapping[str, nn.Module], Vectors, Bool[Tensor, "batch token"]], tuple[Vectors, Vectors]]
"""From the layers of the variant, the vectors and where words are, to values and keys."""


def _as_they_are(
    _layers: Mapping[str, nn.Module], vectors: Float[Tensor, "batch token width"], _real: Bool[Tensor, "batch token"]
) -> tuple[Float[Tensor, "batch token width"], Float[Tensor, "batch token width"]]:
    """DP: h = x."""
    return vectors, vectors


def _in_context(
    layers: Mapping[str, nn.Module], vectors: Float[Tensor, "batch token width"], real: Bool[Tensor, "batch token"]
) -> tuple[Float[Tensor, "batch token width"], Float[Tensor, "batch token width"]]:
    """DP-L: h is what an LSTM reads, forwards and backwards; padding at the end of a text is not read."""
    packed = nn.utils.rnn.pack_padded_sequence(vectors, real.sum(1).cpu(), batch_first=True, enforce_sorted=False)
    read, _ = nn.utils.rnn.pad_packed_sequence(layers["lstm"](packed)[0], batch_first=True, total_length=real.shape[1])
    return read, read


def _mapped(
    layers: Mapping[str, nn.Module], vectors: Float[Tensor, "batch token width"], _real: Bool[Tensor, "batch token"]
) -> tuple[Float[Tensor, "batch token width"], Float[Tensor, "batch token width"]]:
    """DP-A: h = M x + b."""
    mapped = layers["affine"](vectors)
    return mapped, mapped


def _scored_behind_tanh(
    layers: Mapping[str, nn.Module], vectors: Float[Tensor, "batch token width"], _real: Bool[Tensor, "batch token"]
) -> tuple[Float[Tensor, "batch token width"], Float[Tensor, "batch token width"]]:
    """AD: h = x, and the key is tanh(M x + b)."""
    return vectors, layers["affine"](vectors).tanh()


def _no_layers(_width: int) -> dict[str, nn.Module]:
    return {}


def _affine(width: int) -> dict[str, nn.Module]:
    return {"affine": nn.Linear(width, width)}


def _lstm(width: int) -> dict[str, nn.Module]:
    """Half the width each way; matrices are orthogonal and biases zero, as the authors begin."""
    if width % 2:
        raise BadInput(f"An LSTM that reads both ways needs an even width, not {width}.")
    lstm = nn.LSTM(width, width // 2, bidirectional=True, batch_first=True)
    for weights in lstm.parameters():
        if weights.ndim == 2:
            nn.init.orthogonal_(weights)
        else:
            nn.init.zeros_(weights)
    return {"lstm": lstm}


VARIANTS: Mapping[str, tuple[Callable[[int], dict[str, nn.Module]], Encoder]] = {
    "dot": (_no_layers, _as_they_are),
    "dot_lstm": (_lstm, _in_context),
    "dot_affine": (_affine, _mapped),
    "additive": (_affine, _scored_behind_tanh),
}
"""Of each variant (DP, DP-L, DP-A and AD in the paper), the layers it has and what it does with them."""
