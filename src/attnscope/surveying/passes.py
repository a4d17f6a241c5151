"""One pass of some statistics over the corpus, shard by shard, on an engine."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from ..capture import InstrumentedModel
from ..engine import Engine
from ..syntax import Corpus, Sentence
from .folding import Fold
from .ledger import Ledger, fingerprint_of
from .shard import Job, ShardWorker


@dataclass(frozen=True)
class Progress:
    """How far a survey is."""

    number: int
    """Which pass over the corpus this is, from 1."""
    passes: int
    texts: int
    """Texts done in this pass; a parser may make several sentences of one."""
    size: int | None
    """Texts in the corpus, where that is known."""
    sentences: int
    tokens: int


Watch = Callable[[Progress], None]
Shard = Sequence[Sentence | str]


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

    def run(self, number: int, job: Job) -> Fold:
        """The merged groups of one pass; shards that the ledger has are not run again."""
        fold = Fold(job.statistics)
        fingerprints: dict[int, str] = {}
        for shard, state in self.engine(
            partial(ShardWorker, self.model, job), self._missing(number, fold, fingerprints)
        ):
            self.ledger.save(number, shard, fingerprints.pop(shard), state)
            fold.offer(shard, self.ledger.recall(number, shard, state))
            self._tell(number, fold)
        return fold

    def _missing(
        self, number: int, fold: Fold, fingerprints: dict[int, str]
    ) -> Iterator[tuple[int, tuple[int, Shard]]]:
        """The shards still to be run; the others are handed to the fold in passing."""
        for shard, items in enumerate(self._shards()):
            fingerprint = fingerprint_of(items)
            saved = self.ledger.saved(number, shard, fingerprint)
            if saved is None:
                fingerprints[shard] = fingerprint
                yield shard, (shard, items)
            else:
                fold.offer(shard, self.ledger.recall(number, shard, saved))
                self._tell(number, fold)

    def _shards(self) -> Iterator[Shard]:
        items = self.corpus.items()
        while shard := list(islice(items, self.shard_size)):
            yield shard

    def _tell(self, number: int, fold: Fold) -> None:
        if self.watch is not None:
            done = min(fold.taken * self.shard_size, self.corpus.size or fold.taken * self.shard_size)
            sentences, tokens = fold.totals["sentences"], fold.totals["tokens"]
            self.watch(Progress(number, self.count, done, self.corpus.size, sentences, tokens))
