"""Slow, obvious versions of every statistic of a survey, written from the equations and from nothing else.

The toolkit is tested against this file, so it shares no code with it: double loops over the query i and the key j of
one sentence after another, in float64. The equations are those of Vig & Belinkov 2019, Analyzing the Structure of
Attention in a Transformer Language Model, section 5.

Every statistic takes a list of examples and the rule for null attention, and returns a table: column name → (key →
figure), with the key (layer, head, *labels). A figure whose denominator is zero is NaN.

The rule for null attention:

- "first": column 0 is dropped; all rows are kept.
- "special": the rows and the columns of special tokens are dropped.
- "none": nothing is dropped.
- a tuple of positions (negative ones count from the end of the sentence): these columns are dropped.

A pair (i, j) exists when the query can see the key: j <= i in a causal model, always in a bidirectional one.
It is kept when it exists, its row is kept and its column is kept.
"""

import math
import unicodedata
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

import numpy as np

Null = str | tuple[int, ...]
Pair = tuple[int, int]
Label = tuple[Hashable, ...]
Key = tuple[Hashable, ...]
Table = dict[str, dict[Key, float]]

DIRECTIONS = ("dependent_to_head", "head_to_dependent", "either")
ANY = "any"
FURTHEST_OFFSET = 10
MOST_NULL_OF_A_ROW = 0.9


@dataclass(frozen=True)
class Example:
    """One sentence, without padding, and the attention of a model on it."""

    weights: np.ndarray  # [layer, head, query, key], float64
    token_ids: list[int]
    tokens: list[str]  # as a reader sees them: no marks of the tokenizer
    special: list[bool]
    words: list[int | None]  # the word of each token; None for special ones
    tags: list[str] | None  # per word
    heads: list[int] | None  # per word: the index of its head word, -1 for a root
    relations: list[str] | None  # per word: its relation to its head
    causal: bool


# ---- which pairs count


def dropped_columns(example: Example, null: Null) -> set[int]:
    """The keys that the rule for null attention drops."""
    length = len(example.token_ids)
    if null == "none":
        return set()
    if null == "first":
        return {0}
    if null == "special":
        return {j for j in range(length) if example.special[j]}
    return {position if position >= 0 else length + position for position in null}


def dropped_rows(example: Example, null: Null) -> set[int]:
    """The queries that the rule for null attention drops: special ones, under "special" alone."""
    if null == "special":
        return {i for i in range(len(example.token_ids)) if example.special[i]}
    return set()


def existing_pairs(example: Example) -> list[Pair]:
    """Every (query, key) that the model's mask allows: the sums over i and j of Eq. 3 to 7."""
    length = len(example.token_ids)
    return [(i, j) for i in range(length) for j in range(length) if j <= i or not example.causal]


def kept_pairs(example: Example, null: Null) -> list[Pair]:
    """Every existing pair whose row and column are both kept (section 5.2.3)."""
    rows, columns = dropped_rows(example, null), dropped_columns(example, null)
    return [(i, j) for i, j in existing_pairs(example) if i not in rows and j not in columns]


def layers_and_heads(examples: list[Example]) -> list[tuple[int, int]]:
    """Every (layer, head) of the model; all examples come from one model."""
    layers, heads = examples[0].weights.shape[:2]
    return [(layer, head) for layer in range(layers) for head in range(heads)]


def ratio(numerator: float, denominator: float) -> float:
    """A quotient; NaN where the denominator is zero."""
    return float(numerator) / float(denominator) if denominator != 0 else math.nan


