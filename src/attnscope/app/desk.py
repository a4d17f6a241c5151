"""What the server knows and can do, without the web: models, texts that were read, views made of them."""

import inspect
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

from transformers import PreTrainedModel

from ..attribution.choosing import every_method
from ..attribution.comparing import REFERENCES
from ..capture import InstrumentedModel
from ..capture.families import size_of
from ..errors import BadInput
from ..evaluation import Trust
from ..explaining import every_stack, record_with_everything
from ..record import AttentionRecord, Text
from ..record.words import Level
from ..report.answer import OUTCOMES_SHOWN, most_trusted, resting_words
from ..views import VIEWS, View
from ..views.flow_scene import FEW, SHORT
from ..views.sides import readout_places
from .asking import answer_view, ask_model, describe_answer_methods, runs_again, writes
from .entry import RICH_TOKENS, Entry, describe_question, headline, need_of
from .turns import Turns, Work

if TYPE_CHECKING:
    from .requests import AnswerRequest

TITLES = {"head": "Heads", "model": "All heads"}
"""Views that are not called by their own name."""
FIRST = ("scores", "head", "model", "flow", "tracing", "neuron")


def _shows_record(view: Callable[..., View]) -> bool:
    """Whether a view needs a record and nothing else."""
    first, *others = inspect.signature(view).parameters.values()
    return first.name == "record" and all(other.default is not other.empty for other in others)


VIEWS_OF_A_RECORD = (*FIRST, *(name for name, view in VIEWS.items() if name not in FIRST and _shows_record(view)))
"""The views of a text, in the order in which they are offered."""


class Gone(BadInput):
    """What is asked for is not kept any more, or never was."""


class TooLong(BadInput):
    """A text that the model cannot read whole; its beginning can be asked for."""


@dataclass(frozen=True)
class MadeView:
    """A view with the name it can be asked for by, and what is to be said beside it."""

    id: str
    view: View
    carried: str | None = None
    warnings: tuple[str, ...] = ()


