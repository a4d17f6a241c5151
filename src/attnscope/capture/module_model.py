"""ModuleModel: any torch module whose attention can be read, and which can be run again."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..errors import BadInput
from ..record import AttentionRecord, Target, Text
from ..record.model import EMBEDDINGS, Inputs
from .batching import BATCHES_AHEAD
from .evaluating import evaluated
from .module_attention import unfused
from .module_capture import ModuleReader, capture_module, hooked, sum_of
from .module_inputs import IDS, Item, item_of
from .outcomes import target_value
from .request import Request, checked_request

EMBEDS = EMBEDDINGS[IDS]


class ModuleModel:
    """A torch module that gives attention records; made by `attnscope.instrument`.

    The module is never changed for good: it is in evaluation mode for the time of a call and then as it was.
    """

    def __init__(
        self,
        reader: ModuleReader,
        tokenize: Callable[[Any], Any],
        blanks: Mapping[str, int],
        longest: int | None,
        name: str,
    ) -> None:
        self.reader, self.tokenize, self.longest, self.name = reader, tokenize, longest, name
        self.blank_ids = dict(blanks)

    @property
    def model(self) -> nn.Module:
        """The module itself."""
        return self.reader.module

    @property
    def task(self) -> str:
        """What the module is for, as far as that is known: a classifier, if it has labels."""
        return "classifier" if self.reader.labels is not None else "module"

    def tokens(self, text: Text, truncate: bool = False) -> tuple[str, ...]:
        """The tokens of a text, as the module reads it."""
        return self._item(text, truncate).tokens

    def record(
        self,
        text: Text,
        *,
        gradients: bool = False,
        target: int | str | None = None,
        quantity: str = "logit",
        heads: str = "all",
        queries_and_keys: bool = False,
        values: bool = False,
        truncate: bool = False,
    ) -> AttentionRecord:
        """What the module does on a text, or on whatever else its `tokenize` takes. Options as for other models."""
        request = _checked(
            gradients=gradients,
            target=target,
            quantity=quantity,
            heads=heads,
            queries_and_keys=queries_and_keys,
            values=values,
        )
        return capture_module(self.reader, [self._item(text, truncate)], request)[0]

    def records(
        self, texts: Iterable[Text], batch_size: int = 16, *, truncate: bool = False, **options: Any
    ) -> Iterator[AttentionRecord]:
        """What the module does on each text, in order, texts of like length together. Options as in `record`."""
        if batch_size < 1:
            raise BadInput(f"batch_size must be at least 1, not {batch_size}.")
        if isinstance(texts, str):
            raise BadInput("records takes several texts; for one, use record(text).")
        return self._streamed(texts, batch_size, truncate, _checked(**options))

    def _streamed(
        self, texts: Iterable[Text], batch_size: int, truncate: bool, request: Request
    ) -> Iterator[AttentionRecord]:
        coming = (self._numbered(number, text, truncate) for number, text in enumerate(texts))
        while window := list(islice(coming, BATCHES_AHEAD * batch_size)):
            records: dict[int, AttentionRecord] = {}
            for group in self.reader.feeder.groups([item.inputs for item in window], batch_size):
                captured = capture_module(self.reader, [window[position] for position in group], request)
                records.update(zip(group, captured, strict=True))
            for position in range(len(window)):
                yield records.pop(position)

    def probabilities(self, inputs: Sequence[Inputs], batch_size: int = 16) -> Float[Tensor, "item outcome"]:
        """The probability of every outcome for inputs that look like `record.inputs`."""
        if not inputs:
            raise BadInput("There are no inputs to run.")
        rows: dict[int, Tensor] = {}
        for group in self.reader.feeder.groups([_ids(item) for item in inputs], batch_size):
            with torch.no_grad():
                logits = self._logits([inputs[position] for position in group])
            rows.update(zip(group, map(self.reader.probabilities, logits.cpu()), strict=True))
        return torch.stack([rows[position] for position in range(len(inputs))])

    def target(self, inputs: Inputs, outcome: int | str | None = None, quantity: str = "logit") -> Target:
        """What is meant by an outcome of these inputs: a class by number or name, None the prediction."""
        request = _checked(gradients=True, target=outcome, quantity=quantity)
        with torch.no_grad():
            logits = self._logits([inputs])[0]
        return self.reader.target(outcome, request.quantity, logits.cpu())

    def embedded(self, inputs: Inputs) -> dict[str, Tensor]:
        """The same inputs with the embeddings that the module looks up for their ids."""
        found: list[Tensor] = []

        def keep(output: Tensor) -> Tensor:
            found.append(output[0].detach().float().cpu())
            return output

        batch = self.reader.feeder.batched([_ids(inputs)])
        with torch.no_grad(), unfused(), evaluated(self.model, self.model), hooked(self.reader, batch, keep):
            self.reader.feeder.run(batch)
        return {**inputs, EMBEDS: found[0]}

    def target_gradients(
        self, inputs: Sequence[Inputs], target: Target
    ) -> tuple[Float[Tensor, " item"], Float[Tensor, "item position width"]]:
        """The target's value for each of these inputs, all of one length, and its gradient at the embeddings given."""
        if any(EMBEDS not in item for item in inputs):
            raise BadInput(f"A gradient is taken at embeddings: give {EMBEDS} with the inputs.")
        starts = [item[EMBEDS].detach().requires_grad_() for item in inputs]
        started = [{**item, EMBEDS: start} for item, start in zip(inputs, starts, strict=True)]
        with torch.enable_grad():
            logits = self._logits(started)
            gradients = torch.autograd.grad(sum_of(self.reader, [target] * len(inputs), logits), starts)
        values = [target_value(target, row, self.reader.probabilities(row)) for row in logits.detach()]
        return torch.stack(values).float().cpu(), torch.stack(gradients).float()

    def _logits(self, items: Sequence[Inputs]) -> Float[Tensor, "item outcome"]:
        """What the module answers to a batch, with the embeddings that the items bring in place of its own."""
        batch = self.reader.feeder.batched([_ids(item) for item in items])

        def bring(output: Tensor) -> Tensor:
            rows = output.clone()
            for row, item in enumerate(items):
                if EMBEDS in item:
                    rows[row, : len(item[EMBEDS])] = item[EMBEDS].to(rows)
            return rows

        with unfused(), evaluated(self.model, self.model):
            if any(EMBEDS in item for item in items):
                with hooked(self.reader, batch, bring):
                    output = self.reader.feeder.run(batch)
            else:
                output = self.reader.feeder.run(batch)
        logits = self.reader.logits(output)
        if logits is None:
            raise BadInput(f"{type(self.model).__name__} gives no prediction, so it has no probabilities.")
        return logits

    def _item(self, text: Text, truncate: bool) -> Item:
        if truncate:
            raise BadInput("The texts of a torch module are cut by its own tokenize, not by truncate=True.")
        return item_of(self.tokenize, text, self.longest)

    def _numbered(self, number: int, text: Text, truncate: bool) -> Item:
        try:
            return self._item(text, truncate)
        except BadInput as error:
            raise BadInput(f"Text {number}: {error}") from None

    def __repr__(self) -> str:
        told = "a function" if self.reader.sources.asked is not None else self.reader.sources.names
        return f"ModuleModel({self.name}: attention from {told})"


def _checked(**options: Any) -> Request:
    """What the user asks of a torch module, which has one stack and shows nothing but its weights."""
    request = checked_request(("encoder",), **options)
    if request.queries_and_keys or request.values:
        raise BadInput("Queries, keys and values of a torch module cannot be read; its attention weights can.")
    return request


def _ids(item: Inputs) -> dict[str, Tensor]:
    """What the module is given as ids."""
    return {name: tensor for name, tensor in item.items() if name != EMBEDS}