def shares(
    examples: list[Example],
    labels: Iterable[Label],
    pairs_of: Callable[[Example], list[Pair]],
    labels_of: Callable[[Example, int, int], set[Label]],
) -> Table:
    """The form that Eq. 3 and Eq. 4 share, for every label: labelled weight / all weight, each summed over the corpus.

    Beside it the chance: the same with a weight of 1 for every pair.
    """
    labels = list(labels)
    table: Table = {"value": {}, "chance": {}}
    for layer, head in layers_and_heads(examples):
        weight, pairs = 0.0, 0
        labelled_weight = dict.fromkeys(labels, 0.0)
        labelled_pairs = dict.fromkeys(labels, 0)
        for example in examples:
            for i, j in pairs_of(example):
                weight += example.weights[layer, head, i, j]
                pairs += 1
                for label in labels_of(example, i, j):
                    labelled_weight[label] += example.weights[layer, head, i, j]
                    labelled_pairs[label] += 1
        for label in labels:
            table["value"][layer, head, *label] = ratio(labelled_weight[label], weight)
            table["chance"][layer, head, *label] = ratio(labelled_pairs[label], pairs)
    return table


# ---- syntax of tokens


def of_word(example: Example, position: int, of_words: list[str]) -> str | None:
    """What a token inherits from its word (footnote 6: every piece takes it); None for a special token."""
    word = example.words[position]
    return None if word is None else of_words[word]


def labels_in_use(examples: list[Example], field: str) -> list[str]:
    """Every tag or relation that some token of the corpus has, in alphabetical order."""
    found = {
        of_word(example, position, getattr(example, field))
        for example in examples
        for position in range(len(example.token_ids))
    }
    return sorted(found - {None})


def link(example: Example, i: int, j: int) -> dict[str, str]:
    """The function dep of Eq. 4: direction → relation for query i and key j; empty if they are not linked."""
    i_word, j_word = example.words[i], example.words[j]
    links: dict[str, str] = {}
    if i_word is None or j_word is None or i_word == j_word:
        return links
    if example.heads[i_word] == j_word:
        links["dependent_to_head"] = example.relations[i_word]
    if example.heads[j_word] == i_word:
        links["head_to_dependent"] = example.relations[j_word]
    return links


def link_labels(example: Example, i: int, j: int) -> set[Label]:
    """Every (direction, relation) that the pair counts for, with "either" and "any" among them."""
    labels: set[Label] = set()
    for direction, relation in link(example, i, j).items():
        labels |= {(direction, relation), (direction, ANY), ("either", relation), ("either", ANY)}
    return labels


# ---- the statistics


def part_of_speech(examples: list[Example], null: Null) -> Table:
    """Eq. 3: the share of attention to ("to") or from ("from") tokens of each tag. Keys: layer, head, direction, tag.

    Columns: value, chance; one_token (of that attention, the share of one token of each sentence) and one_token_chance
    (the same if the tokens of a tag had alike for each of their pairs).
    """

    def labels_of(example: Example, i: int, j: int) -> set[Label]:
        candidates = {("from", of_word(example, i, example.tags)), ("to", of_word(example, j, example.tags))}
        return {(direction, tag) for direction, tag in candidates if tag is not None}

    labels = [(direction, tag) for direction in ("to", "from") for tag in labels_in_use(examples, "tags")]
    table = shares(examples, labels, lambda example: kept_pairs(example, null), labels_of)
    table["one_token"], table["one_token_chance"] = {}, {}
    for layer, head in layers_and_heads(examples):
        for direction, tag in labels:
            share, chance = one_token_of_a_tag(examples, null, layer, head, direction, tag)
            table["one_token"][layer, head, direction, tag] = share
            table["one_token_chance"][layer, head, direction, tag] = chance
    return table


def one_token_of_a_tag(
    examples: list[Example], null: Null, layer: int, head: int, direction: str, tag: str
) -> tuple[float, float]:
    """Of the attention to or from a tag, the share of the token of each sentence that has most; and that by pairs."""
    largest, largest_by_chance, everything = 0.0, 0.0, 0.0
    for example in examples:
        length = len(example.token_ids)
        weight, pairs = [0.0] * length, [0] * length
        for i, j in kept_pairs(example, null):
            position = j if direction == "to" else i
            if of_word(example, position, example.tags) == tag:
                weight[position] += float(example.weights[layer, head, i, j])
                pairs[position] += 1
        everything += sum(weight)
        largest += max(weight)
        if sum(pairs) > 0:
            largest_by_chance += sum(weight) * max(pairs) / sum(pairs)
    return ratio(largest, everything), ratio(largest_by_chance, everything)