class Desk:
    """Models by name, what was read lately within `budget` bytes, and the turns in which work is done."""

    def __init__(self, models: Mapping[str, InstrumentedModel], budget: int) -> None:
        self.models = dict(models)
        self.shelf: Shelf[Entry] = Shelf(budget)
        self.model_turns = {name: Turns(name) for name in self.models}
        self.drawing = Turns("Drawing")
        self.opening = Turns("Opening files", most_waiting=2)

    @property
    def turns(self) -> list[Turns]:
        """All turns."""
        return [*self.model_turns.values(), self.drawing, self.opening]

    def describe(self) -> dict[str, Any]:
        """What a client must know first."""
        return {
            "models": [_describe_model(name, model) for name, model in self.models.items()],
            "methods": [
                {"name": name, "needs": need_of(name), "about": _first_sentence(method)}
                for name, method in every_method().items()
            ],
            "answer_methods": describe_answer_methods(),
            "views": [
                {"name": name, "title": TITLES.get(name, name.capitalize()), "about": _first_sentence(VIEWS[name])}
                for name in (*VIEWS_OF_A_RECORD, "answer")
            ],
            "trust": {name: table.verdict().split("\n")[0] for name in self.models if (table := self.trust_in(name))},
        }

    def model_named(self, name: str) -> InstrumentedModel:
        """One of the models that the server was started with."""
        if name not in self.models:
            raise BadInput(f"This server has no model {name!r}: it has {', '.join(self.models)}.")
        return self.models[name]

    def entry(self, name: str) -> Entry:
        """A text that was read, if it is still kept."""
        found = self.shelf.get(name)
        if found is None or found.trust is not None:
            raise Gone("This text is not kept any more: ask for it again.")
        return found

    def trust_in(self, model_name: str | None) -> Trust | None:
        """The trust table of a model, or of records without one, if one was opened and is still kept."""
        found = self.shelf.get(_trust_name(model_name))
        return None if found is None else found.trust

    def keep_trust(self, model_names: Iterable[str | None], table: Trust, size: int) -> None:
        """Keep a trust table of some bytes for these models, within the budget like all that is kept."""
        for name in map(_trust_name, model_names):
            self.shelf.put(name, Entry(name, trust=table, opened_bytes=size))

    # ---- work: blocking, to be run in its turn

    def answer(self, asked: "AnswerRequest", work: Work) -> Entry:
        """Ask the model, unless it was asked the same lately: with a seed it answers the same."""
        model = self.model_named(asked.model)
        name = f"a_{_digest(asked.model_dump())}"
        return self.shelf.get_or_make(name, lambda: ask_model(model, asked.model, name, asked, work, self.shelf.budget))

    def read(
        self,
        model_name: str,
        text: str,
        second: str | None,
        work: Work,
        *,
        target: str | None = None,
        against: str | None = None,
        truncate: bool = False,
    ) -> Entry:
        """Run the model on a text or a pair, unless that was done lately; `truncate` leaves out what it cannot read.

        Explained is `target` and not `against`: each such question is a text of its own, because gradients are of it.
        """
        model = self.model_named(model_name)
        given: Text = text if second is None else (text, second)
        name = f"t_{_digest(model_name, text, second, target, against, truncate)}"

        def make() -> Entry:
            work.on("reading")
            tokens, size = _tokens_and_bytes(model, given, truncate)
            if size > self.shelf.budget:
                raise BadInput(
                    f"This text has {tokens} tokens, and its attention would take {size / 1e6:.0f}"
                    f" MB, more than the {self.shelf.budget / 1e6:.0f} MB that this server keeps: give a shorter text,"
                    " or start it with a larger --memory."
                )
            # an outcome that is not there is to be refused now, not when a method looks for it
            rich = tokens <= RICH_TOKENS or target is not None or against is not None
            record = (
                record_with_everything(model, given, target, truncate, against)
                if rich
                else model.record(given, truncate=truncate)
            )
            kept = record if rich else None
            return Entry(name, record, model_name, model, given, target, against, truncate, rich=kept)

        return self.shelf.get_or_make(name, make)

    def draw(
        self,
        entry: Entry,
        name: str,
        methods: Sequence[str] | None,
        queries: Sequence[int] | None,
        work: Work,
        by: Level = "token",
        drops: str | None = None,
    ) -> MadeView:
        """Make a view, unless it was made before."""
        asked = list(dict.fromkeys(methods if methods is not None else entry.default_methods))
        trust = self.trust_in(entry.model_name)
        trusted = None if trust is None else trust.to_dict()
        made_of = {"scores": [asked, trusted, by], "flow": list(queries or ()), "answer": [asked, drops]}
        key = _digest(name, made_of.get(name))
        comparison = entry.compare(asked, by, work) if name == "scores" else None
        found = () if comparison is None else entry.phrases_for(comparison, by, work)
        if key not in entry.views:
            work.on(f"drawing {TITLES.get(name, name).lower()}")
            view = (
                answer_view(entry, methods or (), drops)
                if name == "answer"
                else self._view(entry, name, comparison, queries, by)
            )
            entry.keep_view(key, view, by)
            self.shelf.put(entry.name, entry)
        made = MadeView(f"{entry.name}.{key}", entry.views[key])
        if comparison is None:
            return made
        warnings = tuple(f"{one.method}: {said}" for one in comparison.scores for said in one.warnings)
        # attention alone rests on sinks: what carried the answer is said where the model was asked, or trust measured
        asked_model = comparison.reference in REFERENCES or trust is not None
        carried = headline(entry, comparison, most_trusted(comparison, trust)[0], found, by) if asked_model else None
        return replace(made, carried=carried, warnings=warnings)

    def _view(self, entry: Entry, name: str, comparison: Any, queries: Sequence[int] | None, by: Level) -> View:
        if name == "survey" and entry.survey is not None:
            view: View = entry.survey.view()
            return view
        if entry.record is None or name not in VIEWS_OF_A_RECORD:
            raise BadInput(f"There is no {name} view here: there is {', '.join(offered_views(entry))}.")
        if name == "scores":
            trust = self.trust_in(entry.model_name)
            # a sentence is too long to be the head of a column
            layout = "text" if by == "sentence" else None
            return VIEWS["scores"](comparison.reference_first, record=entry.record, trust=trust, layout=layout)
        if name == "neuron":
            return VIEWS["neuron"](entry.with_vectors())
        if name == "flow" and len(entry.record.key_tokens) > SHORT:
            # a flow for each token of a long text is waited for from few sources only
            asked = list(queries) if queries else readout_places(entry.record)
            some = asked if len(asked) <= FEW else []
            return VIEWS["flow"](entry.record, queries=some, query=list(queries) if queries else None)
        return VIEWS[name](entry.record)

    def made_view(self, name: str) -> tuple[Entry, View]:
        """A view that was made, if it is still kept."""
        text, _, key = name.partition(".")
        entry = self.entry(text)
        if key not in entry.views:
            raise Gone("This view is not kept any more: ask for it again.")
        return entry, entry.views[key]

    def turns_for(
        self, entry: Entry, name: str, methods: Sequence[str] | None, by: Level = "token", drops: str | None = None
    ) -> Turns:
        """The model's own turns where the model must run, else those of drawing."""
        asked = methods if methods is not None else entry.default_methods
        if name == "answer":
            runs = runs_again(methods or (), drops)
        else:
            runs = entry.needs_model(asked, by) if name == "scores" else name == "neuron" and entry.vectors is None
        return self.model_turns[entry.model_name] if runs and entry.model_name is not None else self.drawing

    def close(self) -> None:
        """End all work."""
        for turns in self.turns:
            turns.close()


