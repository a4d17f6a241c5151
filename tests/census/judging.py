"""One architecture put to the test: recorded by attnscope, and compared with the same model loaded eager."""

import signal
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from building import END, VOCABULARY, NotBuilt, architectures, tiny_model, tiny_tokenizer
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

import attnscope
from attnscope import AttentionRecord, BadInput
from attnscope.capture.senses import part_that_reads
from attnscope.capture.stacks import has_two_towers

TEXT = "the key to the cabinets is on the table . a boy that runs see red dogs !"
SHORT = "the red dogs see"
TOLERANCE = 1e-5
BATCH_TOLERANCE = 1e-4
SECONDS = 90
NAMES = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}


@dataclass(frozen=True)
class Verdict:
    """What became of one architecture: exact, refused, without attention, not built; or wrong, or a raw error."""

    name: str
    use: str
    verdict: str
    note: str = ""

    def as_row(self) -> dict[str, str]:
        return asdict(self)


def judge(name: str) -> Verdict:
    """Build a tiny model, record it in each of its stacks, and compare with eager."""
    model_type, use = architectures()[name]
    signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(SECONDS)
    try:
        verdict, note = _judged(name, model_type)
    except NotBuilt as reason:
        verdict, note = "not built", str(reason)
    except BadInput as sentence:
        verdict, note = "refused", " ".join(str(sentence).split())
    except TimeoutError:
        verdict, note = "not built", f"takes more than {SECONDS} s here"
    except Exception as error:  # noqa: BLE001 -- raw errors are what is counted
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        verdict, note = "raw error", f"{type(error).__name__} at {where}: {' '.join(str(error).split())[:200]}"
    finally:
        signal.alarm(0)
    return Verdict(name, use, verdict, note)


def _give_up(*_: Any) -> None:
    raise TimeoutError


def _judged(name: str, model_type: str) -> tuple[str, str]:
    model = tiny_model(name, model_type)
    twin = tiny_model(name, model_type, "eager")
    twin.load_state_dict(model.state_dict())
    loaded = attnscope.load(model, tokenizer=tiny_tokenizer())
    notes = []
    for given in inputs_of(model):
        part, eager = part_that_reads(model, given), part_that_reads(twin, given)
        _check_that_it_runs(part, given)
        for stack in loaded.stacks if part is model else ("encoder",):
            torch.manual_seed(1)  # ViTMAE hides patches at random
            record, batch = _record(loaded, given, stack)
            torch.manual_seed(1)
            wrong, note = _compared(record, _returned(eager, batch, stack))
            if wrong:
                return "wrong", f"{stack}: {note}"
            notes.append(note)
        if part is model and set(given) == {"input_ids"} and (apart := _padding_matters(loaded)) is not None:
            return "wrong", apart
    return "exact", "; ".join(dict.fromkeys(note for note in notes if note))


def _padding_matters(loaded: attnscope.InstrumentedModel) -> str | None:
    """By how much a short text differs in a batch with a long one, if it does."""
    stack = "encoder" if "encoder" in loaded.stacks else None
    alone = loaded.record(SHORT, stack=stack)
    _, batched = loaded.records([TEXT, SHORT], batch_size=2, stack=stack)
    difference = float((alone.weights - batched.weights).abs().max())
    return f"differs by {difference:.2g} beside a longer text in a batch" if difference > BATCH_TOLERANCE else None


def _record(
    loaded: attnscope.InstrumentedModel, given: dict[str, Tensor], stack: str
) -> tuple[AttentionRecord, dict[str, Any]]:
    """The record of a stack, and the batch it is of."""
    both = loaded.reader.has_both_sides
    if set(given) != {"input_ids"} or part_that_reads(loaded.model, given) is not loaded.model:
        batch = {**given, "decoder_input_ids": torch.tensor([[END, 6, 7]])} if both else given
        return loaded.record(inputs=batch, stack=stack), batch
    writes = both and loaded.task != "classifier" and stack != "encoder"
    record = loaded.record(TEXT, stack=stack, text_target="the red dogs see" if writes else None)
    return record, loaded.reader.batched([record.inputs])


