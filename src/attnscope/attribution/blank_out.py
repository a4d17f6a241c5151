"""Blank-out: how much the model's answer changes when a token is taken away."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property, partial

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import BadInput
from ..progress import tell
from ..record import AttentionRecord, Model, TokenScores
from ..record.model import EMBEDDINGS, Inputs
from ..record.schema import checked
from ..record.words import units
from .rerunning import blank_embeddings, default_blank, input_positions, key_embeddings, key_ids, rerunnable

REPLACEMENTS = ("unk", "mask", "pad", "delete", "zero")


def blank_rows(
    embeddings: Float[Tensor, "key width"], blanks: Float[Tensor, "key width"], positions: Sequence[int]
) -> Float[Tensor, "key width"]:
    """The embeddings of a text with blanks at these positions."""
    taken = embeddings.clone()
    taken[list(positions)] = blanks[list(positions)]
    return taken


def without(inputs: Inputs, ids: str, positions: Sequence[int]) -> dict[str, Tensor]:
    """The inputs of a text that never had these positions, with whatever belongs to them on their side."""
    length = len(inputs[ids])
    kept = [position for position in range(length) if position not in positions]
    on_decoder = ids.startswith("decoder_")
    return {
        name: tensor[kept] if name.startswith("decoder_") == on_decoder else tensor for name, tensor in inputs.items()
    }


EVERYTHING = 0.9
"""A token that takes this share of the probability along has taken all there was to say."""
NOTHING = 0.01
"""Where no token changes the probability by as much, none carries the answer, and ranks among them are noise."""
LEAST = 1e-30
"""A probability that is smaller has this one's logarithm."""
DROWNED = 2.0
"""How many times the noise of replacements a change of the log-odds must be to say something of a token."""
QUANTITIES = ("probability", "log_odds", "moving", "clearest")


@dataclass(eq=False)
class KeptRuns:
    """What came of the runs of one question."""

    asked: tuple[AttentionRecord, Model]
    """Held, so that no others take their place in memory while they are known by it."""
    answers: dict[tuple[int, ...], tuple[Tensor, Tensor | None]] = field(default_factory=dict)
    """Probability and log-odds by the positions taken away."""
    noise: dict[tuple[int, int], float] = field(default_factory=dict)
    """Of replacements, by the number of places and of draws."""


_kept: ContextVar[dict[tuple[object, ...], KeptRuns] | None] = ContextVar("attnscope_kept_runs", default=None)


@contextmanager
def runs_kept() -> Iterator[None]:
    """Within this, blank-out and phrases share their runs: none is made twice. The model must not change meanwhile."""
    token = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(token)


