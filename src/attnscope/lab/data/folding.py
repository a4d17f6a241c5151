"""All shards of agreement data put together: one vocabulary, each example once, none of the test set, and a card."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...corpora import CORPORA
from ...errors import BadInput
from .agreement import AgreementExample
from .examples_file import card_of, sha256_of, words_of, write_card, write_examples, write_words
from .frequent_words import most_frequent, with_tags_for_rare
from .held_out import HeldOut
from .shards import ShardLedger, State
from .sources import SUBSET, Source

TWICE = "the same words stand before a verb of the same number already"


class Fold:
    """Reads the shards twice, the words of all of them first, and writes the examples as they come."""

    def __init__(
        self,
        sources: Sequence[Source],
        shards: Sequence[int],
        ledger: ShardLedger,
        recipe: Mapping[str, Any],
        held_out: HeldOut | None,
    ) -> None:
        self.sources, self.shards, self.ledger, self.recipe, self.held_out = sources, shards, ledger, recipe, held_out
        self.counts: Counter[str] = Counter()
        self.numbers: Counter[str] = Counter()
        self.attractors: Counter[int] = Counter()
        self.left_out: Counter[str] = Counter()
        self.words_before = self.replaced = 0
        self.seen: set[tuple[str, ...]] = set()

    def written(self, path: Path, known: Sequence[str] | None) -> dict[str, Any]:
        """Write the words, the card and the examples, and give the card. The file of examples gets its name last."""
        told = [self._counted(number, source) for number, source in enumerate(self.sources)]
        kept = most_frequent(self.counts, self.recipe["vocabulary_size"]) if known is None else known
        draft = self.ledger.folder / path.name
        write_examples(draft, self._examples(frozenset(kept), told))
        if not self.numbers:
            self.ledger.close()
            raise BadInput(
                f"There is no present-tense verb with a noun as its subject in {', '.join(self.recipe['sources'])}: "
                "give English text, or a treebank with Penn's tags."
            )
        write_words(words_of(path), kept)
        card = self._card(told, {path.name: sha256_of(draft), words_of(path).name: sha256_of(words_of(path))})
        write_card(card_of(path), card)
        draft.replace(path)
        self.ledger.close()
        return card

    def _counted(self, number: int, source: Source) -> dict[str, Any]:
        """What the card says of a source before there are examples; its words are counted on the way."""
        sentences = words = 0
        for state in self.ledger.states(number, self.shards[number]):
            sentences += state["sentences"]
            words += sum(state["counts"].values())
            self.counts.update(state["counts"])
            self.left_out.update(state["left_out"])
        entry = CORPORA.get(source.name.partition(":")[0])
        origin = {} if entry is None else {"licence": entry.licence, "from": entry.source}
        digests = {file.name: sha256_of(file) for file in source.files}
        return {"name": source.name, **origin, "sha256": digests, "sentences": sentences, "words": words}

    def _examples(self, known: frozenset[str], told: Sequence[dict[str, Any]]) -> Iterator[AgreementExample]:
        for number, source in enumerate(self.sources):
            attractors: Counter[int] = Counter()
            for state in self.ledger.states(number, self.shards[number]):
                for example in self._of_shard(state, source, known):
                    attractors[example.attractors] += 1
                    self.numbers[example.number] += 1
                    yield example
            self.attractors.update(attractors)
            told[number].update(examples=attractors.total(), attractors=_in_order(attractors))

    def _of_shard(self, state: State, source: Source, known: frozenset[str]) -> Iterator[AgreementExample]:
        for words, tags, pairs in state["found"]:
            for subject, verb, number, attractors in pairs:
                before = tuple(sys.intern(word) for word in words[:verb])  # they stay in memory, most of them often
                reason = self._unwanted((number, *before), words, verb, source)
                if reason is not None:
                    self.left_out[reason] += 1
                    continue
                self.words_before += len(before)
                self.replaced += sum(word not in known for word in before)
                shown = with_tags_for_rare(before, tags[:verb], known)
                yield AgreementExample(shown, number, attractors, subject, words[verb])

    def _unwanted(self, key: tuple[str, ...], words: Sequence[str], verb: int, source: Source) -> str | None:
        if source.name == SUBSET:
            return None  # a test set is taken as it was published, all of it
        if self.held_out is not None and (reason := self.held_out.holds(words, verb)):
            return reason
        if key in self.seen:
            return TWICE
        self.seen.add(key)
        return None

    def _card(self, told: Sequence[dict[str, Any]], digests: dict[str, str]) -> dict[str, Any]:
        subset = f"left out of all but {SUBSET} itself, by whole sentences and by the words before the verb"
        if self.held_out is None:
            subset = f"not found ({SUBSET}), so nothing was left out for it"
        return {
            "what": "subject-verb agreement: sentences up to a present-tense verb, after Linzen et al. 2016",
            "recipe": dict(self.recipe),
            "sources": list(told),
            "examples": self.attractors.total(),
            "attractors": _in_order(self.attractors),
            "numbers": dict(sorted(self.numbers.items())),
            "left_out": dict(sorted(self.left_out.items())),
            "linzen_subset": subset,
            "words_before_verbs": self.words_before,
            "of_them_replaced_by_tags": self.replaced,
            "sha256": digests,
        }


def _in_order(attractors: Counter[int]) -> dict[str, int]:
    return {str(count): attractors[count] for count in sorted(attractors)}
