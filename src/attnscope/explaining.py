"""One text explained by every method: the prediction, the tokens as each scores them, and what each cannot say."""

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from .attribution.blank_out import runs_kept
from .attribution.choosing import every_method, has_sign, named_methods, score
from .attribution.comparing import Comparison
from .attribution.costs import predicted_seconds
from .attribution.phrases import Phrase, phrases
from .attribution.written import Written, written_from
from .capture import Estimate, InstrumentedModel, load
from .capture.memory import Rerun
from .errors import BadInput
from .numerals import percent
from .progress import told_to
from .record import AttentionRecord, TokenScores, readable
from .record import Text as TextInput
from .record.schema import checked
from .record.words import Level, units
from .statistics.sinks import sinks_of
from .terminal import paint_scores

Watch = Callable[[str, int, int], None]
"""Who is told how far each method is: its name, how much is done, and of how much."""
BUDGET = 60.0
"""Seconds that slow methods may take on the command line unless more are allowed."""
SLOW = 1.0
"""Seconds from which a method is slow."""
PHRASE_RUNS = 1.5
"""How many times as long as blank-out the search for phrases takes, about: pairs, and what grows."""
LANGUAGE_TASKS = ("causal_lm", "masked_lm", "encoder_decoder")


@dataclass(frozen=True, eq=False)
class Explanation:
    """A record and what the methods say of it."""

    record: AttentionRecord
    comparison: Comparison
    phrases: tuple[Phrase, ...] = ()
    """Words that carry the answer together, looked for where none carries it alone."""
    by: Level = "word"
    """What has one score each."""
    to_come: tuple[str, ...] = ()
    """The slow methods that follow, where only the quick ones are shown so far."""
    written: tuple[Written, ...] = ()
    """Of what an encoder-decoder wrote, each token with the words of the source."""

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data, ready for JSON."""
        said = {one.method: [said for said in (one.noise, *one.warnings) if said] for one in self.comparison.scores}
        return {
            "text": self.record.text,
            "prediction": [{"label": label, "probability": share} for label, share in self.record.prediction],
            "target": None if self.record.target is None else self.record.target.outcome,
            "against": None if self.record.target is None else self.record.target.against,
            "tokens": list(self.comparison.scores[0].tokens),
            "scores": {scores.method: scores.scores.tolist() for scores in self.comparison.scores},
            "reference": self.comparison.reference,
            "phrases": [
                {"text": str(phrase), "change": phrase.change, "alone": phrase.alone} for phrase in self.phrases
            ],
            "written": [one.to_dict() for one in self.written],
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
    against: str | None = None,
    by: Level = "word",
    signed: bool = True,
    replacement: str | None = None,
    truncate: bool = False,
    budget: int | float | None = None,
    watch: Watch | None = None,
    show_first: Callable[[Explanation], None] | None = None,
) -> Explanation:
    """Record a text with all that methods may ask for, and let them score it, quick ones first.

    `model` is a loaded model, or a name or folder. `target` is the outcome to explain instead of the predicted one, and
    `against` another, to ask why it is not that one: methods then follow the difference of the two logits. There is one
    score for each word, or `by` token or sentence; `signed` keeps the sign of the methods that have one, above zero for
    what speaks for the outcome. `replacement` is what blank-out puts in a word's place. Where no word alone moves the
    answer, `phrases` are looked for that do. `query` and `layer` ask the methods that have a map about another position
    or layer; the others are left out then. Without `methods`, slow ones are left out that would take more than `budget`
    seconds together, by a piece of their work that is timed here. `watch` is told how far they are, and `show_first` is
    given what the quick ones say before slow ones begin.
    """
    if isinstance(model, str):
        model = load(model)
    record = record_with_everything(model, text, target, truncate, against)
    asks_map = query is not None or layer is not None
    options = {"signed": signed, "replacement": replacement}
    # rows of a map are of tokens: words are made of them afterwards
    level: Level = "token" if asks_map else by

    def show_quick(quick: Comparison, to_come: tuple[str, ...]) -> None:
        if show_first is not None and not asks_map:
            show_first(Explanation(record, quick, by=by, to_come=to_come, written=written))

    asks_rollout = methods is None or "rollout" in methods
    written = written_from(record, by) if asks_rollout and model.task == "encoder_decoder" and not asks_map else ()
    begun = time.perf_counter()
    with runs_kept():
        comparison, seconds = _compare(record, model, methods, level, options, budget, watch, show_quick)
        if not asks_map:
            lost = any(scores.noise for scores in comparison.scores if scores.method == "blank_out")
            needed, spent = PHRASE_RUNS * seconds.get("blank_out", 0.0), time.perf_counter() - begun
            if lost and budget is not None and needed >= SLOW and spent + needed > budget:
                left_out = {**comparison.left_out, "phrases": _too_long(needed, budget, 1.2 * (spent + needed))}
                return Explanation(record, replace(comparison, left_out=left_out), by=by, written=written)
            with _told_of(watch, "phrases"):
                found = phrases(record, model, replacement) if lost else ()
            return Explanation(record, comparison, found, by, written=written)
    asked = [_at(scores, record, query, layer) for scores in comparison.scores if scores.compute_row is not None]
    if not asked:
        raise BadInput("None of these methods has a map, so they cannot be asked about a query or layer: try rollout.")
    gone = {
        scores.method: "It scores tokens for the read-out only."
        for scores in comparison.scores
        if scores.compute_row is None
    }
    shown = tuple(scores if by == "token" else scores.sum_by(by) for scores in asked)
    return Explanation(record, Comparison(shown, {**comparison.left_out, **gone}), by=by)


def _compare(
    record: AttentionRecord,
    model: InstrumentedModel,
    methods: Sequence[str] | None,
    by: Level,
    options: Mapping[str, Any],
    budget: int | float | None,
    watch: Watch | None,
    show_quick: Callable[[Comparison, tuple[str, ...]], None],
) -> tuple[Comparison, dict[str, float]]:
    """What the methods say, quick ones first, and how long each took.

    Those that were named must be able to say something; others are left out in words.
    """
    chosen = every_method() if methods is None else named_methods(methods)
    if not chosen:
        raise BadInput("There is nothing to compare: give at least one method.")
    seconds = predicted_seconds(record, model, chosen, by) if len(chosen) > 1 else {}
    left_out = {} if budget is None or methods is not None else _beyond(seconds, budget)
    found: dict[str, TokenScores] = {}
    taken: dict[str, float] = {}
    in_turn = sorted((name for name in chosen if name not in left_out), key=lambda name: seconds.get(name, 0.0))
    slow = [name for name in in_turn if seconds.get(name, 0.0) >= SLOW]
    for name in in_turn:
        if found and name == next(iter(slow), None):
            follows = {other: f"It follows, in about {seconds[other]:.0f} s." for other in slow}
            show_quick(_in_order(chosen, found, {**left_out, **follows}), tuple(follows))
        begun = time.perf_counter()
        try:
            with _told_of(watch, name):
                found[name] = score(
                    record, name, chosen[name], model, by, {**options, **quantity_options(name, model, record)}
                )
        except BadInput as lacking:
            if methods is not None:
                raise
            left_out[name] = str(lacking)
        taken[name] = time.perf_counter() - begun
    if not found:
        raise BadInput(f"No method can be used on this record: {' '.join(left_out.values())}")
    return _in_order(chosen, found, left_out), taken


def _in_order(chosen: Collection[str], found: Mapping[str, TokenScores], left_out: Mapping[str, str]) -> Comparison:
    """What was found and what was left out, in the order in which methods were chosen."""
    scores = tuple(found[name] for name in chosen if name in found)
    return Comparison(scores, {name: left_out[name] for name in chosen if name in left_out})


def _told_of(watch: Watch | None, name: str) -> AbstractContextManager[None]:
    """Within this, whoever watches is told how far what has this name is."""
    return told_to(lambda done, whole: None if watch is None else watch(name, done, whole))


def quantity_options(name: str, model: InstrumentedModel, record: AttentionRecord) -> dict[str, str]:
    """What of the outcome a method follows here.

    Blank-out goes over to log-odds where the probability hardly moves. The logit of a word has no meaning of its own,
    as all of a vocabulary rise and fall together, so integrated gradients follows the probability there; the difference
    of two logits has one.
    """
    if name == "blank_out":
        return {"quantity": "clearest"}
    contrast = record.target is not None and record.target.against is not None
    if name == "integrated_gradients" and model.task in LANGUAGE_TASKS and not contrast:
        return {"quantity": "probability"}
    return {}


def _beyond(seconds: Mapping[str, float], budget: int | float) -> dict[str, str]:
    """The slow methods that the budget has no room for, the quicker ones first, and how to have them all the same."""
    left_out, spent = {}, 0.0
    for name, needed in sorted(seconds.items(), key=lambda item: item[1]):
        spent += needed
        if needed >= SLOW and spent > budget:
            left_out[name] = _too_long(needed, budget, 1.2 * spent, f"--methods {name} asks for it, ")
    return left_out


def _too_long(needed: float, budget: int | float, enough: float, alone: str = "") -> str:
    """Why something slow is left out, and how to have it all the same."""
    return (
        f"It would take about {needed:.0f} s here, beyond the budget of {budget:.0f} s: {alone}--budget {enough:.0f} or"
        " --methods all adds it."
    )


def record_with_everything(
    model: InstrumentedModel,
    text: TextInput,
    target: str | None = None,
    truncate: bool = False,
    against: str | None = None,
) -> AttentionRecord:
    """A record with gradients and values, and of all stacks, as far as this model gives them."""
    # without a head, the sum of what is read out is all there is
    outcome = "sum" if model.task == "encoder" and target is None else target
    ways = [(stack, values) for stack in dict.fromkeys((every_stack(model), None)) for values in (True, False)]
    for stack, values in ways:
        try:
            return model.record(
                text, stack=stack, gradients=True, target=outcome, against=against, values=values, truncate=truncate
            )
        except BadInput:
            if (stack, values) == ways[-1] and (target is not None or against is not None):
                raise
    return model.record(text, truncate=truncate)


def every_stack(model: InstrumentedModel) -> Literal["all"] | None:
    """What asks a model for all its stacks at once: of an encoder-decoder "all", else nothing."""
    return "all" if "cross" in model.stacks else None


def foretell(
    model: InstrumentedModel, text: TextInput, methods: Sequence[str] | None = None, truncate: bool = False
) -> dict[str, Estimate]:
    """What `explain` would take, before anything runs: its record, and beside it the methods that run the model again.

    The other methods take what the record takes.
    """
    chosen = every_method() if methods is None else named_methods(methods)
    tokens = len(model.tokens(text, truncate))
    found = {"record": model.estimate(tokens, stack=every_stack(model), gradients=True, values=True)}
    return found | {name: model.estimate(tokens, method=name) for name in get_args(Rerun) if name in chosen}


def _at(scores: TokenScores, record: AttentionRecord, query: int | None, layer: int | None) -> TokenScores:
    """The scores of a method for another query or layer; the read-out's own where only the layer is asked for."""
    wanted = -1 if layer is None else layer
    if query is not None:
        return replace(scores, scores=scores.at(query, wanted), warnings=())
    rows = [scores.at(position, wanted) * share for position, share in enumerate(record.readout.tolist()) if share > 0]
    return replace(scores, scores=sum(rows[1:], rows[0]), warnings=())


