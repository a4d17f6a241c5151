"""`instrument`: any torch module, ready to be recorded."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import nn
from transformers import PreTrainedModel

from ..errors import BadInput
from .module_attention import sources_of
from .module_capture import ModuleReader, Readout
from .module_inputs import feeder_of
from .module_model import ModuleModel

READ_AT: dict[str, Readout] = {
    "first": lambda _tokens: 0,
    "last": lambda _tokens: -1,
    "mean": lambda tokens: [1 / len(tokens)] * len(tokens),
}


def instrument(
    module: nn.Module,
    *,
    tokenize: Callable[[Any], Any],
    attention: Any = None,
    embeddings: str | None = None,
    labels: Sequence[str] | None = None,
    readout: str | int | Callable[[tuple[str, ...]], Any] | None = None,
    answer: Callable[[Any], Any] | None = None,
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
    `[batch, outcome]`, or else `answer(output)`; `labels` names the outcomes. `readout` is `"first"`, `"last"` or
    `"mean"`, a position, or a function of the tokens; by default the last token of causal attention, else all alike.
    `blanks` are ids that stand for no token: `{"unk": 1}`. `longest` is how many tokens the module reads.

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
    if isinstance(readout, str) and readout not in READ_AT:
        raise BadInput(f"A read-out is {', '.join(READ_AT)}, a position or a function, not {readout!r}.")
    reader = ModuleReader(
        feeder=feeder_of(module, mask, padding),
        sources=sources_of(module, attention),
        lookup=_lookup(module, embeddings),
        readout=_readout(readout),
        answer=answer,
        labels=None if labels is None else tuple(labels),
    )
    return ModuleModel(reader, tokenize, blanks or {}, longest, name or type(module).__name__)


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
