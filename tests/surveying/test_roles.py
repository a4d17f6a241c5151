"""Every role can be reached, and a head that is made to have one is called by it."""

import itertools
import math
import random
from collections.abc import Callable

import pandas as pd
import torch
from torch import Tensor

from attnscope.statistics import (
    ROLE_KINDS,
    ROLE_SYMBOLS,
    STATISTICS,
    Batch,
    Frame,
    LayerAttention,
    Reading,
    RoleExemplars,
    merge_all,
    role_symbol,
    roles,
    with_errors,
)
from attnscope.statistics.roles import (
    BOUND,
    NEEDED,
    ONE_TOKEN,
    POSITIONS,
    REPEATS,
    RESTS,
    SINKS,
    TAG_NAMES,
    UNINFORMATIVE,
)
from attnscope.syntax import Sentence

Attend = Callable[[Reading, int], dict[int, float] | int]
"""What a head looks at from one token: one position, or shares of several."""


def reading(dice: random.Random, place: int, *, repeated: bool = False, framed: bool = False) -> Reading:
    """Twelve to twenty words in a random tree: determiners and subjects before their head, at any distance."""
    size = dice.randrange(12, 20)
    words = [f"w{dice.randrange(10_000)}" for _ in range(size)]
    if repeated:
        words = words[: size // 2] * 2
        size = len(words)
    verb = dice.randrange(size)
    relations = [
        "root" if word == verb else dice.choice(["nsubj", "obj", "det", "advmod", "obl"]) for word in range(size)
    ]
    tags = ["VERB" if word == verb else dice.choice(["NOUN", "DET", "ADJ", "ADV"]) for word in range(size)]
    heads = [-1 if word == verb else verb for word in range(size)]
    for word in range(size):  # what hangs on other words, so that the verb is not the head of all
        if word != verb and relations[word] == "det":
            heads[word] = dice.choice([other for other in range(size) if relations[other] in ("root", "nsubj", "obl")])
    sentence = Sentence(tuple(words), tuple(tags), tuple(heads), tuple(relations))
    edge = [None] if framed else []
    ids = [int(word[1:]) for word in words]
    return Reading(
        place,
        sentence,
        (*[90_001 for _ in edge], *ids, *[90_002 for _ in edge]),
        (*["[CLS]" for _ in edge], *(f" {word}" for word in words), *["[SEP]" for _ in edge]),
        (*[True for _ in edge], *[False] * size, *[True for _ in edge]),
        (*edge, *range(size), *edge),
    )


def attention(one: Reading, attend: Attend) -> Tensor:
    weights = torch.zeros(len(one), len(one))
    for query in range(len(one)):
        looked_at = attend(one, query)
        for key, share in (looked_at if isinstance(looked_at, dict) else {looked_at: 1.0}).items():
            weights[query, key] += share
    assert torch.allclose(weights.sum(-1), torch.ones(len(one)))
    return weights


def padded(readings: list[Reading], heads: list[Attend]) -> Tensor:
    longest = max(len(one) for one in readings)
    weights = torch.zeros(len(readings), len(heads), longest, longest)
    for number, one in enumerate(readings):
        weights[number, :, : len(one), : len(one)] = torch.stack([attention(one, head) for head in heads])
    return weights


def tables_of(readings: list[Reading], heads: list[Attend], *, causal: bool, null: str) -> dict[str, pd.DataFrame]:
    """The tables of one layer with these heads, out of six groups."""
    labels = {
        name: tuple(sorted({label for one in readings for label in getattr(one.sentence, name)}))
        for name in ("tags", "relations")
    }
    frame = Frame(1, len(heads), causal, null, labels["tags"], labels["relations"])
    parts = [readings[start::6] for start in range(6)]

    seen = [LayerAttention(Batch(part, frame), 0, padded(part, heads)) for part in parts]

    def fed(statistic, number: int):
        statistic.update(seen[number])
        return statistic

    tables = {}
    for name in NEEDED:
        kind = STATISTICS[name]
        groups = [fed(kind.empty(frame), number) for number in range(6)]
        if kind.second_pass is not None:
            whole = merge_all(groups)
            groups = [fed(kind.second_pass.after(whole, frame), number) for number in range(6)]
        tables[name] = with_errors(groups, lambda statistic: statistic.result())
    return tables


def spread(one: Reading, query: int, causal: bool) -> dict[int, float]:
    keys = range(query + 1) if causal else range(len(one))
    return {key: 1 / len(keys) for key in keys}


def induction(one: Reading, query: int) -> int:
    earlier = [place for place in range(query) if one.token_ids[place] == one.token_ids[query]]
    return earlier[-1] + 1 if earlier else 0


def repeated(one: Reading, query: int) -> int:
    earlier = [place for place in range(query) if one.token_ids[place] == one.token_ids[query]]
    return earlier[-1] if earlier else 0


def tagged(tag: str) -> Attend:
    def attend(one: Reading, query: int) -> dict[int, float]:
        keys = [key for key in range(len(one)) if one.sentence.tags[key] == tag] or [query]
        return {key: 1 / len(keys) for key in keys}

    return attend


def from_tag(tag: str) -> Attend:
    """Rests on the first token, but from tokens of one part of speech looks anywhere."""
    dice = random.Random(5)
    return lambda one, query: dice.randrange(1, len(one)) if one.sentence.tags[query] == tag else 0


def to_head(relation: str) -> Attend:
    def attend(one: Reading, query: int) -> int | dict[int, float]:
        if one.sentence.relations[query] == relation:
            return one.sentence.heads[query]
        return spread(one, query, causal=False)

    return attend


def to_dependent(relation: str) -> Attend:
    def attend(one: Reading, query: int) -> dict[int, float]:
        found = [
            word
            for word in range(len(one))
            if one.sentence.heads[word] == query and one.sentence.relations[word] == relation
        ]
        return {word: 1 / len(found) for word in found} if found else spread(one, query, causal=False)

    return attend


def fixed(one: Reading, query: int) -> dict[int, float]:
    """The same map for every text, and no pattern: two to five before."""
    keys = [max(query - back, 0) for back in (2, 3, 4, 5)]
    return {key: keys.count(key) / 4 for key in keys}


def wild(one: Reading, query: int) -> int:
    """Anything, by what the token is."""
    return one.token_ids[query] % len(one)


def named(heads: dict[str, Attend], **options) -> None:
    """Each head has the role it was made for."""
    dice = random.Random(3)
    more = {name: options.pop(name) for name in ("repeated", "framed") if name in options}
    readings = [reading(dice, place, **more) for place in range(60)]
    table = roles(tables_of(readings, list(heads.values()), **options))
    assert dict(zip(heads, table["role"], strict=True)) == {role: role for role in heads}
    assert len(table) == len(heads)
    assert table[["layer", "head"]].drop_duplicates().shape[0] == len(heads)
    assert table["value"].between(0, 1 + 1e-6).all()
    assert table["evidence"].str.fullmatch(r"[A-Z0-9].*\.").all()
    assert not any(row.role in row.also.split(", ") for row in table.itertuples())


def test_roles_in_a_causal_model() -> None:
    named(
        {
            "previous token": lambda one, query: max(query - 1, 0),
            "same token": lambda one, query: query,
            "first token (sink)": lambda one, query: 0,
            "broad": lambda one, query: spread(one, query, causal=True),
        },
        causal=True,
        null="first",
    )


def test_roles_on_a_sequence_that_is_repeated() -> None:
    named(
        {
            "induction (what followed last time)": induction,
            "repeated token": repeated,
            "previous token": lambda one, query: max(query - 1, 0),
        },
        causal=True,
        null="first",
        repeated=True,
    )


def test_roles_in_a_bidirectional_model() -> None:
    named(
        {
            "next token": lambda one, query: min(query + 1, len(one) - 1),
            "previous token": lambda one, query: max(query - 1, 0),
            "to verbs": tagged("VERB"),
            "to nouns": tagged("NOUN"),
            "from adverbs": from_tag("ADV"),
            "det → its head": to_head("det"),
            "head → its obl": to_dependent("obl"),
            "broad": lambda one, query: spread(one, query, causal=False),
            "bound to position": fixed,
            "bound to content": wild,
        },
        causal=False,
        null="first",
    )


def test_roles_between_special_tokens() -> None:
    named(
        {
            "special tokens (sink)": lambda one, query: len(one) - 1 if query % 2 else 0,
            "first token (sink)": lambda one, query: 0,
            "previous token": lambda one, query: max(query - 1, 0),
        },
        causal=False,
        null="special",
        framed=True,
    )


def partly(share: float, rest: Attend) -> Attend:
    """A share goes to the two special tokens, the rest elsewhere."""

    def attend(one: Reading, query: int) -> dict[int, float]:
        found = rest(one, query)
        shares = found if isinstance(found, dict) else {found: 1.0}
        ends = {0: share / 2, len(one) - 1: share / 2}
        return {key: ends.get(key, 0) + (1 - share) * shares.get(key, 0) for key in {*ends, *shares}}

    return attend


def test_a_head_with_most_of_its_attention_on_special_tokens_is_not_called_broad() -> None:
    dice = random.Random(12)
    readings = [reading(dice, place, framed=True) for place in range(60)]

    def inside(one: Reading, query: int) -> dict[int, float]:
        return {key: 1 / (len(one) - 2) for key in range(1, len(one) - 1)}

    heads = [partly(share, inside) for share in (0.79, 0.3)] + [partly(0.6, lambda one, query: max(query - 1, 0))]
    table = roles(tables_of(readings, heads, causal=False, null="special"))
    assert table["role"].tolist() == ["rests on special tokens", "broad", "previous token"]
    assert table["also"].iloc[0].startswith("broad")
    assert table["also"].iloc[2].startswith("rests on special tokens")
    assert table["evidence"].iloc[0].startswith("79% of all its attention (")
    assert math.isclose(table["value"].iloc[0], 0.79, abs_tol=1e-6)


def test_a_head_with_most_of_its_attention_on_the_first_token_is_not_called_broad() -> None:
    """Whatever the null rule leaves out."""
    dice = random.Random(14)
    readings = [reading(dice, place) for place in range(60)]

    def mostly_first(one: Reading, query: int) -> dict[int, float]:
        return {key: 0.75 * (key == 0) + 0.25 * share for key, share in spread(one, query, causal=True).items()}

    for null in ("first", "none"):
        table = roles(tables_of(readings, [mostly_first], causal=True, null=null))
        assert table["role"].tolist() == ["rests on the first token"], null


def every_name() -> set[str]:
    """All that `roles` can call a head on English: by the labels of both kinds of parsers that are read."""
    names = {*POSITIONS.values(), *REPEATS.values(), *SINKS.values(), *RESTS.values(), *BOUND, ONE_TOKEN}
    names |= {"broad", "mixed"}
    names |= {f"{direction} {words}" for direction in ("to", "from") for words in TAG_NAMES.values()}
    universal = """acl acl:relcl advcl advcl:relcl advmod amod appos aux aux:pass case cc cc:preconj ccomp clf compound
        compound:prt conj cop csubj csubj:outer csubj:pass dep det det:predet discourse dislocated expl fixed flat
        flat:foreign goeswith iobj list mark nmod nmod:npmod nmod:poss nmod:tmod nmod:unmarked nsubj nsubj:outer
        nsubj:pass nummod obj obl obl:agent obl:npmod obl:tmod obl:unmarked orphan parataxis punct reparandum root
        vocative xcomp"""
    spacy = "acomp agent attr dative meta neg npadvmod oprd pcomp pobj prep quantmod"
    relations = f"{universal} {spacy}".split()
    return names | {name for one in relations for name in (f"{one} → its head", f"head → its {one}")}


def test_letters_alone_tell_every_role_from_every_other() -> None:
    letters = {role: role_symbol(role).letters for role in every_name() | set(ROLE_SYMBOLS)}
    assert len({text.casefold() for text in letters.values()}) == len(letters)
    assert all(1 <= len(text) <= 2 and text == text.upper() and not text.isspace() for text in letters.values())
    assert every_name() <= set(ROLE_SYMBOLS)


def test_what_says_little_is_grey_in_shades_and_the_rest_is_coloured() -> None:
    def is_grey(colour: str) -> bool:
        return len({colour[1:3], colour[3:5], colour[5:7]}) == 1

    grey = {role for role in every_name() if is_grey(role_symbol(role).colour)}
    assert grey == {*SINKS.values(), *RESTS.values(), "broad", "mixed", ONE_TOKEN, *BOUND}
    shades = {role: int(role_symbol(role).colour[1:3], 16) for role in grey}
    apart = [SINKS["first"], RESTS["first"], ONE_TOKEN, BOUND[0], "broad"]
    assert all(shades[dark] + 24 <= shades[light] for dark, light in itertools.pairwise(apart))
    kinds = list(ROLE_KINDS)
    assert kinds[:2] == [role_symbol(role).kind for role in ("det → its head", "head → its det")]
    assert {role_symbol(role).kind for role in grey} == set(kinds[-5:]) == set(UNINFORMATIVE)
    assert len(set(ROLE_KINDS.values())) == len(kinds)


def test_a_role_that_the_table_does_not_have_is_drawn_too() -> None:
    assert role_symbol("nsubj:caus → its head").letters == "NSC"
    assert role_symbol("head → its nsubj:caus") == ("CSN", ROLE_KINDS["to its dependent"], "to its dependent")
    assert role_symbol("to wh-words")[::2] == ("→WH", "to words")
    assert role_symbol("looks up a name")[::2] == ("LU", "other")
    assert role_symbol("")[::2] == ("", "other")


def test_the_cases_of_a_role_are_pairs_that_it_speaks_of() -> None:
    """The largest weights lie elsewhere: on the first token."""
    dice = random.Random(13)
    readings = [reading(dice, place) for place in range(8)]
    relations = tuple(sorted({name for one in readings for name in one.sentence.relations}))
    frame = Frame(1, 3, False, "none", ("ADJ", "ADV", "DET", "NOUN", "VERB"), relations)

    def mostly_first(one: Reading, query: int) -> dict[int, float]:
        return {key: 0.7 * (key == 0) + 0.3 * share for key, share in spread(one, query, causal=False).items()}

    names = ["det → its head", "to adjectives", "broad"]
    cases = RoleExemplars.after(pd.DataFrame({"layer": 0, "head": [0, 1, 2], "role": names}), frame)
    cases.update(LayerAttention(Batch(readings, frame), 0, padded(readings, [mostly_first] * 3)))
    table = RoleExemplars.table(cases.state())
    assert set(table["head"]) == {0, 1}
    assert table.groupby("head").size().max() == 5
    by_text = {one.sentence.text: one.sentence for one in readings}
    for row in table.itertuples():
        sentence = by_text[row.text]
        if row.head == 0:
            assert (sentence.relations[row.query], sentence.heads[row.query]) == ("det", row.key)
        else:
            assert sentence.tags[row.key] == "ADJ"


def test_punctuation_as_a_sink() -> None:
    dice = random.Random(4)
    readings = []
    for place in range(30):
        one = reading(dice, place)
        readings.append(
            Reading(place, one.sentence, (*one.token_ids[:-1], 7), (*one.tokens[:-1], " ."), one.special, one.words)
        )
    table = roles(tables_of(readings, [lambda one, query: len(one) - 1], causal=False, null="first"))
    assert table["role"].tolist() == ["punctuation (sink)"]


def test_nothing_in_particular_is_mixed() -> None:
    """Half the same map in every text, half anything: neither of the two."""

    def half(one: Reading, query: int) -> dict[int, float]:
        keys = fixed(one, query)
        place = wild(one, query)
        return {key: 0.6 * keys.get(key, 0) + 0.4 * (key == place) for key in {*keys, place}}

    dice = random.Random(6)
    table = roles(tables_of([reading(dice, place) for place in range(60)], [half], causal=False, null="first"))
    assert table["role"].tolist() == ["mixed"]


def test_with_patterns_alone_heads_are_named_too() -> None:
    dice = random.Random(7)
    tables = tables_of([reading(dice, place) for place in range(12)], [fixed, induction], causal=True, null="first")
    table = roles({"patterns": tables["patterns"]})
    assert table["role"].tolist() == ["mixed", "first token (sink)"]  # where nothing is repeated
    assert math.isnan(table["value"].iloc[0])
    assert table["also"].tolist() == ["", ""]


def first_tagged(tag: str, share: float) -> Attend:
    """Gives a share to the first token of a tag that the null rule leaves in, once it has been read."""

    def attend(one: Reading, query: int) -> dict[int, float] | int:
        found = next((key for key in range(1, query + 1) if one.sentence.tags[key] == tag), 0)
        rest = {key: (1 - share) * part for key, part in spread(one, query, causal=True).items()}
        return {**rest, found: rest[found] + share}

    return attend


def tagged_so_far(tag: str) -> Attend:
    def attend(one: Reading, query: int) -> dict[int, float]:
        keys = [key for key in range(query + 1) if one.sentence.tags[key] == tag] or [0]
        return {key: 1 / len(keys) for key in keys}

    return attend


def test_one_token_of_a_part_of_speech_is_not_the_part_of_speech() -> None:
    """What goes to the first determiner alone does not go to determiners."""
    dice = random.Random(10)
    readings = [reading(dice, place) for place in range(60)]
    heads = [first_tagged("DET", 0.8), first_tagged("DET", 0.5), tagged_so_far("DET"), tagged_so_far("VERB")]
    tables = tables_of(readings, heads, causal=True, null="first")
    sink = "one token of each sentence"
    table = roles(tables)
    assert table["role"].tolist() == [sink, sink, "to determiners", "to verbs"]
    assert not table["also"].iloc[:2].str.contains("determiners").any()
    assert (
        table["evidence"].iloc[0].startswith(f"{table['value'].iloc[0]:.0%} of its attention, sinks left out, goes to")
    )
    measured = tables["null_attention"]
    assert table["value"].iloc[0] == measured["one_token"].iloc[0] > 0.6
    assert table["error"].iloc[0] == measured["one_token_error"].iloc[0] > 0
    untagged = roles({name: tables[name] for name in ("patterns", "null_attention")})
    assert untagged["role"].tolist()[:2] == [sink, sink]


def test_few_sentences_are_told() -> None:
    dice = random.Random(11)
    readings = [reading(dice, place) for place in range(70)]
    for count, few in ((6, True), (63, True), (64, False), (70, False)):
        tables = tables_of(readings[:count], [fixed], causal=True, null="first")
        evidence = roles(tables)["evidence"].iloc[0]
        assert evidence.endswith(f"So few sentences ({count}) were read that others may name it otherwise.") == few
    bare = roles({name: tables[name].assign(sentences=3) for name in ("patterns", "null_attention")})
    assert bare["evidence"].tolist() == ["So few sentences (3) were read that others may name it otherwise."]


def test_a_relation_must_beat_what_others_give() -> None:
    """A head that looks at the verb from everywhere follows no relation."""
    dice = random.Random(8)
    readings = [reading(dice, place) for place in range(60)]
    table = roles(tables_of(readings, [tagged("VERB")], causal=False, null="first"))
    assert table["role"].tolist() == ["to verbs"]
    assert "→" not in table["also"].iloc[0]


def test_the_words_for_tags() -> None:
    speech = pd.DataFrame(
        {"layer": 0, "head": [0, 1], "direction": ["to", "from"], "tag": ["PROPN", "own"], "value": [0.7, 0.8]}
    ).assign(error=0.01, chance=0.1, one_token=0.5, one_token_chance=0.5)
    patterns = pd.DataFrame(
        {"layer": 0, "head": [0, 1], "pattern": "previous", "value": 0.1, "error": 0.01, "chance": 0.1}
    )
    table = roles({"patterns": patterns, "part_of_speech": speech})
    assert table["role"].tolist() == ["to proper nouns", "from own"]
    assert table["value"].tolist() == [0.7, 0.8]
    assert math.isclose(table["error"].iloc[0], 0.01)
    assert table["evidence"].iloc[0].startswith("70% of its attention, sinks left out, goes to proper nouns (")