# The answer in words.

FOLLOW_ATTENTION = ("raw", "rollout", "flow", "layerwise_tracing", "effective", "value_weighted", "gradient_rollout")
"""Methods for which a token counts that attention goes to; the others ask what the answer would be without it."""
WORDS_NAMED = 3
TOKENS_WRITTEN = 40
"""Of a long text that was written, so many tokens are shown with their words of the source."""
LEAST_NAMED = 0.0005
"""A score that is smaller would be named as 0.000."""
FEWEST_PLACES = 3
"""Places behind the point that a number below one has at most: smaller ones are written as zero."""


def three_digits(number: float) -> str:
    """A number for a sentence: at most three digits that count, at most three places, and a true minus sign.

    >>> three_digits(7.605), three_digits(0.0584), three_digits(-123.4), three_digits(0.0)
    ('7.61', '0.058', '−123', '0.000')
    """
    places = 2 - math.floor(math.log10(abs(number))) if number and math.isfinite(number) else FEWEST_PLACES
    return f"{number:.{min(max(places, 0), FEWEST_PLACES)}f}".replace("-", "−")


def explained_words(record: AttentionRecord) -> str:
    """What is explained, where that is not just the prediction."""
    if record.target is None or not record.prediction:
        return ""
    outcome, against = record.target.outcome, record.target.against
    if outcome == record.prediction[0][0] and against is None:
        return ""
    chances = dict(record.prediction)
    chance = f" ({percent(chances[outcome])})" if outcome in chances else ""
    rival = "" if against is None else f" and not {against!r}"
    return f"Explained: why {outcome!r}{chance}{rival}."


