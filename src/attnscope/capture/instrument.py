"""`instrument`: any torch module, ready to be recorded."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel

from ..errors import BadInput
from .module_attention import sources_of
from .module_capture import ModuleReader
from .module_inputs import feeder_of
from .module_model import ModuleModel
from .module_readout import Readout
from .outcomes import sigmoids, softmax_unless_single

READ_AT: dict[str, Readout] = {
    "first": lambda _tokens: 0,
    "last": lambda _tokens: -1,
    "mean": lambda tokens: [1 / len(tokens)] * len(tokens),
}
PROBABILITIES: dict[str, Callable[[Tensor], Tensor]] = {"softmax": softmax_unless_single, "sigmoid": sigmoids}


def instrument(
    module: nn.Module,
    *,
    tokenize: Callable[[Any], Any],
    attention: Any = None,
    embeddings: str | None = None,
    labels: Sequence[str] | None = None,
    readout: str | int | Callable[[tuple[str, ...]], Any] | None = None,
    answer: Callable[[Any], Any] | None = None,
    probabilities: str = "softmax",
    mask: str | None = None,
    padding: int = 0,
    blanks: Mapping[str, int] | None = None,
    longest: int | None = None,
    name: str | None = None,
) -> ModuleModel:
    """Make any torch module a model that gives attention records, and that methods can run again.

    `tokenize(text)` returns the tokens of a text and what the module is given for it: one id for each token, or a
    mapping of the module's arguments, without the axis of the batch; or a `Tokenized`, which can say more. The module
    is called with `[batch, token]` tensors: ids go to its argument `input_ids`, or else to its first.

    `attention` says where the weights come from: names of submodules, or a class of them, that are or hold
    `nn.MultiheadAttention` (as `nn.TransformerEncoder` does) or that return their weights; `"name.attribute"` for an
    attribute in which a module keeps them; or a function `(module, inputs) -> list of weights`, `[batch, head, query,
    key]` each. By default it is every `nn.MultiheadAttention`. Layers are counted in the order in which they run.

    `embeddings` names the submodule that looks up the tokens' ids, for gradients and blank-out (by default the only
    `nn.Embedding`). The logits are what the module returns, `.logits` of it or its first part, as far as that is
    `[batch, outcome]`, or else `answer(output)`; `labels` names the outcomes, and `probabilities` says what is made of
    logits: `"softmax"`, or `"sigmoid"` where each outcome is judged alone. `blanks` are ids that stand for no token:
    `{"unk": 1}`. `longest` is how many tokens the module reads.

    `readout` is `"first"`, `"last"` or `"mean"`, a position, a function of the tokens, or the name of a submodule that
    pools the tokens and returns the share of each, `[batch, token]`; by default the last token of causal attention,
    else all alike.

    Padding: `mask` names the argument that hides it (by default `attention_mask`, 1 where a token is, or one that ends
    in `padding_mask`, true where none is). Without one, only texts of equal length run together. `padding` is the id.

    >>> import torch
    >>> from torch import nn
    >>> class Small(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.words, self.attention = nn.Embedding(9, 8), nn.MultiheadAttention(8, 2, batch_first=True)
    ...     def forward(self, ids):
    ...         vectors = self.words(ids)
    ...         return self.attention(vectors, vectors, vectors)[0].mean(1)[:, :2]
    >>> model = instrument(Small(), tokenize=lambda text: (text.split(), [len(word) for word in text.split()]))
    >>> tuple(model.record("the key to the cabinet").weights.shape)
    (1, 2, 5, 5)

    """
    if isinstance(module, PreTrainedModel):
        raise BadInput(
            f"{type(module).__name__} is a Hugging Face model: use attnscope.load(model, tokenizer=tokenizer)."
        )
    if probabilities not in PROBABILITIES:
        raise BadInput(f"probabilities= is {' or '.join(PROBABILITIES)}, not {probabilities!r}.")
    pooling = _pooling(module, readout)
    reader = ModuleReader(
        feeder=feeder_of(module, mask, padding),
        sources=sources_of(module, attention),
        lookup=_lookup(module, embeddings),
        readout=None if pooling is not None else _readout(readout),
        pooling=pooling,
        answer=answer,
        probabilities=PROBABILITIES[probabilities],
        labels=None if labels is None else tuple(labels),
    )
    return ModuleModel(reader, tokenize, blanks or {}, longest, name or type(module).__name__)


def _pooling(module: nn.Module, readout: Any) -> nn.Module | None:
    """The submodule that is named as the read-out, if one is."""
    if not isinstance(readout, str) or readout in READ_AT:
        return None
    parts: dict[str, nn.Module] = dict(module.named_modules())
    if not readout or readout not in parts:
        raise BadInput(f"A read-out is {', '.join(READ_AT)}, a position, a function or a submodule, not {readout!r}.")
    return parts[readout]


def _readout(readout: Any) -> Readout | None:
    if isinstance(readout, str):
        return READ_AT[readout]
    return (lambda _tokens: readout) if isinstance(readout, int) else readout


def _lookup(module: nn.Module, name: str | None) -> nn.Module | None:
    """Where embeddings are looked up: the submodule named, or the only one that could; None where that is not clear."""
    parts: dict[str, nn.Module] = dict(module.named_modules())
    if name is None:
        found = [part for part in parts.values() if isinstance(part, nn.Embedding)]
        return found[0] if len(found) == 1 else None
    if name not in parts:
        raise BadInput(f"{type(module).__name__} has no submodule {name!r} to look embeddings up.")
    return parts[name]