def offered_views(entry: Entry) -> dict[str, str | None]:
    """The views of an entry, and of each that cannot be had here why."""
    record = entry.record
    if record is None:
        return {"survey": None}
    crossed = "Layers of cross-attention cannot be joined." if record.stack == "cross" else None
    pooled = "This record holds only the mean over heads." if record.pooled else None
    bare = (
        "This record was saved without queries and keys: take it with queries_and_keys=True."
        if entry.model is None and record.queries is None
        else None
    )
    lacking = {"flow": crossed, "tracing": crossed or pooled, "neuron": pooled or bare}
    return {name: lacking.get(name) for name in VIEWS_OF_A_RECORD}


def describe_entry(entry: Entry) -> dict[str, Any]:
    """What a client is told of an entry."""
    views = [{"name": name, "why_not": why} for name, why in offered_views(entry).items()]
    if entry.record is None:
        return {"id": entry.name, "kind": "survey", "name": entry.model_name, "views": views}
    answer = _answer(entry.record)
    return {
        "id": entry.name,
        "kind": "text",
        "model": entry.model_name,
        "tokens": len(entry.record.key_tokens),
        "views": views,
        "default_methods": entry.default_methods,
        **answer,
        "sentences": [*_cut_words(entry), *answer["sentences"]],
        **describe_question(entry),
    }


def _answer(record: AttentionRecord) -> dict[str, Any]:
    outcomes = [{"label": label, "probability": share} for label, share in record.prediction[:OUTCOMES_SHOWN]]
    more = max(len(record.prediction) - OUTCOMES_SHOWN, 0)
    return {"prediction": outcomes, "more_outcomes": more, "sentences": [resting_words(record)]}


def _cut_words(entry: Entry) -> list[str]:
    """What is said of a text whose end was left out."""
    if not entry.truncate or entry.record is None:
        return []
    read = len(entry.record.key_tokens)
    return [f"Only the first {read} tokens were read: the model reads no more, the rest is left out."]


def _tokens_and_bytes(model: Any, text: Text, truncate: bool) -> tuple[int, int]:
    """How long a text is, and how many bytes its attention will take, as far as the model tells that beforehand."""
    if not isinstance(model.model, PreTrainedModel):
        return len(model.tokens(text)), 0  # a torch module has no configuration that tells its layers and heads
    stack = every_stack(model)
    cost, longest = model.estimate(text, stack=stack), model.reader.longest
    if longest is not None and cost.longest > longest:
        if not truncate:
            raise TooLong(
                f"This text has {cost.longest} tokens and the model reads at most {longest}: shorten it, or have the"
                " rest left out."
            )
        cost = model.estimate(longest, stack=stack)
    return cost.longest, cost.record_bytes