def inputs_of(model: PreTrainedModel) -> list[dict[str, Tensor]]:
    """What a processor would make: ids of a text, a picture or a sound; both, one by one, for two towers."""
    if has_two_towers(model):
        return [_made_up(model.config, name) for name in ("input_ids", "pixel_values")]
    return [_made_up(model.config, model.main_input_name)]


def _made_up(config: PreTrainedConfig, name: str) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    if name == "pixel_values":
        vision = getattr(config, "vision_config", config)
        side = getattr(vision, "image_size", 32) or 32
        height, width = side if isinstance(side, (list, tuple)) else (side, side)
        channels = getattr(vision, "num_channels", 3) or 3
        return {"pixel_values": torch.rand(1, channels, height, width, generator=generator)}
    if name == "input_values":
        return {"input_values": torch.randn(1, 4000, generator=generator)}
    if name == "input_features":
        bins = getattr(config, "num_mel_bins", None) or getattr(config, "feature_projection_input_dim", 16)
        frames = 2 * getattr(config, "max_source_positions", 64)
        return {"input_features": torch.randn(1, bins, frames, generator=generator)}
    if name == "input_ids":
        return {"input_ids": torch.randint(6, VOCABULARY // 2, (1, 8), generator=generator)}
    raise NotBuilt(f"it reads {name}, which no rule here makes")


def _check_that_it_runs(model: PreTrainedModel, given: Mapping[str, Tensor]) -> None:
    """A model that does not run by itself says nothing about attnscope."""
    batch = dict(given)
    if model.config.is_encoder_decoder:
        batch["decoder_input_ids"] = torch.tensor([[END, 6, 7]])
    if "input_ids" in batch and "attention_mask" in signature(model.forward).parameters:
        batch["attention_mask"] = torch.ones_like(batch["input_ids"])
    try:
        with torch.no_grad():
            model(**batch)
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        raise NotBuilt(f"does not run by itself when this small: {type(error).__name__}: {reason}") from error


def _returned(model: PreTrainedModel, batch: Mapping[str, Any], stack: str) -> list[Tensor] | None:
    """The attentions that an eager model returns itself, or None where it returns none."""
    with torch.no_grad():
        with torch.random.fork_rng():
            model(**batch)  # BigBird takes other modules for short texts, from its first run on
        try:
            output = model(**batch, output_attentions=True)
        except (TypeError, ValueError):
            return None
    name = NAMES[stack] if model.config.is_encoder_decoder else "attentions"
    found = getattr(output, name, None)
    whole = (
        found is not None and len(found) > 0 and all(isinstance(layer, Tensor) and layer.ndim == 4 for layer in found)
    )
    return [layer[0] for layer in found] if whole else None


def _compared(record: AttentionRecord, expected: list[Tensor] | None) -> tuple[bool, str]:
    """Whether the record is wrong, and a note."""
    weights = record.weights[..., record.added_tokens :, record.added_tokens :]
    beside = f"with {', '.join(record.tokens[: record.added_tokens])}" if record.added_tokens else ""
    verified = record.card["verified"] or {}
    if expected is None:
        if verified.get("weights_times_values_differ_by") is None:
            return True, "neither returned attention nor values to compare with"
        return False, ", ".join(filter(None, [beside, "returns no attention itself: compared with weights x values"]))
    if len(expected) > len(weights) and max(record.layers) < len(expected):
        expected = [expected[layer] for layer in record.layers]  # layers of another kind return something too
    if len(expected) != len(weights):
        return True, f"{len(weights)} layers recorded, {len(expected)} returned"
    keys = weights.shape[-1]
    kept = torch.stack([layer[:, : weights.shape[-2], :keys] for layer in expected]).float()
    if kept.shape != weights.shape:
        return True, f"recorded {tuple(weights.shape)}, returned {tuple(kept.shape)}"
    sums = kept.sum(-1, keepdim=True)
    if record.added_tokens:  # some families return weights before the sink has taken its part
        kept = kept / sums * weights.sum(-1, keepdim=True)
    difference = float((kept - weights).abs().max())
    if difference > TOLERANCE:
        return True, f"differs from eager by {difference:.2g}"
    return False, beside
