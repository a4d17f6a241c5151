"""WordModel: what all small models share, whatever they compute: words in, records out, and a folder to live in.

A folder holds the weights, the settings and the vocabulary; nothing in it is code.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from ...capture import InstrumentedModel, Tokenized, instrument
from ...capture.loading import LAB_MODEL
from ...errors import BadInput
from ...files import write_tensors, written_atomically
from ..vocabulary import Vocabulary

WEIGHTS, SETTINGS, VOCABULARY = "model.safetensors", LAB_MODEL, "vocabulary.json"
Model = TypeVar("Model", bound="WordModel")
Ids = Int[Tensor, "batch token"]
Real = Bool[Tensor, "batch token"]
"""Where tokens are, and no padding."""
Shares = Float[Tensor, "batch token"]
Vectors = Float[Tensor, "batch token width"]


class WordModel(nn.Module):
    """A model that reads the words of a vocabulary, made from that and from its settings by their names."""

    Settings: ClassVar[type[Any]]
    """The data class of its settings."""
    before: ClassVar[str | None] = None
    """The special token, by its name, that is put before the words where the vocabulary has it."""
    behind: ClassVar[str | None] = None

    def __init__(self, vocabulary: Vocabulary, settings: dict[str, Any]) -> None:
        super().__init__()
        names = [field.name for field in fields(self.Settings)]
        if unknown := [name for name in settings if name not in names]:
            raise BadInput(f"The model has no setting {unknown[0]!r}: its settings are {', '.join(names)}.")
        self.vocabulary = vocabulary
        self.settings = self.Settings(**settings)

    def spell(self, words: Sequence[str]) -> list[str]:
        """The words as the vocabulary has them: in lower case."""
        return [word.lower() for word in words]

    def tokenize(self, text: str | list[str]) -> Tokenized:
        """The tokens of a text with spaces between its words, or of a list of words, with the frame around them.

        A word that the model does not know is shown as it is; the model reads [UNK].
        """
        words = text.split() if isinstance(text, str) else list(text)
        if not words:
            raise BadInput("The text is empty; give at least one word.")
        before, behind = self._frame()
        return Tokenized(
            tokens=[*before, *words, *behind],
            inputs=self._encode(words),
            special=[True] * len(before) + [False] * len(words) + [True] * len(behind),
            word_ids=[*[None] * len(before), *range(len(words)), *[None] * len(behind)],
        )

    def batch(self, texts: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        """What `forward` takes for several texts, each given as its words."""
        ids, real = self.vocabulary.pad([self._encode(words) for words in texts])
        return {"input_ids": ids, "attention_mask": real}

    def _frame(self) -> tuple[list[str], list[str]]:
        """What stands before and behind the words."""
        special = self.vocabulary.special
        before, behind = ([special[name]] if name in special else [] for name in (self.before, self.behind))
        return before, behind

    def _encode(self, words: Sequence[str]) -> list[int]:
        before, behind = self._frame()
        return self.vocabulary.encode([*before, *self.spell(words), *behind])

    def instrumented(self) -> InstrumentedModel:
        """The model as `attnscope` records it and runs it again."""
        return instrument(
            self,
            tokenize=self.tokenize,
            blanks={name: self.vocabulary.number(name) for name in ("unk", "pad")},
            padding=self.vocabulary.number("pad"),
            **self._reading(),
        )

    def _reading(self) -> dict[str, Any]:
        """Where the model attends and where its answer is read, in the terms of `attnscope.instrument`."""
        raise NotImplementedError

    def save(self, folder: str | Path) -> Path:
        """Write vocabulary, weights and last the settings into a folder."""
        folder = Path(folder)
        self.vocabulary.save(folder / VOCABULARY)
        write_tensors(folder / WEIGHTS, self.state_dict())
        with written_atomically(folder / SETTINGS) as temporary:
            content = {"model": type(self).__name__, "settings": asdict(self.settings)}
            temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        return folder

    @classmethod
    def load(cls: type[Model], folder: str | Path) -> Model:
        """The model that `save` has written, ready to answer."""
        folder = Path(folder)
        name, settings = name_and_settings(folder)
        if name != cls.__name__:
            raise BadInput(f"{folder} holds a model of the class {name}, not {cls.__name__}.")
        vocabulary = Vocabulary.load(folder / VOCABULARY)
        try:
            model = cls(vocabulary, **settings)
        except (TypeError, BadInput) as error:
            raise BadInput(f"The settings in {folder} are not those of {cls.__name__}: {error}") from None
        try:
            model.load_state_dict(load_file(folder / WEIGHTS))
        except (FileNotFoundError, SafetensorError, RuntimeError) as error:
            reason = str(error).strip().splitlines()[0].rstrip(".:")
            raise BadInput(f"The weights in {folder} cannot be read: {reason}.") from None
        return model.eval()


def name_and_settings(folder: Path) -> tuple[str, dict[str, Any]]:
    """The class of the model in a folder, by its name, and its settings."""
    path = folder / SETTINGS
    if not path.is_file():
        raise BadInput(f"{folder} holds no model of the lab: it has no {SETTINGS}.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return str(content["model"]), dict(content["settings"])
    except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError, ValueError, RecursionError):
        raise BadInput(f"{path} is damaged: it does not name a model and its settings.") from None


def real_tokens(input_ids: Ids, attention_mask: Tensor | None) -> Real:
    """Where tokens are: everywhere, unless a mask is 1 where they are."""
    return torch.ones_like(input_ids).bool() if attention_mask is None else attention_mask.bool()