def dependency_type(examples: list[Example], null: Null) -> Table:
    """Eq. 3 with the attended token's own relation in place of its tag (Fig. 9). Keys: layer, head, relation.

    Columns: value, chance.
    """

    def labels_of(example: Example, i: int, j: int) -> set[Label]:
        relation = of_word(example, j, example.relations)
        return set() if relation is None else {(relation,)}

    labels = [(relation,) for relation in labels_in_use(examples, "relations")]
    return shares(examples, labels, lambda example: kept_pairs(example, null), labels_of)


def dependency_alignment(examples: list[Example], null: Null) -> Table:
    """Eq. 4: the share of attention between linked tokens. Keys: layer, head, direction, relation (or "any").

    Columns: value, chance; best_offset and offset_value (what a head that always looks there would get); focus (the
    share that follows the link, of the attention of tokens that have one); focus_offset and focus_offset_value.
    """
    relations = [ANY, *labels_in_use(examples, "relations")]
    labels = [(direction, relation) for direction in DIRECTIONS for relation in relations]
    table = shares(examples, labels, lambda example: kept_pairs(example, null), link_labels)
    for column in ("best_offset", "offset_value", "focus", "focus_offset", "focus_offset_value"):
        table[column] = {}
    links = [{(i, j): link_labels(example, i, j) for i, j in kept_pairs(example, null)} for example in examples]
    for label in labels:
        linked = [{pair for pair, labels_of_pair in of_one.items() if label in labels_of_pair} for of_one in links]
        kept = [set(of_one) for of_one in links]
        offset, offset_value = best_offset(offset_values(linked, kept))
        focus_offset, focus_offset_value = best_offset(focus_offset_values(linked, examples[0].causal))
        for layer, head in layers_and_heads(examples):
            key = (layer, head, *label)
            table["best_offset"][key] = offset
            table["offset_value"][key] = offset_value
            table["focus"][key] = focus(examples, linked, kept, layer, head)
            table["focus_offset"][key] = focus_offset
            table["focus_offset_value"][key] = focus_offset_value
    return table


def best_offset(values: dict[int, float]) -> tuple[float, float]:
    """The offset with the largest value, and that value. Ties go to the nearest, then to the one before the query."""
    if not values:
        return math.nan, math.nan
    best = max(values.values())
    ties = [d for d in values if values[d] == best]
    nearest = min(abs(d) for d in ties)
    return (-nearest if -nearest in ties else nearest), best


def offset_values(linked: list[set[Pair]], kept: list[set[Pair]]) -> dict[int, float]:
    """Eq. 4 of a head that always looks at i + d: for each d that has a kept pair, the share of them that are linked.

    Both lists hold the pairs of one example after another. An offset reaches 10 tokens and is never 0.
    """
    values: dict[int, float] = {}
    for d in range(-FURTHEST_OFFSET, FURTHEST_OFFSET + 1):
        pairs = sum(j - i == d for pairs_of_one in kept for i, j in pairs_of_one)
        linked_pairs = sum(j - i == d for pairs_of_one in linked for i, j in pairs_of_one)
        if d != 0 and pairs > 0:
            values[d] = linked_pairs / pairs
    return values


def focus_offset_values(linked: list[set[Pair]], causal: bool) -> dict[int, float]:
    """For each offset, the share of the queries with a link that find it there; empty if no query has one."""
    queries = sum(len({i for i, _ in pairs_of_one}) for pairs_of_one in linked)
    values: dict[int, float] = {}
    for d in range(-FURTHEST_OFFSET, FURTHEST_OFFSET + 1):
        found = sum(j - i == d for pairs_of_one in linked for i, j in pairs_of_one)
        if d != 0 and (d < 0 or not causal) and queries > 0:
            values[d] = found / queries
    return values


