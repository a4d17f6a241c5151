"""One text explained by every method: the prediction, the tokens as each scores them, and what each cannot say."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from .attribution import compare
from .attribution.comparing import Comparison
from .capture import InstrumentedModel, ModuleModel
from .errors import BadInput
from .record import AttentionRecord, TokenScores, readable
from .record import Text as TextInput
from .terminal import scored


@dataclass(frozen=True, eq=False)
class Explanation:
    """A record and what the methods say of it."""

    record: AttentionRecord
    comparison: Comparison

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data, ready for JSON."""
        return {
            "text": self.record.text,
            "prediction": [{"label": label, "probability": share} for label, share in self.record.prediction],
            "tokens": list(self.record.key_tokens),
            "scores": {scores.method: scores.scores.tolist() for scores in self.comparison.scores},
            "warnings": {scores.method: list(scores.warnings) for scores in self.comparison.scores if scores.warnings},
            "left_out": dict(self.comparison.left_out),
        }


def explain(
    model: InstrumentedModel | ModuleModel,
    text: str,
    methods: Sequence[str] | None = None,
    query: int | None = None,
    layer: int | None = None,
) -> Explanation:
    """Record a text with all that methods may ask for, and let them score it.

    `query` and `layer` ask the methods that have a map about another position or layer; the others are left out then.
    """
    record = record_with_everything(model, text)
    comparison = compare(record, model, methods)
    if query is None and layer is None:
        return Explanation(record, comparison)
    asked = [_at(scores, record, query, layer) for scores in comparison.scores if scores.compute_row is not None]
    if not asked:
        raise BadInput("None of these methods has a map, so they cannot be asked about a query or layer: try rollout.")
    gone = {
        scores.method: "It scores tokens for the read-out only."
        for scores in comparison.scores
        if scores.compute_row is None
    }
    return Explanation(record, Comparison(tuple(asked), {**comparison.left_out, **gone}))


def record_with_everything(model: InstrumentedModel | ModuleModel, text: TextInput) -> AttentionRecord:
    """A record with gradients and values, as far as this model gives them."""
    target = "sum" if model.task == "encoder" else None  # without a head, the sum of what is read out is all there is
    for values in (True, False):
        try:
            return model.record(text, gradients=True, target=target, values=values)
        except BadInput:
            continue
    return model.record(text)


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
    if record.prediction:
        label, share = record.prediction[0]
        console.print(Text.assemble(str(record.text), " → ", (label.strip() or repr(label), "bold"), f" {share:.1%}"))
    else:
        console.print(f"{record.text} → no answer: this model has no head", highlight=False)
    width = max(len(name) for name in comparison.methods)
    agreement = comparison.agreement[comparison.reference]
    rows = []
    for scores in comparison.scores:
        values = scores.scores.abs().tolist()
        line = scored(console, readable(scores.tokens), scores.special, values, max(values, default=0.0))
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
    console.print(
        f"  The number {each} compares its order of the tokens with that of {comparison.reference}: 1 is the same"
        " order, 0 is none (Spearman). Colours run from 0 to the largest of a row.",
        highlight=False,
    )
    for scores in comparison.scores:
        for warning in scores.warnings:
            console.print(f"  {scores.method}: {warning}.", highlight=False)
    for name, why in comparison.left_out.items():
        console.print(f"  Left out: {name}. {why}", highlight=False)
