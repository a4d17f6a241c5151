"""The place where a model looks up the embeddings of its tokens, and a hook there for a while."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel

from ..errors import BadInput


def lookups(model: PreTrainedModel) -> list[nn.Module]:
    """The modules that look up the embeddings of each kind of ids, the encoder's before the decoder's."""
    holders = [model.get_encoder(), model.get_decoder()] if model.config.is_encoder_decoder else [model]
    try:
        return [holder.get_input_embeddings() for holder in holders]
    except NotImplementedError:
        raise BadInput(
            f"{type(model).__name__} looks its tokens up in no table, so there are no embeddings to begin from."
        ) from None


@contextmanager
def hooked_lookups(model: PreTrainedModel, hook: Callable[[nn.Module, Any, Tensor], Tensor]) -> Iterator[None]:
    """Within this, `hook(module, inputs, output)` gives the embeddings in place of those looked up, in this thread."""
    thread = threading.get_ident()

    def in_this_thread(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        return hook(module, inputs, output) if threading.get_ident() == thread else output

    # encoder and decoder may share one module, which then must not be hooked twice
    handles = [module.register_forward_hook(in_this_thread) for module in dict.fromkeys(lookups(model))]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