def focus(examples: list[Example], linked: list[set[Pair]], kept: list[set[Pair]], layer: int, head: int) -> float:
    """Eq. 4 over the queries that have a link: their linked weight / all their kept weight."""
    linked_weight, weight = 0.0, 0.0
    for example, linked_of_one, kept_of_one in zip(examples, linked, kept, strict=True):
        queries = {i for i, _ in linked_of_one}
        for i, j in sorted(kept_of_one):
            if i in queries:
                weight += example.weights[layer, head, i, j]
                if (i, j) in linked_of_one:
                    linked_weight += example.weights[layer, head, i, j]
    return ratio(linked_weight, weight)


def distance(examples: list[Example], null: Null) -> Table:
    """Eq. 6: the mean distance |i - j|, weighted by attention; `signed` is the mean of i - j. Keys: layer, head.

    Columns: value, signed.
    """
    table: Table = {"value": {}, "signed": {}}
    for layer, head in layers_and_heads(examples):
        absolute, signed, everything = 0.0, 0.0, 0.0
        for example in examples:
            for i, j in kept_pairs(example, null):
                weight = example.weights[layer, head, i, j]
                absolute += weight * abs(i - j)
                signed += weight * (i - j)
                everything += weight
        table["value"][layer, head] = ratio(absolute, everything)
        table["signed"][layer, head] = ratio(signed, everything)
    return table


def entropy(examples: list[Example], null: Null) -> Table:
    """Eq. 7 with footnote 4: the mean entropy of the rows, in nats. Keys: layer, head.

    The kept weights of a row are renormalised; a row with more than .9 of its mass on null columns, or with no kept
    mass, is left out. Columns: value, rows (counted), rows_share (of the kept rows).
    """
    table: Table = {"value": {}, "rows": {}, "rows_share": {}}
    for layer, head in layers_and_heads(examples):
        entropies: list[float] = []
        kept_rows = 0
        for example in examples:
            for i in range(len(example.token_ids)):
                if i not in dropped_rows(example, null):
                    kept_rows += 1
                    entropies += entropy_of_row(example, null, layer, head, i)
        table["value"][layer, head] = ratio(sum(entropies), len(entropies))
        table["rows"][layer, head] = len(entropies)
        table["rows_share"][layer, head] = ratio(len(entropies), kept_rows)
    return table


def entropy_of_row(example: Example, null: Null, layer: int, head: int, i: int) -> list[float]:
    """Eq. 7 for one kept query, its kept weights renormalised; an empty list if the row is left out."""
    existing, kept = [], []
    for j in range(len(example.token_ids)):
        if j <= i or not example.causal:
            weight = float(example.weights[layer, head, i, j])
            existing.append(weight)
            if j not in dropped_columns(example, null):
                kept.append(weight)
    mass = sum(kept)
    if mass == 0 or (sum(existing) - mass) / sum(existing) > MOST_NULL_OF_A_ROW:
        return []
    return [-sum(weight / mass * math.log(weight / mass) for weight in kept if weight > 0)]


def variability(examples: list[Example], null: Null, first: int = 10) -> Table:
    """Eq. 5 with footnote 3: the mean absolute deviation of the first N tokens' weights. Keys: layer, head.

    Only sentences of at least N tokens. Under "special" the N tokens start after the leading special ones, and a
    sentence with a special token among them is left out. Columns: value, sentences.
    """
    eligible = [example for example in examples if has_block(example, null, first)]
    table: Table = {"value": {}, "sentences": {}}
    for layer, head in layers_and_heads(examples):
        blocks = [block(example, null, first, layer, head) for example in eligible]
        deviation, everything = 0.0, 0.0
        for i in range(first):
            for j in range(first):
                mean = ratio(sum(weights[i][j] for weights in blocks), len(blocks))
                for weights in blocks:
                    deviation += abs(weights[i][j] - mean)
                    everything += weights[i][j]
        table["value"][layer, head] = ratio(deviation, 2 * everything)
        table["sentences"][layer, head] = len(eligible)
    return table