@dataclass(frozen=True, eq=False)
class Blanking:
    """One question to a model, asked again with some positions of its text taken away.

    `outcome` is the place of the answer followed (None: what is predicted), `against` that of another it is held
    against.
    """

    record: AttentionRecord
    model: Model
    replacement: str
    outcome: int | None
    against: int | None
    batch_size: int

    def ask(self, runs: Sequence[Sequence[int]]) -> tuple[Float[Tensor, " run"], Float[Tensor, " run"] | None]:
        """The probability and the log-odds of the answer in each run, the first of which may settle what is predicted.

        A model with a single output has its value in place of a probability, and no odds.
        """
        kept = self.kept
        known: dict[tuple[int, ...], tuple[Tensor, Tensor | None]] = {} if kept is None else kept.answers
        keys = [tuple(sorted(positions)) for positions in runs]
        new = [key for key in dict.fromkeys(keys) if key not in known]
        if new:
            asked = list(dict.fromkeys([keys[0], *new]))  # the first comes along, as it may settle what is predicted
            own, odds = self.ask_with([self._changed(positions) for positions in asked])
            known.update(zip(asked, zip(own, [None] * len(asked) if odds is None else odds, strict=True), strict=True))
        all_odds = [value for key in keys if (value := known[key][1]) is not None]
        return torch.stack([known[key][0] for key in keys]), torch.stack(all_odds) if all_odds else None

    @property
    def kept(self) -> KeptRuns | None:
        """What is known of this question, where runs are kept."""
        questions = _kept.get()
        if questions is None:
            return None
        question = (id(self.record), id(self.model), self.replacement, self.outcome, self.against)
        return questions.setdefault(question, KeptRuns((self.record, self.model)))

    def ask_with(
        self, runs: Sequence[Callable[[], Inputs]]
    ) -> tuple[Float[Tensor, " run"], Float[Tensor, " run"] | None]:
        """The same of any inputs."""
        outcome = self.outcome
        own, odds = [], []
        # batch by batch, as the embeddings of all runs at once grow with the square of the text
        for start in range(0, len(runs), self.batch_size):
            tell(start, len(runs))
            inputs = [run() for run in runs[start : start + self.batch_size]]
            probabilities = self.model.probabilities(inputs, self.batch_size)
            outcome = int(probabilities[0].argmax()) if outcome is None else outcome
            own.append(probabilities[:, outcome].clone())  # a view would hold the whole vocabulary of every run
            odds.append(log_odds(probabilities, outcome, self.against))
        return torch.cat(own), None if probabilities.shape[1] == 1 else torch.cat(odds)

    def _changed(self, positions: Sequence[int]) -> Callable[[], Inputs]:
        """What the model is given when these positions are taken away."""
        taken = input_positions(self.record, positions)
        if self.replacement == "delete":
            return lambda: without(self.record.inputs, key_ids(self.record), taken)
        return lambda: self.with_rows(self.blanks, taken)

    def with_rows(self, rows: Float[Tensor, "key width"], taken: Sequence[int]) -> Inputs:
        """What the model is given when these rows stand for its embeddings at some positions."""
        return {**self.record.inputs, EMBEDDINGS[key_ids(self.record)]: blank_rows(self.embeddings, rows, taken)}

    @cached_property
    def embeddings(self) -> Float[Tensor, "key width"]:
        """The embeddings of the text."""
        return key_embeddings(self.record, self.model)

    @cached_property
    def blanks(self) -> Float[Tensor, "key width"]:
        """Those of a text of nothing but blanks."""
        return blank_embeddings(self.record, self.model, self.replacement)


def blanking_of(
    record: AttentionRecord,
    model: Model | None,
    method: str,
    replacement: str | None = None,
    target: int | str | None = None,
    against: int | str | None = None,
    batch_size: int = 16,
) -> Blanking:
    """The question that a method asks of a record again and again; refused where it cannot be asked."""
    runner = rerunnable(record, model, method)
    if batch_size < 1:
        raise BadInput(f"batch_size must be at least 1, not {batch_size}.")
    replacement = default_blank(runner) if replacement is None else _checked(replacement)
    if against is not None:
        other: int | None = _outcome(record, runner, against)
    else:
        other = record.target.against_index if target is None and record.target is not None else None
    return Blanking(record, runner, replacement, _outcome(record, runner, target), other, batch_size)


