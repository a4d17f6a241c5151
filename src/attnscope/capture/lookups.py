"""The place where a model looks up the embeddings of its tokens, and a hook there for a while."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel


def lookups(model: PreTrainedModel) -> list[nn.Module]:
    """The modules that look up the embeddings of each kind of ids, the encoder's before the decoder's."""
    holders = [model.get_encoder(), model.get_decoder()] if model.config.is_encoder_decoder else [model]
    return [holder.get_input_embeddings() for holder in holders]


@contextmanager
def hooked_lookups(model: PreTrainedModel, hook: Callable[[nn.Module, Any, Tensor], Tensor]) -> Iterator[None]:
    """Within this, `hook(module, inputs, output)` gives the embeddings in place of those looked up."""
    # encoder and decoder may share one module, which then must not be hooked twice
    handles = [module.register_forward_hook(hook) for module in dict.fromkeys(lookups(model))]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
