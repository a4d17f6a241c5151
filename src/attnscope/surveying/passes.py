"""One pass of some statistics over the corpus, shard by shard, on an engine."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from ..capture import InstrumentedModel, load
from ..capture.verifying import card_of
from ..engine import UNFINISHED, Engine, Store, check_recipe, fingerprint_of
from ..errors import BadInput
from ..numerals import counted
from ..progress import CorpusProgress, Watch
from ..record.attention import Stack
from ..statistics import ROLE_EXEMPLARS, ROLES, Null, RoleExemplars, merge_all, roles, with_errors
from ..syntax import Corpus, Sentence
from .plan import Plan
from .result import Survey
from .shard import Job, ShardWorker
from .storage import CARD

# Shards merged in the order of their numbers, whatever the order in which they are done.


COUNTED = ("sentences", "words", "words_without_token", "tokens")
"""What a shard tells of how much it read."""
GROUPS = 32
"""Shards are dealt to so many groups; standard errors come from leaving out one at a time."""

State = Mapping[str, Any]


@dataclass
class Fold:
    """Takes in the states of shards, each when its turn has come; memory does not grow with their number."""

    kinds: Mapping[str, Any]
    """The class of each statistic."""
    groups: dict[str, list[Any]] = field(default_factory=dict)
    totals: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    sinks: Counter[str] = field(default_factory=Counter)
    """The tokens that heads rest on, where they were looked for."""
    longest: int = 0
    """Tokens of the longest sentence."""
    waiting: dict[int, Callable[[], State]] = field(default_factory=dict)
    taken: int = 0

    def offer(self, number: int, state: Callable[[], State]) -> None:
        """A shard is done; its state is asked for when all before it are merged."""
        self.waiting[number] = state
        while self.taken in self.waiting:
            self._take(self.taken % GROUPS, self.waiting.pop(self.taken)())
            self.taken += 1

    def _take(self, group: int, state: State) -> None:
        if lacking := [name for name in (*COUNTED, "sinks") if name not in state]:
            raise BadInput(
                f"The unfinished survey was begun by another version of attnscope, which did not count"
                f" {', '.join(lacking)}: begin it anew in another folder."
            )
        for name, kind in self.kinds.items():
            statistic = kind.from_state(state["statistics"][name])
            groups = self.groups.setdefault(name, [])
            if group == len(groups):
                groups.append(statistic)
            else:
                groups[group].merge(statistic)
        self.totals.update({name: state[name] for name in COUNTED})
        self.skipped.update(state["skipped"])
        self.sinks.update(state["sinks"])
        self.longest = max(self.longest, state["longest"])


Shard = Sequence[Sentence | str]


def shards_of(corpus: Corpus, size: int) -> Iterator[Shard]:
    """The texts of a corpus, some at a time."""
    items = corpus.items()
    while shard := list(islice(items, size)):
        yield shard


def shard_fingerprint(items: Shard) -> str:
    """Tells the sentences of one shard from any others, by all that a survey reads of them: no fine tags."""

    def plain(item: Sentence | str) -> object:
        if isinstance(item, str):
            return item
        return {name: value for name, value in vars(item).items() if name != "fine_tags"}

    return fingerprint_of(list(map(plain, items)))


def _part(number: int, shard: int) -> str:
    return f"pass-{number}-{shard:06d}"


def corpus_fingerprint(corpus: Corpus, shard_size: int) -> str:
    """Tells what a corpus holds now from what it held; it is read for this."""
    digest = hashlib.sha256()
    for shard in shards_of(corpus, shard_size):
        digest.update(shard_fingerprint(shard).encode())
    return digest.hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Passes:
    """Everything that the passes of one survey share."""

    corpus: Corpus
    shard_size: int
    model: InstrumentedModel | str
    engine: Engine
    store: Store
    count: int
    watch: Watch | None
    read: Any = field(default_factory=hashlib.sha256)
    """The digest of all that the first pass reads."""
    first: list[str] = field(default_factory=list)
    """The fingerprint of each shard, as the first pass has read it."""

    def run(self, number: int, job: Job) -> Fold:
        """The merged groups of one pass; shards that the store has are not run again."""
        fold = Fold(job.statistics)
        fingerprints: dict[int, str] = {}
        results = self.engine(partial(ShardWorker, self.model, job), self._missing(number, fold, fingerprints))
        try:
            for shard, state in results:
                fingerprint = fingerprints.pop(shard)
                self.store.keep(_part(number, shard), state, fingerprint)
                fold.offer(shard, self._recall(number, shard, fingerprint, state))
                self._tell(number, fold)
        finally:
            if isinstance(results, Generator):
                results.close()  # at once, so that no worker goes on behind an error
        return fold

    def _missing(
        self, number: int, fold: Fold, fingerprints: dict[int, str]
    ) -> Iterator[tuple[int, tuple[int, Shard]]]:
        """The shards still to be run; the others are handed to the fold in passing."""
        for shard, items in enumerate(self._shards()):
            fingerprint = shard_fingerprint(items)
            if number == 1:
                self.read.update(fingerprint.encode())
                self.first.append(fingerprint)
            elif self.first[shard : shard + 1] != [fingerprint]:
                raise BadInput(f"{self.corpus.name} gave other sentences when it was read again: give it as a list.")
            else:
                # what the first pass found of the whole corpus is part of what a shard of the second is made of
                fingerprint = hashlib.sha256(f"{self.fingerprint} {fingerprint}".encode()).hexdigest()
            saved = self.store.find(_part(number, shard), fingerprint)
            if saved is None:
                fingerprints[shard] = fingerprint
                yield shard, (shard, items)
            else:
                fold.offer(shard, self._recall(number, shard, fingerprint, saved))
                self._tell(number, fold)

    def _recall(self, number: int, shard: int, fingerprint: str, state: State) -> Callable[[], State]:
        """How to get a shard's state later: from the disk where it is kept, so that it need not wait in memory."""
        if self.store.folder is None:
            return lambda: state
        return partial(self.store.find, _part(number, shard), fingerprint)

    @property
    def fingerprint(self) -> str:
        """Tells the corpus as it was read from any other, like `corpus_fingerprint`."""
        return str(self.read.hexdigest()[:16])

    def _shards(self) -> Iterator[Shard]:
        return shards_of(self.corpus, self.shard_size)

    def _tell(self, number: int, fold: Fold) -> None:
        if self.watch is not None:
            done = min(fold.taken * self.shard_size, self.corpus.size or fold.taken * self.shard_size)
            sentences, tokens = fold.totals["sentences"], fold.totals["tokens"]
            self.watch(CorpusProgress(number, self.count, done, self.corpus.size, sentences, tokens))