def carried_words(
    comparison: Comparison, method: str, by: Level = "word", record: AttentionRecord | None = None
) -> str:
    """The answer in words: those of the text with the largest scores, and those that speak against it.

    Where tokens or sentences have the scores (`by`), they are named in place of words. A method that follows attention
    finds most of it where heads rest that have nothing to do: these sinks of the `record` carry nothing, and are named
    apart.
    """
    scores = next(one for one in comparison.scores if one.method == method)
    noise = f"{scores.noise[:1].upper()}{scores.noise[1:]}. " if scores.noise else ""
    scored = scores if by == "token" else scores.words()
    resting = _resting(record, by, len(scored.tokens)) if record is not None and method in FOLLOW_ATTENTION else set()
    found = [
        (name.strip(), value, place in resting)
        for place, (name, value, special) in enumerate(
            zip(readable(scored.tokens), scored.scores.tolist(), scored.special, strict=True)
        )
        if not special and abs(value) >= LEAST_NAMED
    ]
    # a sentence is more than the sink that it begins with
    named = [(name, value) for name, value, rests in found if by == "sentence" or not rests]
    apart = _rest_in_words([(name, value) for name, value, rests in found if rests], by)
    unit = ", on log-odds," if any("log-odds" in warning for warning in scores.warnings) else ""
    asked = f"By {method.replace('_', '-')}{unit}"
    if not named:
        return f"{noise}{apart}" if noise else f"{asked} no {by} of the text matters.{apart}"
    these, speak = (f"these {by}s", "speak") if len(named) > 1 else (f"this {by}", "speaks")
    summed = " (the sum over its tokens)" if len(scored.tokens) < len(scores.tokens) else ""
    if has_sign(scores) and any(value < 0 for _, value in named):
        speaking = {"for it": [word for word in named if word[1] > 0], "against it": [w for w in named if w[1] < 0]}
        parts = [f"{side}: {_largest(some)}" for side, some in speaking.items() if some]
        return f"{noise}{asked} {these} {speak} {'; '.join(parts)}{summed}."
    verb = "moved" if noise else "carried"
    return f"{noise}{asked} {these} {verb} it most: {_largest(named)}{summed}.{apart}"


