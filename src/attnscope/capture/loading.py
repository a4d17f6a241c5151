"""`load`: a model by hub name, local folder, or as an object, ready to be recorded."""

import inspect
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url
from huggingface_hub.errors import HfHubHTTPError
from transformers import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils.hub import cached_file, is_offline_mode  # type: ignore[attr-defined] # which it has

from ..errors import BadInput
from .checkpoints import adapter_in, check_vocabulary, complete_model, tokenizer_at, with_adapter, without_wrapper
from .families import (
    POOLINGS,
    Pooling,
    Task,
    checked_task,
    is_decoder_only,
    outcome_labels,
    pooling_of_sentence_encoder,
    task_of,
)
from .hugging_face import HuggingFaceReader
from .model import InstrumentedModel

SHIPPED = Path(__file__).parents[1] / "shipped"
"""Models that come with the package, as ordinary folders; `load("demo")` is one of them."""
LAB_MODEL = "lab_model.json"
"""What a folder of a model of the lab has in place of a config.json."""
LAB = "attnscope.lab.models"
"""The room of these models. It is above this one, so it is imported by its name when such a folder is loaded."""
SHARD_INDEX = "model.safetensors.index.json"
LONGEST_NAME = 4096
LONGEST_PART = 255
"""No folder has a longer path, nor a part of it more bytes; no name on the hub comes near either."""
PLANS = ("auto", "balanced", "balanced_low_0", "sequential")
"""Values of `device_map` by which the parts of a model go where there is room."""
PLACE_OPTIONS = ("token", "subfolder", "cache_dir", "local_files_only", "force_download", "proxies")
"""Options of transformers that say where files are: for the weights, the configuration and the tokenizer alike."""

log = logging.getLogger("attnscope")


def load(
    model: str | Path | torch.nn.Module,
    *,
    tokenizer: PreTrainedTokenizerBase | str | Path | None = None,
    task: str | None = None,
    readout: str | None = None,
    labels: Sequence[str] | None = None,
    dtype: torch.dtype | str | None = None,
    device: str | torch.device | None = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
    allow_missing: bool | Sequence[str] = False,
    **options: Any,
) -> InstrumentedModel:
    """Make a model ready to be recorded.

    `model` is a hub name, a local folder (also of a PEFT adapter, or of a model that `attnscope train` has made), a
    loaded Hugging Face model or `PeftModel` (give its `tokenizer` too), or `"demo"`. Task, read-out and labels are
    found from the architecture; `task`, `readout` ("first", "last", "mean" or "mask") and `labels` override them. A
    model passed in keeps its dtype, device and attention implementation; one loaded here is float32 on a CPU unless
    `dtype` says otherwise.

    A model whose file lacks some of its weights is refused, for they would be random numbers: `allow_missing=True`
    takes it all the same, `allow_missing=["classifier"]` only where the missing names begin so. Other `options` are
    those of transformers' `from_pretrained`: `device_map`, `quantization_config`, `token`, `subfolder` and so on.

    >>> load("demo").record("the key to the cabinets").prediction[0][0]
    'singular'

    """
    place = {"revision": revision, "trust_remote_code": trust_remote_code}
    place |= {name: options.pop(name) for name in PLACE_OPTIONS if name in options}
    model = without_wrapper(model)
    if isinstance(model, PreTrainedModel):
        if dtype is not None or device is not None:
            raise BadInput(
                "A model passed in keeps its dtype and device: change them before, or give its name instead."
            )
        if options:
            raise BadInput(f"A model passed in is loaded already: leave {', '.join(options)} out, or give its name.")
        loaded, beside = model, [str(model.config.name_or_path)]
    elif isinstance(model, (str, Path)):
        name = _checked_name(str(model))
        if (Path(name) / LAB_MODEL).is_file():
            asked = {"tokenizer": tokenizer, "task": task, "readout": readout, "labels": labels, "dtype": dtype}
            return _lab_model(name, {**asked, "device": device, "allow_missing": allow_missing, **place, **options})

        dtype = options.pop("torch_dtype", None) if dtype is None else dtype  # as transformers called it before
        if dtype is not None:
            options["dtype"] = dtype
        if device is not None and options.get("device_map") is not None:
            raise BadInput("device= puts the whole model in one place, device_map= each of its parts: give one.")
        loaded, beside = _loaded(name, device, place, _prefixes(allow_missing), options)
    else:
        raise BadInput(f"load takes a name, a folder or a Hugging Face model, not {type(model).__name__}.")
    tokenizer = _checked_tokenizer(tokenizer, loaded, beside, place)
    reader = _reader(loaded, tokenizer, task, readout, labels)
    if beside[0]:
        loaded.config.name_or_path = beside[0]  # a base with an adapter is called by the adapter
    return InstrumentedModel(reader)