# Statistics over a corpus: an engine maps the shards, they are merged in their order, so any engine gives the same.
# The corpus is read again for a statistic that needs a second pass. Memory does not grow with the corpus: states are
# merged as they come, into a fixed number of groups, out of which the standard errors are made.


MOST_SINKS = 20
"""A survey that looks for sinks names so many of them, the most frequent first."""
READ_FOR_CASES = 200
"""Cases of roles are looked for in so many texts, so that they cost little beside the survey."""


def measure_corpus(model: Any, plan: Plan, watch: Watch | None) -> Survey:
    """The survey that is planned, of a loaded model or one by its name or folder."""
    loaded = model if isinstance(model, InstrumentedModel) else load(model)
    loaded.hugging_face  # noqa: B018 - a torch module is refused before anything is read
    null = null_for(loaded, plan.null)
    recipe = {"model": identity(loaded), **plan.recipe(null)}
    if plan.folder is not None and (plan.folder / CARD).exists():
        return _read_finished(plan.folder, recipe, plan)
    job = _job(plan, loaded, null)
    passes = Passes(
        corpus=plan.corpus,
        shard_size=plan.shard_size,
        # elsewhere a model given by name is loaded by name, and one that is at hand travels
        model=model if not plan.is_local and isinstance(model, str) else loaded,
        engine=plan.engine,
        store=Store(plan.unfinished, "survey", recipe),
        count=1 + any(kind.second_pass is not None for kind in job.statistics.values()),
        watch=watch,
    )
    with _nothing_left_behind(passes.store), _threads_restored():
        first, groups = _all_passes(passes, job)
        shape = ShardWorker(loaded, job).shape
    if first.totals["sentences"] == 0:
        passes.store.clear()
        raise BadInput(_nothing_found(first, plan.corpus))
    tables, by_layer = _tables(groups)
    if plan.choice.wants_roles:
        tables[ROLES] = roles(tables)
    if plan.choice.wants_role_exemplars:
        with _threads_restored():
            tables[ROLE_EXEMPLARS] = _cases(loaded, job, plan.corpus, tables[ROLES])
    read = {**first.totals, "longest": first.longest, "skipped": dict(first.skipped)}
    read |= {"warnings": _warnings(null, first.longest), "left_out": plan.choice.left_out}
    if null == "sinks":
        read["sinks"] = dict(first.sinks.most_common(MOST_SINKS))
    read["corpus_fingerprint"] = passes.fingerprint
    # each worker has checked its own copy of the model, with differences of its own
    made = {name: value for name, value in card_of(loaded.model).items() if name != "verified"}
    result = Survey(tables, by_layer, {**made, **recipe, **vars(shape), **read})
    if plan.folder is not None:
        result.save(plan.folder)
        passes.store.clear()
    return result


def _job(plan: Plan, model: InstrumentedModel, null: Null) -> Job:
    return Job(
        statistics=plan.choice.statistics,
        null=null,
        stack=self_attention(model),
        parser=plan.corpus.parser,
        needs=plan.choice.needs,
        tokens_per_batch=plan.tokens_per_batch,
        threads=plan.threads,
    )