def _resting(record: AttentionRecord, by: Level, count: int) -> set[int]:
    """The places, among so many units, of those that hold a sink."""
    if any(record.key_special):  # heads rest on these, which are never named
        return set()
    sinks = set(sinks_of(record))
    groups, _ = units(record.key_tokens, record.key_special, record.key_word_ids, by)
    return {place for place, group in enumerate(groups) if sinks & set(group)} if len(groups) == count else set()


def _rest_in_words(resting: Sequence[tuple[str, float]], by: Level) -> str:
    """What is said of units that heads rest on."""
    if not resting:
        return ""
    some = "; ".join(f"“{name}” {three_digits(value)}" for name, value in resting[:WORDS_NAMED])
    if by == "sentence":
        return f" Heads that have nothing to do rest on a token of {some}: not all of this is about the answer."
    return f" Set aside, because heads rest there that have nothing to do: {some}."


def _largest(words: Sequence[tuple[str, float]]) -> str:
    """The largest of these, with their scores."""
    best = sorted(words, key=lambda word: -abs(word[1]))[:WORDS_NAMED]
    return ", ".join(f"“{name}” {three_digits(value)}" for name, value in best)


def phrases_in_words(found: Sequence[Phrase]) -> str:
    """The phrases, and how much more they do together than the strongest of their words."""
    named = "; ".join(
        f"“{phrase}” {phrase.change:+.2f} (its strongest word alone {phrase.alone:+.2f})".replace("-", "−")
        for phrase in found
    )
    return f"Taken away together, these words change its log-odds: {named}."


def show(console: Console, explanation: Explanation) -> None:
    """Print the prediction, the text once for each method, what must be said of them, and how far they agree."""
    record, comparison = explanation.record, explanation.comparison
    _show_prediction(console, record)
    console.print(f"  {carried_words(comparison, comparison.spokesman, explanation.by, record)}", highlight=False)
    if explanation.phrases:
        console.print(f"  {phrases_in_words(explanation.phrases)}", highlight=False)
    _show_written(console, explanation.written)
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


def _show_written(console: Console, written: Sequence[Written]) -> None:
    """Print each token that an encoder-decoder wrote, with the words of the source it has most of."""
    if written:
        console.print("  What was written, and the words of the source that rollout finds most of in each:")
    column = max((len(one.name) for one in written), default=0)
    for one in written[:TOKENS_WRITTEN]:
        console.print(f"    {one.name:<{column}}  ← {_largest(one.source)}", highlight=False, markup=False)
    if len(written) > TOKENS_WRITTEN:
        console.print(f"    and {len(written) - TOKENS_WRITTEN} more: --json has all.", highlight=False)


def _show_prediction(console: Console, record: AttentionRecord) -> None:
    """Print the text, what the model says, and what is explained where that is something else."""
    text = record.text if isinstance(record.text, str) else " | ".join(record.text or readable(record.key_tokens))
    if record.prediction:
        label, share = record.prediction[0]
        console.print(Text.assemble(text, " → ", (label.strip() or repr(label), "bold"), f" {share:.1%}"))
        explained = explained_words(record)
        if explained:
            console.print(f"  {explained}", highlight=False)
    else:
        console.print(f"{text} → no answer: this model has no head", highlight=False)
