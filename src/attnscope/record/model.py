"""The Model protocol: what a method may ask of a model it must run again, without importing `capture`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from .attention import AttentionRecord
from .target import Target

Text = str | list[str] | tuple[str | list[str], ...]
"""A text, words already split (a list), or a pair of either (a tuple of two)."""

EMBEDDINGS = {"input_ids": "inputs_embeds", "decoder_input_ids": "decoder_inputs_embeds"}
"""What Hugging Face calls the embeddings of each kind of token ids, in the order in which a model looks them up."""

Inputs = Mapping[str, Int[Tensor, " _"] | Float[Tensor, "_ _"]]
"""What a model is given for one text: like `record.inputs`, and embeddings where the model shall not look its own up.

Embeddings stand beside the ids they replace, which go on to say where positions, masks and the answer are.
"""


@runtime_checkable
class Model(Protocol):
    """A model whose attention can be read, and which can be run again."""

    @property
    def name(self) -> str:
        """What the model is called."""

    def tokens(self, text: Text, truncate: bool = False) -> tuple[str, ...]:
        """The tokens of a text, as the model reads it."""

    @property
    def blank_ids(self) -> Mapping[str, int]:
        """The ids of the tokens that can stand for no token, by name: unk, mask and pad, as far as there are any."""

    @property
    def record(self) -> Callable[..., AttentionRecord]:
        """What the model does on one text: `record(text, **options)`."""

    @property
    def records(self) -> Callable[..., Iterator[AttentionRecord]]:
        """What the model does on each text, in the order given: `records(texts, batch_size=16, **options)`."""

    def probabilities(self, inputs: Sequence[Inputs], batch_size: int = 16) -> Float[Tensor, "item outcome"]:
        """The probability of every outcome for each of these inputs."""

    def target(self, inputs: Inputs, outcome: int | str | None = None, quantity: str = "logit") -> Target:
        """What a user means by an outcome of these inputs: a class or token by number or name, None the prediction."""

    def embedded(self, inputs: Inputs) -> Inputs:
        """The same inputs with the embeddings that the model looks up for their ids."""

    def target_gradients(
        self, inputs: Sequence[Inputs], target: Target
    ) -> tuple[Float[Tensor, " item"], Float[Tensor, "item position width"]]:
        """The target's value for each of these inputs, all of one length, and its gradient at the embeddings given."""


@runtime_checkable
class AnsweringModel(Model, Protocol):
    """A model that says how likely a given continuation is, token by token: what `Answer` asks for."""

    def answer_log_probabilities(
        self, inputs: Sequence[Inputs], count: int, batch_size: int = 16
    ) -> Float[Tensor, "item answer_token"]:
        """The log-probability of each of the last `count` tokens of each of these inputs, given all before it."""

    def answer_gradients(
        self, inputs: Inputs, count: int, wanted: Sequence[Sequence[int]]
    ) -> Iterator[tuple[Float[Tensor, ""], Float[Tensor, "position width"]]]:
        """For each set of those tokens the sum of their log-probabilities, and its gradient at the embeddings given."""
