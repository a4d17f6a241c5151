"""One text explained by every method: the prediction, the tokens as each scores them, and what each cannot say."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from .attribution.blank_out import blank_groups
from .attribution.choosing import Method, every_method, has_sign, named_methods, score
from .attribution.comparing import Comparison
from .capture import InstrumentedModel, load
from .errors import BadInput
from .progress import told_to
from .record import AttentionRecord, TokenScores, readable
from .record import Text as TextInput
from .record.schema import checked
from .terminal import paint_scores

Level = Literal["token", "word"]
Watch = Callable[[str, int, int], None]
"""Who is told how far each method is: its name, how much is done, and of how much."""
BUDGET = 60.0
"""Seconds that slow methods may take on the command line unless more are allowed."""
SLOW = 1.0
"""Seconds from which a method is slow."""
GRADIENT_PASSES = 54
"""Runs of integrated gradients, each forwards and backwards: its steps, both ends, and the choice of a baseline."""
BACKWARDS = 2.0
"""How many times a pass forwards one backwards takes, by the usual count of multiplications."""
FLOW_RATE = 1.5e6
"""Layers x sources x tokens x tokens of flow in a second, about: twelve layers and 48 tokens take one."""
LANGUAGE_TASKS = ("causal_lm", "masked_lm", "encoder_decoder")


@dataclass(frozen=True, eq=False)
class Explanation:
    """A record and what the methods say of it."""

    record: AttentionRecord
    comparison: Comparison

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data, ready for JSON."""
        said = {one.method: [said for said in (one.noise, *one.warnings) if said] for one in self.comparison.scores}
        return {
            "text": self.record.text,
            "prediction": [{"label": label, "probability": share} for label, share in self.record.prediction],
            "target": None if self.record.target is None else self.record.target.outcome,
            "tokens": list(self.comparison.scores[0].tokens),
            "scores": {scores.method: scores.scores.tolist() for scores in self.comparison.scores},
            "reference": self.comparison.reference,
            "warnings": {method: sentences for method, sentences in said.items() if sentences},
            "left_out": dict(self.comparison.left_out),
        }


@checked
def explain(
    model: str | InstrumentedModel,
    text: TextInput,
    methods: Sequence[str] | None = None,
    query: int | None = None,
    layer: int | None = None,
    *,
    target: str | None = None,
    by: Level = "token",
    signed: bool = False,
    truncate: bool = False,
    budget: int | float | None = None,
    watch: Watch | None = None,
) -> Explanation:
    """Record a text with all that methods may ask for, and let them score it, quick ones first.

    `model` is a loaded model, or a name or folder. `target` is the outcome to explain instead of the predicted one;
    `by="word"` gives one score for each word; `signed` keeps the sign of the methods that have one, above zero for
    what speaks for the outcome. `query` and `layer` ask the methods that have a map about another position or
    layer; the others are left out then. Without `methods`, slow ones are left out that would take more than
    `budget` seconds together, by the time that one run of the model takes here. `watch` is told how far they are.
    """
    if isinstance(model, str):
        model = load(model)
    record = record_with_everything(model, text, target, truncate)
    asks_map = query is not None or layer is not None
    # gradients are of what was captured, so all are asked about that outcome
    outcome = None if target is None or record.target is None else record.target.index
    options = {"signed": signed, "target": outcome}
    # rows of a map are of tokens: words are made of them afterwards
    level = "token" if asks_map else by
    comparison = _compare(record, model, methods, level, options, budget, watch)
    if not asks_map:
        return Explanation(record, comparison)
    asked = [_at(scores, record, query, layer) for scores in comparison.scores if scores.compute_row is not None]
    if not asked:
        raise BadInput("None of these methods has a map, so they cannot be asked about a query or layer: try rollout.")
    gone = {
        scores.method: "It scores tokens for the read-out only."
        for scores in comparison.scores
        if scores.compute_row is None
    }
    shown = tuple(scores.words() if by == "word" else scores for scores in asked)
    return Explanation(record, Comparison(shown, {**comparison.left_out, **gone}))


def _compare(
    record: AttentionRecord,
    model: InstrumentedModel,
    methods: Sequence[str] | None,
    by: str,
    options: Mapping[str, Any],
    budget: int | float | None,
    watch: Watch | None,
) -> Comparison:
    """What the methods say, quick ones first; those that were named must be able to, others are left out in words."""
    chosen = every_method() if methods is None else named_methods(methods)
    if not chosen:
        raise BadInput("There is nothing to compare: give at least one method.")
    seconds = predicted_seconds(record, model, chosen, by)
    left_out = {} if budget is None or methods is not None else _beyond(seconds, budget)
    found: dict[str, TokenScores] = {}
    for name in sorted((name for name in chosen if name not in left_out), key=lambda name: seconds.get(name, 0.0)):
        own = _watch_of(watch, name)
        try:
            with told_to(own):
                found[name] = score(record, name, chosen[name], model, by, {**options, **_quantity(name, model)})
        except BadInput as lacking:
            if methods is not None:
                raise
            left_out[name] = str(lacking)
    if not found:
        raise BadInput(f"No method can be used on this record: {' '.join(left_out.values())}")
    in_order = [name for name in chosen if name in left_out]
    scores = tuple(found[name] for name in chosen if name in found)
    return Comparison(scores, {name: left_out[name] for name in in_order})


def _watch_of(watch: Watch | None, name: str) -> Callable[[int, int], None]:
    return lambda done, whole: None if watch is None else watch(name, done, whole)


