"""One shard of agreement data: some texts in, their subjects and verbs out, kept on disk until all shards are done."""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...engine import check_recipe, load_checkpoint, save_checkpoint
from ...errors import BadInput
from ...files import written_atomically
from ...syntax import Parser, Sentence, joined
from .frequent_words import HIDDEN, spelled
from .linzen import MarkedVerb
from .sources import Item
from .subject_verb import NOUNS, VERBS, Agreement, agreements

LONGEST = 50
"""Words before the verb: Linzen's sentences are no longer."""
TOO_LONG = f"more than {LONGEST} words stand before the verb"
UNSEEN = "a noun that may decide is hidden as <unk>"

COMMON = {"NNP": "NN", "NNPS": "NNS"}
PRESENT = {number: tag for tag, number in VERBS.items()}

State = dict[str, Any]
"""What a shard gives: counts, and under "found" [words, tags, [[subject, verb, number, attractors], …]] by sentence."""


class Finder:
    """Finds the subjects and verbs of a shard. Made once on each worker; the parser is loaded if something needs it."""

    def __init__(self, parser: str) -> None:
        self.parser = Parser(parser)

    def __call__(self, items: Sequence[Item]) -> State:
        """What the texts of one shard hold."""
        counts: Counter[str] = Counter()
        left_out: Counter[str] = Counter()
        found, sentences = [], 0
        for sentence, marked in self._sentences(items):
            tags = sentence.fine_tags
            if tags is None:
                raise BadInput(f"{sentence.text!r} has no Penn tags: give a treebank with XPOS or features, or text.")
            words = [spelled(word, tag) for word, tag in zip(sentence.words, tags, strict=True)]
            counts.update(words)
            sentences += 1
            pairs = list(_chosen(sentence, words, left_out) if marked is None else [_with_subject(sentence, marked)])
            if pairs:
                entries = [[pair.subject, pair.verb, pair.number, pair.attractors] for pair in pairs]
                found.append([words, list(tags), entries])
        return {"sentences": sentences, "counts": dict(counts), "left_out": dict(left_out), "found": found}

    def _sentences(self, items: Sequence[Item]) -> Iterator[tuple[Sentence, MarkedVerb | None]]:
        texts = [Sentence(item.words) if isinstance(item, MarkedVerb) else item for item in items]
        for item, parsed in zip(items, self.parser.parse(texts), strict=True):
            if isinstance(item, MarkedVerb):
                yield joined(parsed), item  # a marked sentence is one, also where the parser sees two
            else:
                yield from ((sentence, None) for sentence in parsed)


def _chosen(sentence: Sentence, words: Sequence[str], left_out: Counter[str]) -> Iterator[Agreement]:
    for pair in agreements(sentence):
        reason = pair.reason or _unfit(sentence, words, pair)
        if reason is None:
            yield pair
        else:
            left_out[reason] += 1


def _unfit(sentence: Sentence, words: Sequence[str], pair: Agreement) -> str | None:
    if pair.verb > LONGEST:
        return TOO_LONG
    tags = sentence.fine_tags or ()
    between = range(pair.subject, pair.verb)
    return UNSEEN if any(words[place] == HIDDEN and tags[place] in NOUNS for place in between) else None


def _with_subject(sentence: Sentence, marked: MarkedVerb) -> Agreement:
    """The marked verb with the subject that the parse gives it; -1 where that is no noun of the verb's number.

    What is known of such a verb is better than a tagger's guess: that it is in the present tense, and that its subject
    is a common noun, whatever a tagger makes of a rare word in lower case.
    """
    tags = [COMMON.get(tag, tag) for tag in sentence.fine_tags or ()]
    tags[marked.verb] = PRESENT[marked.number]
    told = replace(sentence, fine_tags=tuple(tags))
    found = (pair for pair in agreements(told) if pair.verb == marked.verb and pair.reason is None)
    subject = next((pair.subject for pair in found if pair.number == marked.number), -1)
    return Agreement(subject, marked.verb, marked.number, marked.attractors)


class ShardLedger:
    """The shards that are done, each in a file of its own, so that a kill costs only the one at work."""

    def __init__(self, folder: Path, recipe: Mapping[str, Any]) -> None:
        self.folder = folder
        written = folder / "recipe.json"
        if written.exists():
            check_recipe(folder, "build", json.loads(written.read_text(encoding="utf-8")), recipe)
            return
        with written_atomically(written) as temporary:
            temporary.write_text(json.dumps(dict(recipe), indent=1) + "\n", encoding="utf-8")

    def _path(self, source: int, number: int) -> Path:
        return self.folder / f"{source:03d}-{number:06d}.safetensors"

    def saved(self, source: int, number: int, fingerprint: str) -> State | None:
        """What a shard gave, if it is there and was made of the same texts."""
        path = self._path(source, number)
        if not path.exists():
            return None
        state = load_checkpoint(path)
        if state["fingerprint"] != fingerprint:
            raise BadInput(f"{path} was made of other texts: the source has changed since; choose another --out.")
        return state

    def save(self, source: int, number: int, fingerprint: str, state: State) -> None:
        """Keep what a shard gave."""
        save_checkpoint(self._path(source, number), {**state, "fingerprint": fingerprint})

    def states(self, source: int, count: int) -> Iterator[State]:
        """Yield the shards of a source in order, from the disk."""
        return (load_checkpoint(self._path(source, number)) for number in range(count))

    def close_if_empty(self) -> None:
        """Nothing has been begun, where no shard is there."""
        if next(self.folder.glob("*.safetensors"), None) is None:
            self.close()

    def close(self) -> None:
        """Nothing is unfinished any more."""
        shutil.rmtree(self.folder, ignore_errors=True)


def fingerprint_of(items: Sequence[Item]) -> str:
    """Tells the texts of one shard from any others."""
    plain = [item if isinstance(item, str) else vars(item) for item in items]
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()