def block_start(example: Example, null: Null) -> int:
    """Where the first N tokens start: after the leading special ones under "special", else at 0."""
    start = 0
    while null == "special" and start < len(example.special) and example.special[start]:
        start += 1
    return start


def has_block(example: Example, null: Null, first: int) -> bool:
    """Whether the sentence is long enough for Eq. 5."""
    start = block_start(example, null)
    flags = example.special[start : start + first]
    return len(flags) == first and not (null == "special" and any(flags))


def block(example: Example, null: Null, first: int, layer: int, head: int) -> list[list[float]]:
    """The weights among the first N tokens, [query][key]; a pair that is not kept has weight 0."""
    start = block_start(example, null)
    kept = set(kept_pairs(example, null))
    return [
        [float(example.weights[layer, head, i, j]) if (i, j) in kept else 0.0 for j in range(start, start + first)]
        for i in range(start, start + first)
    ]


def null_attention(examples: list[Example], null: Null) -> Table:
    """Fig. 5: the share of the weight of all rows that goes to null columns; under "none", to column 0.

    Keys: layer, head. Columns: value; one_token (of the kept weight, the share of one column of each sentence),
    one_token_chance (the same if every row shared its kept weight alike over its kept columns), sentences.
    """
    table: Table = {"value": {}, "one_token": {}, "one_token_chance": {}, "sentences": {}}
    for layer, head in layers_and_heads(examples):
        to_null, everything = 0.0, 0.0
        for example in examples:
            columns = dropped_columns(example, "first" if null == "none" else null)
            for i, j in existing_pairs(example):
                everything += example.weights[layer, head, i, j]
                if j in columns:
                    to_null += example.weights[layer, head, i, j]
        table["value"][layer, head] = ratio(to_null, everything)
        share, chance = one_token(examples, null, layer, head)
        table["one_token"][layer, head], table["one_token_chance"][layer, head] = share, chance
        table["sentences"][layer, head] = len(examples)
    return table


def one_token(examples: list[Example], null: Null, layer: int, head: int) -> tuple[float, float]:
    """Of the kept weight, the share of the column of each sentence that gets most; and that if rows share alike."""
    most, most_by_chance, everything = 0.0, 0.0, 0.0
    for example in examples:
        received, by_chance = [0.0] * len(example.token_ids), [0.0] * len(example.token_ids)
        for i in range(len(example.token_ids)):
            columns = [j for row, j in kept_pairs(example, null) if row == i]
            given = sum(float(example.weights[layer, head, i, j]) for j in columns)
            for j in columns:
                received[j] += float(example.weights[layer, head, i, j])
                by_chance[j] += given / len(columns)
            everything += given
        most += max(received)
        most_by_chance += max(by_chance)
    return ratio(most, everything), ratio(most_by_chance, everything)


def patterns(examples: list[Example], null: Null) -> Table:
    """The share of attention on pairs of each pattern. Keys: layer, head, pattern. Columns: value, chance.

    previous, next, same, repeated and induction are shares of the kept weight; first, special and punctuation are
    shares of all weight, whatever the rule for null attention drops.
    """
    of_kept = {"previous": is_previous, "next": is_next, "same": is_same, "repeated": is_repeated}
    of_kept["induction"] = is_induction
    of_all = {"first": is_first, "special": is_special, "punctuation": is_punctuation}
    table: Table = {"value": {}, "chance": {}}
    for tests, pairs_of in ((of_kept, lambda example: kept_pairs(example, null)), (of_all, existing_pairs)):
        part = shares(examples, [(name,) for name in tests], pairs_of, labels_by(tests))
        table["value"] |= part["value"]
        table["chance"] |= part["chance"]
    return table


def labels_by(tests: dict[str, Callable[[Example, int, int], bool]]) -> Callable[[Example, int, int], set[Label]]:
    """Label a pair by every test that it passes."""
    return lambda example, i, j: {(name,) for name, test in tests.items() if test(example, i, j)}