def _lab_model(name: str, options: Mapping[str, Any]) -> InstrumentedModel:
    """A model that was trained here; its file names one of the lab's own classes, and can name nothing else."""
    if given := [option for option, value in options.items() if value is not None and value is not False]:
        raise BadInput(f"{name} holds a model of the lab, which is loaded as it was trained: leave {given[0]} out.")
    loaded: InstrumentedModel = import_module(LAB).load_instrumented(Path(name))
    return loaded


def _reader(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    task: str | None,
    readout: str | None,
    labels: Sequence[str] | None,
) -> HuggingFaceReader:
    """Find out what a model is for; what the user says overrides what is found."""
    found = task_of(model) if task is None else checked_task(task)
    if readout is not None and readout not in POOLINGS:
        raise BadInput(f"A read-out is {', '.join(POOLINGS)}, not {readout!r}.")
    return HuggingFaceReader(
        model=model,
        given_tokenizer=tokenizer,
        task=found,
        pooling=readout or _own_pooling(model, found),
        labels=tuple(outcome_labels(model, labels)) if found == "classifier" else None,
    )


def _own_pooling(model: PreTrainedModel, task: Task) -> Pooling:
    if task == "encoder" and (pooling := pooling_of_sentence_encoder(model.config.name_or_path or "")):
        return pooling
    if model.config.is_encoder_decoder or is_decoder_only(model):
        return "last"
    if task == "classifier":
        return "mean" if getattr(model.config, "classifier_pooling", "cls") == "mean" else "first"
    return "mask" if task == "masked_lm" else "mean"


def _checked_tokenizer(
    tokenizer: PreTrainedTokenizerBase | str | Path | None,
    model: PreTrainedModel,
    beside: Sequence[str],
    place: Mapping[str, Any],
) -> PreTrainedTokenizerBase | None:
    """The tokenizer that was given or is found beside the model, and fits it; none for what reads no text."""
    if tokenizer is None and not reads_text(model):
        return None
    if tokenizer is None or isinstance(tokenizer, (str, Path)):
        tokenizer = tokenizer_at(beside if tokenizer is None else [str(tokenizer)], place)
    elif not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise BadInput(f"tokenizer= is a tokenizer of transformers, or its name, not {type(tokenizer).__name__}.")
    check_vocabulary(tokenizer, model)
    return tokenizer


def _checked_name(name: str) -> str:
    """The name or folder of a model; that of a model shipped with the package is its folder."""
    if not name:
        raise BadInput('A model needs a name: a hub name, a local folder, or "demo".')
    if len(name) > LONGEST_NAME or any(len(part.encode(errors="replace")) > LONGEST_PART for part in Path(name).parts):
        raise BadInput(f"The name of a model cannot be {len(name):,} characters long: give a hub name or a folder.")
    if not name.isprintable():  # control characters, or bytes that are not UTF-8
        raise BadInput(f"The name {name!a} has characters that cannot be printed: rename the folder.")
    shipped = SHIPPED / name
    if (shipped / "config.json").is_file():
        return str(shipped)
    folder = Path(name)
    if not folder.is_dir():
        if name.endswith(("/", "\\")):
            raise BadInput(f"There is no folder {name}.")
        if folder.is_file():
            raise BadInput(f"{name} is a file: give the folder of the model.")
    return name


