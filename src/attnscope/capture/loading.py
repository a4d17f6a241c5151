"""`load`: a model by hub name, local folder, or as an object, ready to be recorded."""

import inspect
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from ..errors import BadInput
from .model import InstrumentedModel
from .reader import reader_of

SHIPPED = Path(__file__).parents[1] / "shipped"
"""Models that come with the package, as ordinary folders; `load("demo")` is one of them."""
LAB_MODEL = "lab_model.json"
"""What a folder of a model of the lab has in place of a config.json."""


def load(
    model: str | Path | PreTrainedModel,
    *,
    tokenizer: PreTrainedTokenizerBase | str | Path | None = None,
    task: str | None = None,
    readout: str | None = None,
    labels: Sequence[str] | None = None,
    dtype: torch.dtype | str | None = None,
    device: str | torch.device | None = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> InstrumentedModel:
    """Make a model ready to be recorded.

    `model` is a hub name, a local folder, a loaded Hugging Face model (give its `tokenizer` too), or `"demo"`. Task,
    read-out and labels are found from the architecture; `task`, `readout` ("first", "last", "mean" or "mask") and
    `labels` override them. A model passed in keeps its dtype, device and attention implementation; one loaded here is
    float32 on a CPU unless `dtype` says otherwise.

    >>> load("demo").record("the key to the cabinets").prediction[0][0]
    'singular'

    """
    model = getattr(model, "_orig_mod", model)  # what torch.compile wraps
    if isinstance(model, PreTrainedModel):
        if dtype is not None or device is not None:
            raise BadInput(
                "A model passed in keeps its dtype and device: change them before, or give its name instead."
            )
        loaded, name = model, str(model.config.name_or_path)
    elif isinstance(model, (str, Path)):
        shipped = SHIPPED / str(model)
        name = str(shipped if str(model) and (shipped / "config.json").is_file() else model)
        loaded = _loaded(name, dtype, device, revision, trust_remote_code)
    else:
        raise BadInput(f"load takes a name, a folder or a Hugging Face model, not {type(model).__name__}.")
    if isinstance(tokenizer, (str, Path)) or (tokenizer is None and reads_text(loaded)):
        tokenizer = _tokenizer(name if tokenizer is None else str(tokenizer), revision, trust_remote_code)
    return InstrumentedModel(reader_of(loaded, tokenizer, task, readout, labels))


def reads_text(model: PreTrainedModel) -> bool:
    """Whether a model is given token ids, and not only pictures or sounds."""
    return "input_ids" in inspect.signature(model.forward).parameters


def _other_folder(folder: Path) -> str:
    """Why a folder without a config.json cannot be loaded."""
    if (folder / LAB_MODEL).is_file():
        return f"The folder {folder} holds a model of the lab: load it with its class in attnscope.lab.models."
    return f"The folder {folder} holds no model: it has no config.json."


def _loaded(
    name: str, dtype: torch.dtype | str | None, device: str | torch.device | None, revision: str | None, trust: bool
) -> PreTrainedModel:
    if not name:
        raise BadInput('A model needs a name: a hub name, a local folder, or "demo".')
    if name.endswith(("/", "\\")) and not Path(name).is_dir():
        raise BadInput(f"There is no folder {name}.")
    if Path(name).is_dir() and not (Path(name) / "config.json").is_file():
        raise BadInput(_other_folder(Path(name)))
    options: dict[str, Any] = {"revision": revision, "trust_remote_code": trust}
    try:
        on_cpu = device is None or torch.device(device).type == "cpu"
        config = AutoConfig.from_pretrained(name, **options)
        architecture = (config.architectures or ["AutoModel"])[0]
        # a class of transformers is taken as it is named, with its head; code from elsewhere goes through AutoModel
        kind = getattr(transformers, architecture, AutoModel)
        options |= {"config": config, "dtype": dtype or (torch.float32 if on_cpu else "auto")}
        model, found = kind.from_pretrained(name, output_loading_info=True, **options)
        if _lacks_head(model, found["missing_keys"]):
            model = AutoModel.from_pretrained(name, **options)
        placed: PreTrainedModel = model.eval() if device is None else model.eval().to(device)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".:") if str(error).strip() else type(error).__name__
        raise BadInput(f'The model "{name}" cannot be loaded: {reason}.') from None
    return placed


def _lacks_head(model: Any, missing: Iterable[str]) -> bool:
    """Whether weights of the head are not in the file: it would answer at random, where the body below is sound."""
    body = f"{model.base_model_prefix}."
    return any(not key.startswith(body) for key in missing) and hasattr(model, model.base_model_prefix)


def _tokenizer(name: str, revision: str | None, trust: bool) -> PreTrainedTokenizerBase:
    try:
        return AutoTokenizer.from_pretrained(name, revision=revision, trust_remote_code=trust)
    except (OSError, ValueError, KeyError, TypeError):
        where = f'at "{name}"' if name else "beside this model"
        raise BadInput(f"There is no tokenizer {where}: pass one as tokenizer=.") from None