def is_previous(example: Example, i: int, j: int) -> bool:
    """The key is the token before the query."""
    return j == i - 1


def is_next(example: Example, i: int, j: int) -> bool:
    """The key is the token after the query."""
    return j == i + 1


def is_same(example: Example, i: int, j: int) -> bool:
    """The key is the query itself."""
    return j == i


def is_repeated(example: Example, i: int, j: int) -> bool:
    """The key is another occurrence of the query's token."""
    if example.special[i] or example.special[j]:
        return False
    return i != j and example.token_ids[i] == example.token_ids[j]


def is_induction(example: Example, i: int, j: int) -> bool:
    """The key comes right after the last earlier occurrence of the query's token, and is not the query itself."""
    occurrences = [
        position
        for position in range(i)
        if example.token_ids[position] == example.token_ids[i] and not example.special[position]
    ]
    return not example.special[i] and len(occurrences) > 0 and j == max(occurrences) + 1 and j < i


def is_first(example: Example, i: int, j: int) -> bool:
    """The key is the first token."""
    return j == 0


def is_special(example: Example, i: int, j: int) -> bool:
    """The key is a special token."""
    return example.special[j]


def is_punctuation(example: Example, i: int, j: int) -> bool:
    """The key is no special token, and its text is punctuation and nothing else."""
    text = example.tokens[j].strip()
    if example.special[j] or text == "":
        return False
    return all(unicodedata.category(character).startswith("P") for character in text)


def exemplars(examples: list[Example], null: Null, top: int) -> Table:
    """Section 5.4: the sentences with the largest single kept weight. Keys: layer, head, rank (0 is the best).

    Ties go to the smallest query, then the smallest key, then the sentence that comes first. Sentences of the same
    token ids count once. Columns: value, sentence (its index in the list of examples), query, key.
    """
    table: Table = {"value": {}, "sentence": {}, "query": {}, "key": {}}
    for layer, head in layers_and_heads(examples):
        candidates: list[tuple[float, int, int, int]] = []
        for sentence, example in enumerate(examples):
            pairs = kept_pairs(example, null)
            if pairs:
                weight, i, j = largest(example, pairs, layer, head)
                if weight > 0:
                    candidates.append((weight, sentence, i, j))
        candidates.sort(key=lambda candidate: (-candidate[0], candidate[1]))
        seen: list[list[int]] = []
        for weight, sentence, i, j in candidates:
            rank = len(seen)
            if rank == top or examples[sentence].token_ids in seen:
                continue
            seen.append(examples[sentence].token_ids)
            table["value"][layer, head, rank] = weight
            table["sentence"][layer, head, rank] = sentence
            table["query"][layer, head, rank] = i
            table["key"][layer, head, rank] = j
    return table


def largest(example: Example, pairs: list[Pair], layer: int, head: int) -> tuple[float, int, int]:
    """The largest weight among the pairs, and where it stands: the smallest query, then the smallest key."""
    best = max(float(example.weights[layer, head, i, j]) for i, j in pairs)
    i, j = min((i, j) for i, j in pairs if example.weights[layer, head, i, j] == best)
    return best, i, j


def dependency_by_distance(examples: list[Example], null: Null) -> Table:
    """Section 5.3.3: how likely two tokens are linked, by the distance between them. Keys: (distance,).

    An unordered pair counts once, as the later token i and the earlier token j, if query i and key j are kept.
    Columns: value, pairs, linked.
    """
    table: Table = {"value": {}, "pairs": {}, "linked": {}}
    for example in examples:
        for i, j in kept_pairs(example, null):
            if i > j:
                key = (i - j,)
                table["pairs"][key] = table["pairs"].get(key, 0) + 1
                table["linked"][key] = table["linked"].get(key, 0) + (len(link(example, i, j)) > 0)
    for key, pairs in table["pairs"].items():
        table["value"][key] = ratio(table["linked"][key], pairs)
    return table
