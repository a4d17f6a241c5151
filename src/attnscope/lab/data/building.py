"""Agreement data built from any text: parsed in shards, rare words replaced, nothing twice, nothing of the test set."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from ...engine import engine
from ...errors import BadInput, check_number
from ...progress import CorpusProgress, Watch
from .examples_file import read_words
from .folding import Fold
from .held_out import HeldOut
from .linzen import read_subset
from .shards import Finder, ShardLedger, State, fingerprint_of
from .sources import Item, Source, sources_of, subset_files

SHARD_SIZE = 64
"""Texts in a shard: some seconds of a parser's work."""
VOCABULARY_SIZE = 10_000
PARSER = "en_core_web_sm"


def build_agreement(
    sources: Sequence[str],
    out: str | Path,
    *,
    parser: str = PARSER,
    limit: int | None = None,
    vocabulary_size: int = VOCABULARY_SIZE,
    words: str | Path | None = None,
    data: str | Path | None = None,
    resume: bool = False,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Build a file of agreement examples from texts, and give its card.

    Each source is a CoNLL-U, text or JSON-lines file, a data set by name ("ud_ewt:train", "imdb:train") or, for a test
    set, "agreement": Linzen's subset, whose marked verbs are taken as they are. Words outside the `vocabulary_size`
    most frequent of all that is read become their tag; `words` is the list of another build to use instead, which a
    test set needs. Examples that stand in Linzen's subset are left out of everything else, where the subset is found.

    The file is JSON lines, packed if it ends in .gz; beside it lie its words and its card. Shards are kept beside it
    while it grows, and `resume` goes on from them to the very same file.
    """
    path = Path(out)
    unfinished = path.with_name(f"{path.name}.unfinished")
    _check_place(path, unfinished, resume)
    if not sources:
        raise BadInput("Agreement data is built from at least one file or data set.")
    check_number("vocabulary_size", vocabulary_size, 1)
    opened = [source for said in sources for source in sources_of(said, parser, limit, data)]
    known = None if words is None else read_words(words)
    recipe = {
        "sources": [source.name for source in opened],
        "parser": parser,
        "limit": limit,
        "vocabulary_size": vocabulary_size if known is None else len(known),
        "words_of_another_build": words is not None,
    }
    held_out = _held_out(data)
    ledger = ShardLedger(unfinished, recipe)
    try:
        passes = [_Pass(number, len(opened), source, ledger, watch) for number, source in enumerate(opened)]
        shards = [one.run(parser) for one in passes]
        return Fold(opened, shards, ledger, recipe, held_out).written(path, known)
    except BadInput:
        ledger.close_if_empty()  # who asked for what cannot be done finds nothing written
        raise


def _check_place(path: Path, unfinished: Path, resume: bool) -> None:
    if path.exists():
        raise BadInput(f"{path} is there already: choose another file, or remove it.")
    if unfinished.exists() and not resume:
        raise BadInput(f"{path} has been begun: go on with it (--resume, resume=True), or remove {unfinished}.")


def _held_out(data: str | Path | None) -> HeldOut | None:
    try:
        files = subset_files(data)
    except BadInput:  # it is not here; the card will say so
        return None
    return HeldOut(read_subset(*files))


@dataclass
class _Pass:
    """The way through one source, shard by shard; shards that the ledger has are not parsed again."""

    number: int
    passes: int
    source: Source
    ledger: ShardLedger
    watch: Watch | None
    shards: int = 0
    texts: int = 0
    sentences: int = 0
    tokens: int = 0
    at_work: dict[int, tuple[str, int]] = field(default_factory=dict)
    """The fingerprint and the size of each shard that is being parsed."""

    def run(self, parser: str) -> int:
        """Have every shard in the ledger; the number of them."""
        for shard, state in engine("local")(partial(Finder, parser), self._missing()):
            fingerprint, size = self.at_work.pop(shard)
            self.ledger.save(self.number, shard, fingerprint, state)
            self._tell(state, size)
        return self.shards

    def _missing(self) -> Iterator[tuple[int, list[Item]]]:
        items = self.source.read()
        while shard := list(islice(items, SHARD_SIZE)):
            number, fingerprint = self.shards, fingerprint_of(shard)
            self.shards += 1
            saved = self.ledger.saved(self.number, number, fingerprint)
            if saved is None:
                self.at_work[number] = fingerprint, len(shard)
                yield number, shard
            else:
                self._tell(saved, len(shard))

    def _tell(self, state: State, texts: int) -> None:
        self.texts += texts
        self.sentences += state["sentences"]
        self.tokens += sum(state["counts"].values())
        if self.watch is not None:
            size = self.source.size
            self.watch(CorpusProgress(self.number + 1, self.passes, self.texts, size, self.sentences, self.tokens))