@checked
def blank_out(
    record: AttentionRecord,
    model: Model | None = None,
    replacement: str | None = None,
    by: str = "token",
    target: int | str | None = None,
    against: int | str | None = None,
    signed: bool = False,
    batch_size: int = 16,
    quantity: str = "probability",
) -> TokenScores:
    """How much the probability of an outcome changes when each token in turn is taken away.

    Abnar & Zuidema 2020, section 2, "blank-out": |p(y | x) - p(y | x without token i)|, with y the `target`: by default
    what the record has gradients of, else what is predicted (for a model with a single output, its value).
    `signed=True` keeps the sign, positive where the token speaks for the outcome. Special tokens are blanked like all
    others. `by="word"` takes all pieces of a word away at once and gives one score for each word, which is not the sum
    over its pieces that `scores.words()` gives; `by="sentence"` and the levels of the record's
    segments likewise.

    `quantity="log_odds"` follows log p / (1 - p) instead, which goes on moving where the probability is all but one;
    "moving" takes it where no token changes the probability by 0.01, and says so; "clearest" then also measures the
    noise that random replacements make, and says where no token is above it. `against` another
    outcome (or of a record whose target is one against another) what is followed is the log-odds between the two, that
    is the difference of their logits.

    The `replacement` (unk, or else mask, unless said) takes the token's place where the model looks its embedding up:
    unk, mask and pad bring theirs, zero a vector of zeros. Positions, masks and the place the answer is read at stay as
    they were, so that blanking the mask of a masked language model, or the last token of a causal one, asks the same
    question at the same place. "delete" takes the position away too: a classifier then reads the new first token, a
    causal model the new last one. Where that leaves no token, or no mask to fill, nothing is asked any more: the
    outcome loses all its probability.
    """
    blanking = blanking_of(record, model, "blank_out", replacement, target, against, batch_size)
    if quantity not in QUANTITIES:
        raise BadInput(f"quantity is {', '.join(QUANTITIES)}, not {quantity!r}.")
    groups, labels = units(record.key_tokens, record.key_special, record.key_word_ids, by, record.segments)
    mask = blanking.model.blank_ids.get("mask")
    asked = [
        index
        for index, positions in enumerate(groups)
        if blanking.replacement != "delete" or _still_asks(record, positions, mask)
    ]
    # the text as it is comes first, so that it shares a batch with the others
    probability, odds = blanking.ask([[], *(groups[index] for index in asked)])
    after = torch.zeros(len(groups))
    after[asked] = probability[1:]
    before = float(probability[0])
    change = before - after
    warnings, noise = _judge(change, before, blanking.replacement) if odds is not None else ((), "")
    if blanking.against is not None:
        quantity = "log_odds"
    has_odds = odds is not None and len(asked) == len(groups)
    if quantity == "log_odds" and not has_odds:
        raise BadInput(
            "There are no log-odds of a single output, nor where nothing is left to ask: follow probability."
        )
    saturated = quantity in ("moving", "clearest") and _is_small(change)
    if odds is not None and has_odds and (quantity == "log_odds" or saturated):
        change = odds[0] - odds[1:]
        name = against if against is not None or record.target is None else record.target.against
        between = "" if name is None else f" to {name!r}"
        warnings = (*warnings, f"scores are changes of the log-odds{between}, not of the probability of {before:.4f}")
        noise = _drowned(change, replacement_noise(blanking)) if saturated and quantity == "clearest" else ""
    firsts = [positions[0] for positions in groups]
    return TokenScores(
        method="blank_out",
        tokens=labels,
        scores=change if signed else change.abs(),
        special=tuple(record.key_special[position] for position in firsts),
        word_ids=tuple(record.key_word_ids[position] for position in firsts),
        segments=None if record.segments is None else record.segments.merged(groups),
        warnings=warnings,
        noise=noise,
    )


