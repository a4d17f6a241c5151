"""The methods that score words, each with the record it reads, and what of them a model can serve."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..attribution import flow, gradient, layerwise_tracing, raw, rollout
from ..attribution.choosing import Method, named_methods, score
from ..errors import BadInput
from ..record import AttentionRecord, Model, Text
from ..record.target import SUM

RECORDED: dict[str, dict[str, Any]] = {
    "plain": {},
    "sum": {"gradients": True, "target": SUM, "quantity": "probability"},
    "prediction": {"gradients": True, "quantity": "probability"},
}
"""The kinds of record: without gradients, with those of the sum of all outcomes, and of the predicted one."""
ROUNDING = 1e-5
"""A gradient of the sum that is a smaller share of the predicted logit's is rounding."""


@dataclass(frozen=True)
class WordMethod:
    """A method, and the kinds of record that it may be given, the cheapest first."""

    method: Method
    kinds: tuple[str, ...]


_squared = partial(gradient, reduce="squared")

WORD_METHODS = {
    "layerwise_tracing": WordMethod(layerwise_tracing, ("plain",)),
    "gradient_of_sum": WordMethod(_squared, ("sum",)),
    "gradient_of_prediction": WordMethod(_squared, ("prediction",)),
    "rollout": WordMethod(rollout, ("plain",)),
    "flow": WordMethod(flow, ("plain",)),
    "raw": WordMethod(raw, ("plain",)),
}
"""The methods by default. `gradient_of_sum` is the baseline of Wu, Nguyen & Ong 2020 (Eq. 13 and their code): the
squared gradient of all outcomes' probabilities added up; `gradient_of_prediction` takes the predicted outcome alone."""


@dataclass(frozen=True)
class Plan:
    """Which methods are scored on which kind of record, what is left out and why, and the heads of the model."""

    passes: Mapping[str, Mapping[str, Method]]
    """The methods by the kind of record; the model runs once for each kind."""
    left_out: Mapping[str, str]
    heads: tuple[int, ...]

    @property
    def methods(self) -> list[str]:
        """The methods that are scored, in the order of the passes."""
        return [name for methods in self.passes.values() for name in methods]


def chosen_methods(methods: Sequence[str | Method] | None) -> dict[str, WordMethod]:
    """The methods by name: of WORD_METHODS, of METHODS, or functions of a record; those of WORD_METHODS by default."""
    if methods is None:
        return dict(WORD_METHODS)
    chosen: dict[str, WordMethod] = {}
    for method in methods:
        if isinstance(method, str) and method in WORD_METHODS:
            found = {method: WORD_METHODS[method]}
        else:
            found = {name: WordMethod(own, ("plain", "prediction")) for name, own in named_methods([method]).items()}
        if chosen.keys() & found.keys():
            raise BadInput(f"The method {next(iter(found))!r} is given twice.")
        chosen |= found
    if not chosen:
        raise BadInput("There is no method to score the words by: name at least one.")
    return chosen


def planned(
    model: Model, text: Text, methods: Mapping[str, WordMethod], record: Mapping[str, Any], *, all_needed: bool
) -> Plan:
    """What the model serves of these methods, told from one text; `record` are options of every record.

    Methods that read any record are scored on one that has to be taken anyway. If `all_needed`, a method that is not
    served raises what it lacks.
    """
    taken: dict[str, AttentionRecord] = {"plain": model.record(text, **record)}
    serving: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for name, method in methods.items():
        lacking = ""
        for kind in method.kinds:
            try:
                if kind not in taken:
                    taken[kind] = _checked_record(model, text, kind, record)
                score(taken[kind], name, method.method, model)
            except BadInput as error:
                lacking = lacking or str(error)
            else:
                serving[name] = kind
                break
        if name not in serving:
            if all_needed:
                raise BadInput(lacking)
            left_out[name] = lacking
    if not serving:
        raise BadInput(f"No method can be scored on this model: {next(iter(left_out.values()))}")
    return Plan(_passes(serving, methods), left_out, taken["plain"].heads)


def records_of(
    model: Model, texts: Sequence[Text], plan: Plan, batch_size: int, record: Mapping[str, Any]
) -> Iterator[dict[str, AttentionRecord]]:
    """The records of each text, one of each kind in the plan."""
    runs = [model.records(texts, batch_size, **RECORDED[kind], **record) for kind in plan.passes]
    for found in zip(*runs, strict=True):
        yield dict(zip(plan.passes, found, strict=True))


def _checked_record(model: Model, text: Text, kind: str, record: Mapping[str, Any]) -> AttentionRecord:
    """A record of this kind, if the model gives one and its gradients are more than rounding."""
    taken = model.record(text, **RECORDED[kind], **record)
    if kind == "sum":
        of_logit = model.record(text, gradients=True, **record)
        if _length(taken) <= ROUNDING * _length(of_logit):
            raise BadInput(
                "The probabilities of this model always sum to one, so that their sum has no gradient:"
                " use gradient_of_prediction."
            )
    return taken


def _length(record: AttentionRecord) -> float:
    return 0.0 if record.embedding_gradients is None else float(record.embedding_gradients.norm())


def _passes(serving: Mapping[str, str], methods: Mapping[str, WordMethod]) -> dict[str, dict[str, Method]]:
    """The methods of each kind of record; those that read any record join one with gradients if there is one."""
    kinds = [kind for kind in RECORDED if kind in serving.values()]
    host = next((kind for kind in kinds if kind != "plain"), "plain")
    passes: dict[str, dict[str, Method]] = {kind: {} for kind in kinds if kind != "plain" or host == "plain"}
    for name, kind in serving.items():
        passes[host if kind == "plain" else kind][name] = methods[name].method
    return passes
