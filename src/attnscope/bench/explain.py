"""Every method on one text: its seconds beside a run of the model, the slow ones beside how they were and a peer."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from ..attribution import blank_out, integrated_gradients
from ..attribution.choosing import every_method, score
from ..capture import InstrumentedModel, load
from ..record import AttentionRecord
from .figure import Figure, faster, taking_turns
from .flow import TEXT

LENGTHS = (25, 160)
ROUNDS = 3
STEPS = 50
"""Steps of integrated gradients before it chose them itself, and of Captum."""
CLOSE = 1e-4
"""By how much scores may differ from those of runs that share nothing."""


def measure_explain() -> Iterator[Figure]:
    """A causal model made here, and SmolLM2 where it is laid out, on texts of 25 and 160 tokens."""
    for tokens in LENGTHS:
        yield from measure_text("made model", made_model(), tokens, ROUNDS)
    home = Path(os.environ.get("ATTNSCOPE_REAL_MODELS", Path.home() / ".cache" / "attnscope-real"))
    if (home / "smollm2" / "model.safetensors").is_file():
        for tokens in LENGTHS:
            yield from measure_text("smollm2", load(home / "smollm2"), tokens, 1)


def made_model(layers: int = 8, width: int = 256) -> InstrumentedModel:
    """A causal model with random weights, over the words of the shipped one."""
    tokenizer = load("demo").tokenizer
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=8,
        num_key_value_heads=4,
        initializer_range=0.05,
    )
    return load(LlamaForCausalLM(config).eval(), tokenizer=tokenizer)


def record_of(model: InstrumentedModel, tokens: int) -> AttentionRecord:
    """A record of so many tokens of a text, with all that methods ask for."""
    words = (TEXT * 3).split()
    count = next(number for number in range(len(words)) if len(model.tokens(" ".join(words[: number + 1]))) >= tokens)
    return model.record(" ".join(words[: count + 1]), gradients=True, values=True)


def measure_text(name: str, model: InstrumentedModel, tokens: int, rounds: int) -> Iterator[Figure]:
    """All methods on one text, taking turns."""
    record = record_of(model, tokens)
    case = f"{name}, {len(record.tokens)} tokens"
    methods = {
        known: method for known, method in every_method().items() if known not in ("blank_out", "integrated_gradients")
    }
    work: dict[str, Callable[[], object]] = {
        known: partial(score, record, known, method, model) for known, method in methods.items()
    }
    quick = taking_turns({"run": lambda: model.probabilities([record.inputs]), **work}, rounds)
    for known in methods:
        yield faster(f"{known}, {case}", "one run of the model", quick[known], quick["run"], None)
    yield from _blank_out(case, model, record, rounds)
    yield from _integrated_gradients(case, model, record, rounds)


def _blank_out(case: str, model: InstrumentedModel, record: AttentionRecord, rounds: int) -> Iterator[Figure]:
    ours, whole = blank_out(record, model, signed=True).scores, blank_out_whole(model, record)
    difference = float((ours - whole).abs().max())
    if difference > CLOSE:
        raise RuntimeError(f"Blank-out differs by {difference:.1e} from that of whole runs.")
    seconds = taking_turns(
        {"ours": lambda: blank_out(record, model), "whole": lambda: blank_out_whole(model, record)}, rounds
    )
    yield faster(
        f"blank_out, {case}",
        "whole runs, all logits",
        seconds["ours"],
        seconds["whole"],
        None,
        f"differ by {difference:.1e}",
    )


def blank_out_whole(model: InstrumentedModel, record: AttentionRecord, batch_size: int = 16) -> Float[Tensor, " token"]:
    """Blank-out as it was: every run from its first token on, with the logits of all positions."""
    reader, ids = model.reader, record.inputs["input_ids"]
    items = [{"input_ids": ids}]
    for place in range(len(ids)):
        blanked = ids.clone()
        blanked[place] = model.blank_ids["unk"]
        items.append({"input_ids": blanked})
    rows: list[Tensor] = []
    with torch.no_grad():
        for start in range(0, len(items), batch_size):
            some = items[start : start + batch_size]
            answers = reader.answers(reader.run(reader.batch_of(some), None), some)
            rows += [logits.softmax(-1) for logits in answers if logits is not None]
    outcome = model.target(record.inputs).index
    probabilities = torch.stack(rows)[:, outcome]
    return probabilities[0] - probabilities[1:]


def _integrated_gradients(
    case: str, model: InstrumentedModel, record: AttentionRecord, rounds: int
) -> Iterator[Figure]:
    ask = partial(integrated_gradients, record, model, baseline="unk", quantity="probability", signed=True)
    others: dict[str, Callable[[], Any]] = {f"{STEPS} steps": partial(ask, steps=STEPS)}
    peer = find_spec("captum") is not None
    if peer:
        others["captum"] = partial(by_captum, model, record)
    seconds = taking_turns({"ours": ask, **others}, rounds)
    note = "" if peer else "captum is not installed: left out"
    for other in others:
        yield faster(f"integrated_gradients, {case}", other, seconds["ours"], seconds[other], None, note)


def by_captum(model: InstrumentedModel, record: AttentionRecord) -> Float[Tensor, " token"]:
    """The same by Captum, which must be installed."""
    from captum.attr import LayerIntegratedGradients

    ids = record.inputs["input_ids"].unsqueeze(0)
    explainer = LayerIntegratedGradients(
        lambda given: model.model(input_ids=given, use_cache=False).logits[:, -1].softmax(-1),
        model.model.get_input_embeddings(),
    )
    found: Tensor = explainer.attribute(
        ids,
        baselines=torch.full_like(ids, model.blank_ids["unk"]),
        target=model.target(record.inputs).index,
        n_steps=STEPS,
        internal_batch_size=16,
    )
    return found[0].sum(-1).float()