def replacement_noise(blanking: Blanking, places: int = 8, draws: int = 4) -> float:
    """How much the log-odds hang on what a token is replaced by, whichever token it is: the level of noise here.

    At some places of the text, words drawn at random from the vocabulary stand for the token; the noise is the median
    over these places of the standard deviation over the draws. What a token's own removal changes less than that says
    nothing of the token.
    """
    record, model, kept = blanking.record, blanking.model, blanking.kept
    if kept is not None and (places, draws) in kept.noise:
        return kept.noise[places, draws]
    text = [place for place in range(record.added_tokens, len(record.key_tokens)) if not record.key_special[place]]
    chosen = text[:: max(1, len(text) // places)][:places]
    ids = record.inputs[key_ids(record)]
    generator = torch.Generator().manual_seed(0)
    most = getattr(model, "vocabulary_size", None)  # which a model of the user's own need not have
    if most is None or not chosen:
        return 0.0
    texts = []
    for _ in range(draws):
        drawn = torch.randint(most, ids.shape, generator=generator, dtype=ids.dtype)
        texts.append(model.embedded({**record.inputs, key_ids(record): drawn})[EMBEDDINGS[key_ids(record)]])
    runs: list[Callable[[], Inputs]] = [lambda: blanking.with_rows(blanking.embeddings, [])]  # settles the outcome
    # place by place, so that runs that go together begin alike
    runs += [partial(blanking.with_rows, rows, input_positions(record, [place])) for place in chosen for rows in texts]
    _, odds = blanking.ask_with(runs)
    noise = 0.0 if odds is None else float(odds[1:].view(len(chosen), draws).std(1).median())
    if kept is not None:
        kept.noise[places, draws] = noise
    return noise


def _drowned(change: Float[Tensor, " unit"], noise: float) -> str:
    """Why no token carries the answer even on log-odds; empty where one does."""
    largest = float(change.abs().max())
    if largest >= DROWNED * noise:
        return ""
    return (
        f"no single token carries the answer: its log-odds change by at most {largest:.2f}, whichever is taken away,"
        f" and words drawn at random in its place change them by {noise:.2f}"
    )


def _judge(change: Float[Tensor, " unit"], before: float, replacement: str) -> tuple[tuple[str, ...], str]:
    """What must be said of changes of a probability: where all are nearly everything, and where all are nothing."""
    if len(change) > 1 and bool((change.abs() > EVERYTHING * abs(before)).all()):
        sentence = f"every token that {replacement} replaces takes nearly all of the probability along: the replacement"
        return (f'{sentence} breaks the text more than the token did, so try replacement="delete"',), ""
    if before <= 0.5 or not _is_small(change):
        return (), ""
    return (), (
        f"no single token carries the answer: its probability of {before:.4f} changes by at most"
        f" {float(change.abs().max()):.4f}, whichever is taken away"
    )


def _is_small(change: Float[Tensor, " unit"]) -> bool:
    """Whether no change of a probability is worth the name."""
    return bool((change.abs() < NOTHING).all())


def _checked(replacement: str) -> str:
    """The replacement the user names."""
    if replacement not in REPLACEMENTS:
        raise BadInput(f"There is no replacement {replacement!r}: choose one of {', '.join(REPLACEMENTS)}.")
    return replacement


def _outcome(record: AttentionRecord, model: Model, target: int | str | None) -> int | None:
    """The place of the outcome the user names, else of the one the record has gradients of; None is the prediction."""
    if target is None:
        return None if record.target is None else record.target.index
    index = model.target(record.inputs, target, "probability").index
    if index is None:
        raise BadInput("Blank-out follows one outcome, not the sum of all: name a class or a token as target=.")
    return index


def log_odds(
    probabilities: Float[Tensor, "run outcome"], outcome: int, against: int | None = None
) -> Float[Tensor, " run"]:
    """The log-odds of an outcome to all others together, or to one of them: there, the difference of their logits."""
    exclusive = bool(((probabilities.sum(-1) - 1).abs() < 1e-3).all())
    if not exclusive:  # labels that are judged one by one
        logits = probabilities.clamp_min(LEAST).log() - (1 - probabilities).clamp_min(LEAST).log()
        return logits[:, outcome] - (0 if against is None else logits[:, against])
    if against is None:  # summed, since one minus nearly one has no digits left
        rest = probabilities.clone()
        rest[:, outcome] = 0
        others = rest.sum(-1)
    else:
        others = probabilities[:, against]
    return probabilities[:, outcome].clamp_min(LEAST).log() - others.clamp_min(LEAST).log()


def _still_asks(record: AttentionRecord, deleted: Sequence[int], mask: int | None) -> bool:
    """Whether something is left to answer: a token, and the mask if the answer is what it stands for."""
    if len(deleted) == len(record.key_tokens):
        return False
    read = int(record.readout.argmax())
    fills_mask = record.stack == "encoder" and "decoder_input_ids" not in record.inputs
    ids = record.inputs["input_ids"]
    return not (fills_mask and read in deleted and int(ids[read - record.added_tokens]) == mask)