def _quantity(name: str, model: InstrumentedModel) -> dict[str, str]:
    """What of the outcome a method follows here.

    Blank-out goes over to log-odds where the probability hardly moves. The logit of a word has no meaning of its own,
    as all of a vocabulary rise and fall together, so integrated gradients follows the probability there.
    """
    if name == "blank_out":
        return {"quantity": "clearest"}
    if name == "integrated_gradients" and model.task in LANGUAGE_TASKS:
        return {"quantity": "probability"}
    return {}


def predicted_seconds(
    record: AttentionRecord, model: InstrumentedModel, methods: Mapping[str, Method], by: str
) -> dict[str, float]:
    """About how long each slow method will take here, told from one run of the model, which is timed."""
    passes = {
        "blank_out": lambda: len(blank_groups(record, by)) + 1.0,
        "integrated_gradients": lambda: GRADIENT_PASSES * (1 + BACKWARDS),
    }
    runs = {name: passes[name]() for name in methods if name in passes}
    seconds: dict[str, float] = {}
    if runs and record.inputs:
        begun = time.perf_counter()
        with suppress(BadInput):  # a model without a head has run all the same
            model.probabilities([record.inputs])
        one = time.perf_counter() - begun
        seconds = {name: count * one for name, count in runs.items()}
    if "flow" in methods:
        sources = int((record.readout > 0).sum())
        seconds["flow"] = len(record.layers) * sources * len(record.key_tokens) ** 2 / FLOW_RATE
    return seconds


def _beyond(seconds: Mapping[str, float], budget: int | float) -> dict[str, str]:
    """The slow methods that the budget has no room for, the quicker ones first, and how to have them all the same."""
    left_out = {}
    spent = 0.0
    for name, needed in sorted(seconds.items(), key=lambda item: item[1]):
        spent += needed
        if needed >= SLOW and spent > budget:
            left_out[name] = (
                f"It would take about {needed:.0f} s here, beyond the budget of {budget:.0f} s: --methods {name} asks"
                f" for it, --budget {1.2 * spent:.0f} or --methods all adds it."
            )
    return left_out


def record_with_everything(
    model: InstrumentedModel, text: TextInput, target: str | None = None, truncate: bool = False
) -> AttentionRecord:
    """A record with gradients and values, as far as this model gives them."""
    # without a head, the sum of what is read out is all there is
    outcome = "sum" if model.task == "encoder" and target is None else target
    for values in (True, False):
        try:
            return model.record(text, gradients=True, target=outcome, values=values, truncate=truncate)
        except BadInput:
            if target is not None and not values:
                raise
    return model.record(text, truncate=truncate)


def _at(scores: TokenScores, record: AttentionRecord, query: int | None, layer: int | None) -> TokenScores:
    """The scores of a method for another query or layer; the read-out's own where only the layer is asked for."""
    wanted = -1 if layer is None else layer
    if query is not None:
        return replace(scores, scores=scores.at(query, wanted), warnings=())
    rows = [scores.at(position, wanted) * share for position, share in enumerate(record.readout.tolist()) if share > 0]
    return replace(scores, scores=sum(rows[1:], rows[0]), warnings=())


def show(console: Console, explanation: Explanation) -> None:
    """Print the prediction, the text once for each method, what must be said of them, and how far they agree."""
    record, comparison = explanation.record, explanation.comparison
    text = record.text if isinstance(record.text, str) else " | ".join(record.text or readable(record.key_tokens))
    if record.prediction:
        label, share = record.prediction[0]
        console.print(Text.assemble(text, " → ", (label.strip() or repr(label), "bold"), f" {share:.1%}"))
        if record.target is not None and record.target.outcome != label:
            chances = dict(record.prediction)
            known = f", which has {chances[record.target.outcome]:.1%}" if record.target.outcome in chances else ""
            console.print(f"  Explained is {record.target.outcome!r}{known}.", highlight=False)
    else:
        console.print(f"{text} → no answer: this model has no head", highlight=False)
    width = max(len(name) for name in comparison.methods)
    agreement = comparison.agreement[comparison.reference]
    rows = []
    for scores in comparison.scores:
        values = scores.scores.tolist()
        largest = max(map(abs, values), default=0.0)
        line = paint_scores(console, readable(scores.tokens), scores.special, values, largest)
        rank = agreement[scores.method]
        after = f"  {rank:+.2f}" if rank == rank else "   –"  # noqa: PLR0124 - NaN is not itself
        rows.append((scores.method, line, after))
    fits = all(len(f"  {'':<{width}}  {after}") + line.cell_len <= console.width for _, line, after in rows)
    for method, line, after in rows:
        if fits:
            console.print(Text(f"  {method:<{width}}  ").append_text(line).append(after))
        else:
            console.print(f"  {method}{after}", highlight=False)
            console.print(Padding(line, (0, 0, 0, 4)))
    each = "of each method" if len(comparison.scores) > 1 else "at the end"
    signed = [scores.method for scores in comparison.scores if has_sign(scores) and bool((scores.scores < 0).any())]
    below = f" Below zero in {', '.join(signed)}: what speaks against it." if signed else ""
    console.print(
        f"  The number {each} compares its order of the tokens with that of {comparison.reference}: 1 is the same"
        f" order, 0 is none (Spearman). Colours run from 0 to the largest of a row.{below}",
        highlight=False,
    )
    for scores in comparison.scores:
        for warning in (scores.noise, *scores.warnings):
            if warning:
                console.print(f"  {scores.method}: {warning.rstrip('.')}.", highlight=False)
    for name, why in comparison.left_out.items():
        console.print(f"  Left out: {name}. {why}", highlight=False)
