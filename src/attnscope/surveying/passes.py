"""One pass of some statistics over the corpus, shard by shard, on an engine."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from ..capture import InstrumentedModel
from ..engine import Engine, Store
from ..errors import BadInput
from ..progress import CorpusProgress, Watch
from ..syntax import Corpus, Sentence
from .shard import Job, ShardWorker

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
        if lacking := [name for name in COUNTED if name not in state]:
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
        self.longest = max(self.longest, state["longest"])


Shard = Sequence[Sentence | str]


def shards_of(corpus: Corpus, size: int) -> Iterator[Shard]:
    """The texts of a corpus, some at a time."""
    items = corpus.items()
    while shard := list(islice(items, size)):
        yield shard


def fingerprint_of(items: Shard) -> str:
    """Tells the sentences of one shard from any others, by all that a survey reads of them: no fine tags."""

    def plain(item: Sentence | str) -> object:
        if isinstance(item, str):
            return item
        return {name: value for name, value in vars(item).items() if name != "fine_tags"}

    return hashlib.sha256(json.dumps(list(map(plain, items))).encode()).hexdigest()


def _part(number: int, shard: int) -> str:
    return f"pass-{number}-{shard:06d}"


def corpus_fingerprint(corpus: Corpus, shard_size: int) -> str:
    """Tells what a corpus holds now from what it held; it is read for this."""
    digest = hashlib.sha256()
    for shard in shards_of(corpus, shard_size):
        digest.update(fingerprint_of(shard).encode())
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
            fingerprint = fingerprint_of(items)
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