def _describe_model(name: str, model: Any) -> dict[str, Any]:
    if not isinstance(model.model, PreTrainedModel):  # nor pairs, as far as one can know
        examples = examples_for(name, model.task, None)
        return {
            "name": name,
            "task": model.task,
            "writes": False,
            "size": "",
            "longest": None,
            "pairs": False,
            "examples": examples,
        }
    size = size_of(model.model, model.stacks[0])
    return {
        "name": name,
        "task": model.task,
        "writes": writes(model),
        "size": "" if size is None else f"{size[0]} layers × {size[1]} heads",
        "longest": model.reader.longest,
        "pairs": model.stacks[0] != "decoder",
        "examples": examples_for(name, model.task, model.tokenizer.mask_token),
    }


def _first_sentence(thing: object) -> str:
    return (thing.__doc__ or "").strip().split("\n")[0]


def _trust_name(model_name: str | None) -> str:
    """Where the trust table of a model stands: no text is called so."""
    return f"trust {model_name or ''}"


def _digest(*parts: object) -> str:
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:24]


# A few telling sentences, so that a newcomer sees something worth seeing at once.


DEMO = (
    ("the key to the cabinets", None, "The verb agrees with key, and cabinets tries to lead astray."),
    ("the keys to the cabinet", None, "The same with the numbers exchanged."),
    ("the author near the lakes that the pilots admire", None, "Two plurals stand between the subject and its verb."),
    ("the teacher and the doctor", None, "Two singulars make a plural."),
)
BY_TASK = {
    "classifier": (
        ("A film that is never less than gripping.", None, "The negated word says the opposite of the sentence."),
        ("The plot is thin, but the actors save it.", None, "Which half of the sentence decides?"),
    ),
    "masked_lm": (
        ("The doctor told the nurse that [MASK] would be late.", None, "Which person does the pronoun stand for?"),
        ("The keys to the cabinet [MASK] on the table.", None, "Does the model pass over cabinet?"),
    ),
    "causal_lm": (
        ("When Mary and John went to the shop, John gave a drink to", None, "Who gets it? A name must be copied."),
        ("The keys to the cabinet", None, "Is the next word are, whatever stands nearest?"),
        ("one two three four one two three", None, "What follows was there before: look for induction heads."),
    ),
    "encoder": (
        ("She sat on the bank of the river.", None, "Which words tell what kind of bank this is?"),
        ("The trophy does not fit into the suitcase because it is too big.", None, "What does it stand for?"),
    ),
    "encoder_decoder": (
        ("translate English to German: The house is small.", None, "Which source word stands behind each output?"),
    ),
}


def examples_for(name: str, task: str, mask: str | None) -> list[dict[str, Any]]:
    """Texts for a model, each with the reason to look at it; `mask` is how its tokenizer writes the mask."""
    chosen = DEMO if name == "demo" else BY_TASK.get(task, BY_TASK["encoder"])
    written = mask or "[MASK]"
    return [{"text": text.replace("[MASK]", written), "second": second, "why": why} for text, second, why in chosen]


# What was read lately, within a budget of bytes: the least recently used goes first.


@runtime_checkable
class Sized(Protocol):
    """Whatever takes room on a shelf."""

    @property
    def size(self) -> int:
        """Bytes that it takes now."""


Thing = TypeVar("Thing", bound=Sized)


class Shelf(Generic[Thing]):
    """Things by name; more than the budget is never kept, but for the one that was put there last."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._things: OrderedDict[str, Thing] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, name: str) -> Thing | None:
        """What has this name, if it is still there; it is now the most recently used."""
        with self._lock:
            thing = self._things.get(name)
            if thing is not None:
                self._things.move_to_end(name)
            return thing

    def get_or_make(self, name: str, make: Callable[[], Thing]) -> Thing:
        """What has this name, made if it is not there."""
        thing = self.get(name)
        if thing is None:
            thing = make()
            self.put(name, thing)
        return thing

    def put(self, name: str, thing: Thing) -> None:
        """Keep a thing, or measure it again if it is there and has grown; others make room."""
        with self._lock:
            self._things[name] = thing
            self._things.move_to_end(name)
            while len(self._things) > 1 and self.size > self.budget:
                self._things.popitem(last=False)

    @property
    def size(self) -> int:
        """Bytes of all that is kept."""
        with self._lock:
            return sum(thing.size for thing in self._things.values())

    def __len__(self) -> int:
        return len(self._things)