def _prefixes(allow_missing: bool | Sequence[str]) -> tuple[str, ...]:
    """The beginnings of the names of weights that may be missing: every name begins with nothing."""
    if isinstance(allow_missing, bool):
        return ("",) if allow_missing else ()
    listed = isinstance(allow_missing, Sequence) and not isinstance(allow_missing, str)
    if not listed or not all(isinstance(prefix, str) for prefix in allow_missing):
        raise BadInput('allow_missing is True or a list of how names of weights begin, such as ["classifier"].')
    return tuple(allow_missing)


def _loaded(
    name: str,
    device: str | torch.device | None,
    place: Mapping[str, Any],
    allowed: tuple[str, ...],
    options: dict[str, Any],
) -> tuple[PreTrainedModel, list[str]]:
    """The model, and the names at which its tokenizer may be found."""
    on_cpu = _checked_device(device) and _maps_to_cpu(options.get("device_map"))
    adapter = adapter_in(name)
    base = name if adapter is None else _checked_name(adapter.base)
    with _in_one_sentence(base):
        config = _configuration(base, place, {} if adapter is None else adapter.config_options)
        kind = _class_of(base, config) if adapter is None or adapter.kind is None else adapter.kind
        own = {"dtype": torch.float32 if on_cpu else "auto", "use_safetensors": True}  # a pickle can run code
        options = {**own, **options, **place, "config": config}
        fresh = allowed if adapter is None else (*allowed, *adapter.own_modules)
        model = complete_model(base, kind, options, fresh)
    if adapter is not None:
        with _in_one_sentence(name):
            model = with_adapter(model, adapter)
    with _in_one_sentence(name):
        placed: PreTrainedModel = model.eval() if device is None else model.eval().to(device)
    return placed, list(dict.fromkeys([name, base]))


def _checked_device(device: str | torch.device | None) -> bool:
    """Whether the model will run on the CPU; a device that is not there is refused before anything is read."""
    if device is None:
        return True
    try:
        torch.empty(0, device=device)
        return torch.device(device).type == "cpu"
    except (RuntimeError, AssertionError, TypeError, ValueError):
        raise BadInput(f"There is no device {str(device)!r} here: leave device= out to stay on the CPU.") from None


def _maps_to_cpu(device_map: Any) -> bool:
    """Whether a `device_map` of transformers leaves all of a model on the CPU; `"auto"` does where nothing else is."""
    if isinstance(device_map, str) and device_map in PLANS:
        return not (torch.cuda.is_available() or torch.backends.mps.is_available())
    places = device_map.values() if isinstance(device_map, Mapping) else [device_map]
    return all(place is None or str(place).startswith(("cpu", "disk")) for place in places)


def _configuration(name: str, place: Mapping[str, Any], changes: Mapping[str, Any]) -> PreTrainedConfig:
    folder = Path(name)
    if folder.is_dir():
        file = folder / (place.get("subfolder") or "") / "config.json"
        if not file.is_file():
            raise BadInput(f"The folder {folder} holds no model: it has no config.json.")
        if not isinstance(_json(file), dict):
            raise BadInput(f"The config.json of {name} is no JSON object, so it describes no model.")
        _check_weight_files(file.parent)
    else:
        _tell_of_hub(name, place)
    config: PreTrainedConfig = AutoConfig.from_pretrained(name, **place, **changes)
    return config