def _read_finished(folder: Path, recipe: Mapping[str, Any], plan: Plan) -> Survey:
    """The survey that a folder holds, if it is the one that is asked for."""
    finished = Survey.load(folder)
    check_recipe(folder, "survey", finished.card, recipe)
    # the corpus is read only if nothing else differs
    now = corpus_fingerprint(plan.corpus, plan.shard_size)
    check_recipe(folder, "survey", finished.card, {"corpus_fingerprint": now})
    Store(folder / UNFINISHED, "survey", {}).clear()
    return finished


@contextmanager
def _nothing_left_behind(store: Store) -> Iterator[None]:
    """Where the input turns out bad before any shard is kept, nothing was begun; where some are, they are worth it."""
    try:
        yield
    except BadInput as error:
        if not store.is_empty:
            told = str(error).rstrip(".")
            raise BadInput(
                f"{told}; what was done before is kept, and --resume (resume=True) goes on from it."
            ) from error
        store.clear()
        raise


@contextmanager
def _threads_restored() -> Iterator[None]:
    """Workers set the number of threads; where one runs in this process, the user's own is put back."""
    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _all_passes(passes: Passes, job: Job) -> tuple[Fold, dict[str, list[Any]]]:
    """The first pass, and the groups of each statistic after its last."""
    first = passes.run(1, job)
    again = {name: kind.second_pass for name, kind in job.statistics.items() if kind.second_pass is not None}
    if not again or not first.groups:
        return first, first.groups
    before = {name: merge_all(first.groups[name]) for name in again}
    second = passes.run(2, replace(job, statistics=again, before=before))
    return first, {**first.groups, **second.groups}


def _cases(model: InstrumentedModel, job: Job, corpus: Corpus, roles: Any) -> Any:
    """Cases of each head's role among the first sentences: roles are known only when all has been read."""
    worker = ShardWorker(
        model, replace(job, statistics={ROLE_EXEMPLARS: RoleExemplars}, before={ROLE_EXEMPLARS: roles})
    )
    state = worker((0, list(islice(corpus.items(), READ_FOR_CASES))))
    return RoleExemplars.table(state["statistics"][ROLE_EXEMPLARS])


def _tables(groups: Mapping[str, Sequence[Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    tables = {name: with_errors(of_one, lambda statistic: statistic.result()) for name, of_one in groups.items()}
    by_layer = {name: with_errors(of_one, lambda statistic: statistic.by_layer()) for name, of_one in groups.items()}
    return tables, {name: table for name, table in by_layer.items() if table is not None}


def _warnings(null: Null, longest: int) -> list[str]:
    """What the figures do not tell by themselves: that nothing was left out where no sentence has a token."""
    beyond = [] if isinstance(null, str) else [place for place in null if not -longest <= place < longest]
    if not beyond:
        return []
    where, tokens = ", ".join(map(str, beyond)), counted(longest, "token")
    return [
        f"Null attention at {where} is beyond every sentence, of which the longest has {tokens}: none was left out."
    ]


def _nothing_found(fold: Fold, corpus: Corpus) -> str:
    reasons = ", ".join(f"{reason} ({count})" for reason, count in fold.skipped.most_common(3))
    return f"No sentence of {corpus.name} could be read: {reasons or 'there is none'}."


# The model that is surveyed: who it is, which of its stacks is looked at, and where it rests.


def null_for(model: InstrumentedModel, asked: Null | None) -> Null:
    """What is left out as null attention: what was asked, or what is usual for such a model.

    Causal models rest on their first token, others on their special tokens.
    """
    if asked is None:
        return "first" if self_attention(model) == "decoder" else "special"
    longest = model.reader.longest
    if longest is not None and not isinstance(asked, str):
        beyond = [position for position in asked if not -longest <= position < longest]
        if beyond:
            raise BadInput(
                f"null= leaves out {', '.join(map(str, beyond))}, but the model reads {longest} tokens at most,"
                " counted from 0."
            )
    return asked


def self_attention(model: InstrumentedModel) -> Stack:
    """The stack that is surveyed: the text's attention to itself, in the encoder where there are both."""
    return "decoder" if model.stacks == ("decoder",) else "encoder"


def identity(model: InstrumentedModel) -> dict[str, str]:
    """Tells a model from any other: its name, and a fingerprint of its settings, weights and tokens."""
    settings = model.hugging_face.model.config.to_dict()
    for changing in ("_name_or_path", "transformers_version"):
        settings.pop(changing, None)
    words = sorted(model.tokenizer.get_vocab().items(), key=lambda entry: entry[1])
    digest = hashlib.sha256(json.dumps([settings, words], default=str, sort_keys=True).encode())
    for name, tensor in sorted(model.model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    name = str(model.model.config.name_or_path or type(model.model).__name__)
    return {"name": Path(name).name if Path(name).is_dir() else name, "fingerprint": digest.hexdigest()[:16]}
