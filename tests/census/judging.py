"""One architecture put to the test: recorded by attnscope, and compared with the same model loaded eager."""

import signal
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from building import NotBuilt, architectures, tiny_model, tiny_tokenizer
from inputs import readings, with_decoder_ids
from torch import Tensor
from transformers import PreTrainedModel

import attnscope
from attnscope import AttentionRecord, BadInput
from attnscope.capture.families import has_two_towers
from attnscope.capture.senses import part_that_reads

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
    for main in _mains_of(model):
        part, eager = part_that_reads(model, {main: None}), part_that_reads(twin, {main: None})
        given = _given(part, main)
        for stack in loaded.stacks if part is model else ("encoder",):
            torch.manual_seed(1)  # ViTMAE hides patches at random
            record, batch = _record(loaded, given, stack)
            torch.manual_seed(1)
            wrong, note = _compared(record, _returned(eager, batch, stack))
            if wrong:
                return "wrong", f"{stack}: {note}"
            notes.append(note)
        if (
            part is model
            and _is_text(with_decoder_ids(model, given))
            and (apart := _padding_matters(loaded)) is not None
        ):
            return "wrong", apart
    return "exact", "; ".join(dict.fromkeys(note for note in notes if note))


def _padding_matters(loaded: attnscope.InstrumentedModel) -> str | None:
    """By how much a short text differs in a batch with a long one, if it does."""
    stack = "encoder" if "encoder" in loaded.stacks else None
    long, short = _ended(loaded, TEXT), _ended(loaded, SHORT)
    alone = loaded.record(short, stack=stack)
    _, batched = loaded.records([long, short], batch_size=2, stack=stack)
    difference = float((alone.weights - batched.weights).abs().max())
    return f"differs by {difference:.2g} beside a longer text in a batch" if difference > BATCH_TOLERANCE else None


def _is_text(batch: Mapping[str, Tensor]) -> bool:
    """Whether this is a row of ids on each side and nothing else, so that texts can stand for it."""
    rows = all(value.ndim == 2 and len(value) == 1 for value in batch.values())
    return "input_ids" in batch and set(batch) <= {"input_ids", "decoder_input_ids"} and rows


def _ended(loaded: attnscope.InstrumentedModel, text: str) -> str:
    """The text, with the token at which a classifier with a decoder (BART, T5) reads its answer."""
    return f"{text} </s>" if loaded.task == "classifier" and loaded.reader.has_both_sides else text


def _record(
    loaded: attnscope.InstrumentedModel, given: dict[str, Tensor], stack: str
) -> tuple[AttentionRecord, dict[str, Any]]:
    """The record of a stack, and the batch it is of."""
    batch = with_decoder_ids(loaded.model, given)
    if not _is_text(batch) or part_that_reads(loaded.model, given) is not loaded.model:
        return loaded.record(inputs=batch, stack=stack), batch
    writes = loaded.reader.has_both_sides and loaded.task != "classifier" and stack != "encoder"
    record = loaded.record(_ended(loaded, TEXT), stack=stack, text_target=SHORT if writes else None)
    return record, loaded.reader.batch_of([record.inputs])


def _mains_of(model: PreTrainedModel) -> list[str]:
    """The main input of a model: text or picture or sound; both, one by one, for two towers."""
    if has_two_towers(model):
        return ["input_ids", "pixel_values"]
    return [model.main_input_name] if isinstance(model.main_input_name, str) else model.main_input_name[:1]


def _given(model: PreTrainedModel, main: str) -> dict[str, Tensor]:
    """The first of the inputs that the model runs with by itself: if there is none, it says nothing about attnscope."""
    reasons = []
    for given in readings(model, main):
        batch = with_decoder_ids(model, given)
        if set(given) == {"input_ids"} and "attention_mask" in signature(model.forward).parameters:
            batch["attention_mask"] = torch.ones_like(batch["input_ids"])
        try:
            with torch.no_grad():
                model(**batch)
        except TimeoutError:  # the time of `judge` is up
            raise
        except Exception as error:  # noqa: BLE001 -- whatever a model says to a layout that is not its own
            reasons.append(error)
        else:
            return given
    reason = f"{type(reasons[0]).__name__}: {' '.join(str(reasons[0]).split())[:120]}"
    raise NotBuilt(f"does not run by itself when this small: {reason}") from reasons[0]


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
