"""One pass of some statistics over the corpus, shard by shard, on an engine."""

import hashlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from ..capture import InstrumentedModel
from ..engine import Engine
from ..errors import BadInput
from ..progress import CorpusProgress, Watch
from ..syntax import Corpus, Sentence
from .folding import Fold
from .ledger import Ledger, fingerprint_of
from .shard import Job, ShardWorker

Shard = Sequence[Sentence | str]


def shards_of(corpus: Corpus, size: int) -> Iterator[Shard]:
    """The texts of a corpus, some at a time."""
    items = corpus.items()
    while shard := list(islice(items, size)):
        yield shard


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
    ledger: Ledger
    count: int
    watch: Watch | None
    read: Any = field(default_factory=hashlib.sha256)
    """The digest of all that the first pass reads."""
    first: list[str] = field(default_factory=list)
    """The fingerprint of each shard, as the first pass has read it."""

    def run(self, number: int, job: Job) -> Fold:
        """The merged groups of one pass; shards that the ledger has are not run again."""
        fold = Fold(job.statistics)
        fingerprints: dict[int, str] = {}
        results = self.engine(partial(ShardWorker, self.model, job), self._missing(number, fold, fingerprints))
        try:
            for shard, state in results:
                self.ledger.save(number, shard, fingerprints.pop(shard), state)
                fold.offer(shard, self.ledger.recall(number, shard, state))
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
            saved = self.ledger.saved(number, shard, fingerprint)
            if saved is None:
                fingerprints[shard] = fingerprint
                yield shard, (shard, items)
            else:
                fold.offer(shard, self.ledger.recall(number, shard, saved))
                self._tell(number, fold)

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