def _tell_of_hub(name: str, place: Mapping[str, Any]) -> None:
    """Say that the hub is asked, which may take long: a name that was mistyped is then seen at once.

    Where the hub does not answer a short question, transformers would ask it again and again, for half a minute.
    """
    if is_offline_mode() or place.get("local_files_only"):
        return
    here = {option: place.get(option) for option in ("cache_dir", "revision")}
    quietly = {"_raise_exceptions_for_missing_entries": False, "_raise_exceptions_for_connection_errors": False}
    asks = False
    with suppress(OSError, ValueError):  # no name on the hub looks like this, which transformers says at once
        asks = cached_file(name, "config.json", local_files_only=True, **here, **quietly) is None
    if asks:
        log.warning("There is no folder %s here: asking the Hugging Face hub for that model.", ascii(name))
        if not place.get("proxies"):  # which this question would not go through
            _check_hub_answers(name, place)


def _check_hub_answers(name: str, place: Mapping[str, Any]) -> None:
    """Ask the hub once, and wait half as long as its own library does each time (HF_HUB_ETAG_TIMEOUT)."""
    address = hf_hub_url(name, "config.json", revision=place.get("revision"))
    try:
        get_hf_file_metadata(address, token=place.get("token"), timeout=constants.HF_HUB_ETAG_TIMEOUT / 2)
    except HfHubHTTPError:
        pass  # an answer, of which transformers says what it means
    except Exception as error:  # noqa: BLE001 # whatever the network, its proxies and certificates may raise
        raise BadInput(
            f'There is no folder "{name}" here, and the Hugging Face hub does not answer ({type(error).__name__}).'
        ) from None


def _json(file: Path) -> Any:
    """What a file of JSON says, or None where it is damaged."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return None


def _check_weight_files(folder: Path) -> None:
    """Refuse pickles, which can run code, and shards outside of the folder."""
    index = folder / SHARD_INDEX
    if index.is_file():
        found = _json(index)
        shards = found.get("weight_map") if isinstance(found, dict) else None
        names = list(shards.values()) if isinstance(shards, dict) else [None]
        if not all(isinstance(name, str) and Path(name).name == name for name in names):
            raise BadInput(f"{SHARD_INDEX} in {folder} does not list weights in files of that folder.")
    elif not any(folder.glob("*.safetensors")) and any(folder.glob("*.bin")):
        raise BadInput(
            f"The folder {folder} has its weights in a pickle (.bin), which can run code as it is read: load it with"
            " transformers where you trust it, and save it with save_pretrained, which writes safetensors."
        )


def reads_text(model: PreTrainedModel) -> bool:
    """Whether a model is given token ids, and not only pictures or sounds."""
    return "input_ids" in inspect.signature(model.forward).parameters


def _class_of(name: str, config: PreTrainedConfig) -> Any:
    """A class of transformers is taken as it is named, with its head; code from elsewhere goes through AutoModel."""
    named = config.architectures or []
    if not isinstance(named, list) or not all(isinstance(architecture, str) for architecture in named):
        raise BadInput(f"architectures in the config.json of {name} is no list of names of classes.")
    if not named:
        return AutoModel
    kind = getattr(transformers, named[0], None)
    if isinstance(kind, type) and issubclass(kind, PreTrainedModel):
        return kind
    if not hasattr(config, "auto_map"):
        log.warning("transformers has no class %s: %s is read without its head.", ascii(named[0]), name)
    return AutoModel


@contextmanager
def _in_one_sentence(name: str) -> Iterator[None]:
    """Whatever a stranger's folder makes transformers raise, as one sentence."""
    try:
        yield
    except BadInput:
        raise
    except Exception as error:  # noqa: BLE001 # a folder can be broken in more ways than transformers foresees
        raise BadInput(f'The model "{name}" cannot be loaded: {_reason(error)}.') from None


def _reason(error: Exception) -> str:
    lines = [line.strip().rstrip(".:") for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    if "ignore_mismatched_sizes" in lines[0]:
        return "weights in its file have other shapes than its config.json asks for"
    if isinstance(error, (OSError, ValueError, RuntimeError, ImportError)):
        return lines[0]
    what = lines[1] if len(lines) > 1 else f"{type(error).__name__}: {lines[0]}"
    return f"its files are not what transformers expects ({what})"
