"""The reference itself, on sentences small enough to work out by hand."""

import math

import numpy as np
import pytest

# "the dog barks": the ←det− dog ←nsubj− barks. One layer, one head.
CAUSAL = [[1, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5]]  # all weight 3; without column 0: .5 + .25 + .5 = 1.25
BOTH_WAYS = [[0.5, 0.25, 0.25], [0, 0.5, 0.5], [0.25, 0.25, 0.5]]  # all weight 3


@pytest.fixture
def sentence(reference):
    """Make an example of one layer and one head; a token in brackets is special, one with ## continues a word."""

    def make(weights, text, causal=True, tags=None, heads=None, relations=None):
        tokens = text.split()
        special = [token.startswith("[") for token in tokens]
        words, count = [], 0
        for token in tokens:
            count += not token.startswith(("[", "##"))
            words.append(None if token.startswith("[") else count - 1)
        return reference.Example(
            weights=np.asarray(weights, dtype=np.float64)[None, None],
            token_ids=[sum(256**place * ord(letter) for place, letter in enumerate(token)) for token in tokens],
            tokens=[token.removeprefix("##") for token in tokens],
            special=special,
            words=words,
            tags=tags,
            heads=heads,
            relations=relations,
            causal=causal,
        )

    return make


@pytest.fixture
def dog(sentence):
    """Make "the dog barks" with the weights given."""

    def make(weights, causal):
        return sentence(weights, "the dog barks", causal, ["DET", "NOUN", "VERB"], [1, 2, -1], ["det", "nsubj", "root"])

    return make


@pytest.fixture
def bracketed(sentence):
    """The sentence "[CLS] dogs bark [SEP]" in a bidirectional model: dogs ←nsubj− bark."""
    weights = [
        [0.1, 0.2, 0.3, 0.4],
        [0.5, 0.25, 0.125, 0.125],
        [0.5, 0.25, 0.25, 0],
        [0.7, 0.1, 0.1, 0.1],
    ]  # without the special rows and columns: .25 + .125 + .25 + .25 = .875
    return sentence(weights, "[CLS] dogs bark [SEP]", False, ["NOUN", "VERB"], [1, -1], ["nsubj", "root"])


def plain(words):
    """A flat tree for tests that do not look at it: every word hangs on the first."""
    return ["X"] * words, [-1] + [0] * (words - 1), ["root"] + ["dep"] * (words - 1)


def one_head(column):
    """The figures of layer 0, head 0, by their labels."""
    return {key[2:] if len(key) > 3 else key[2]: figure for key, figure in column.items() if key[:2] == (0, 0)}


def near(figures):
    return pytest.approx(figures, rel=0, abs=1e-12, nan_ok=True)


# ---- which pairs are kept


@pytest.mark.parametrize(
    ("null", "expected"),
    [
        ("none", [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]),
        ("first", [(1, 1), (2, 1), (2, 2)]),  # row 0 has nothing left
        ("special", [(1, 1)]),
        ((0,), [(1, 1), (2, 1), (2, 2)]),
        ((-1,), [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)]),
        ((1, -2), [(0, 0), (1, 0), (2, 0), (2, 2)]),  # both name the middle one
        ((7, -7), [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]),  # neither is in the sentence
    ],
)
def test_kept_pairs_of_a_causal_sentence(reference, sentence, null, expected):
    assert reference.kept_pairs(sentence(CAUSAL, "[BOS] dogs [EOS]"), null) == expected


def test_kept_pairs_of_a_bidirectional_sentence(reference, sentence):
    example = sentence(BOTH_WAYS, "[CLS] dogs [SEP]", causal=False)
    assert len(reference.kept_pairs(example, "none")) == 9
    assert reference.kept_pairs(example, "special") == [(1, 1)]
    assert reference.kept_pairs(example, "first") == [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2)]


# ---- part of speech (Eq. 3)


def test_part_of_speech_of_a_causal_sentence(reference, dog):
    table = reference.part_of_speech([dog(CAUSAL, True)], "first")
    assert one_head(table["value"]) == near(
        {
            ("to", "DET"): 0,
            ("to", "NOUN"): 0.6,  # (.5 + .25) / 1.25
            ("to", "VERB"): 0.4,  # .5 / 1.25
            ("from", "DET"): 0,
            ("from", "NOUN"): 0.4,  # .5 / 1.25
            ("from", "VERB"): 0.6,  # (.25 + .5) / 1.25
        }
    )
    assert one_head(table["chance"]) == near(
        {  # three pairs: (1, 1), (2, 1), (2, 2)
            ("to", "DET"): 0,
            ("to", "NOUN"): 2 / 3,
            ("to", "VERB"): 1 / 3,
            ("from", "DET"): 0,
            ("from", "NOUN"): 1 / 3,
            ("from", "VERB"): 2 / 3,
        }
    )


def test_special_tokens_have_no_tag_but_their_weight_counts_where_it_is_kept(reference, bracketed):
    whole = reference.part_of_speech([bracketed], "none")["value"]
    assert whole[0, 0, "to", "NOUN"] == near(0.2)  # (.2 + .25 + .25 + .1) / 4
    assert whole[0, 0, "from", "VERB"] == near(0.25)  # 1 / 4
    inner = reference.part_of_speech([bracketed], "special")["value"]
    assert inner[0, 0, "to", "NOUN"] == near(4 / 7)  # (.25 + .25) / .875
    assert inner[0, 0, "from", "VERB"] == near(4 / 7)  # (.25 + .25) / .875


def test_the_corpus_is_a_ratio_of_sums(reference, dog):
    # A second sentence whose dog looks at nothing but the dropped column, and whose verb looks at itself alone.
    other = dog([[1, 0, 0], [1, 0, 0], [0, 0, 1]], True)
    table = reference.part_of_speech([dog(CAUSAL, True), other], "first")
    assert table["value"][0, 0, "to", "VERB"] == near(1.5 / 2.25)  # not the mean of .4 and 1
    assert table["chance"][0, 0, "to", "VERB"] == near(1 / 3)


def test_one_token_of_a_tag(reference, sentence, dog):
    # "the a dog": dog gives the first determiner .6 and the second .2.
    weights = [[0, 1, 0], [0.5, 0.5, 0], [0.6, 0.2, 0.2]]
    flat = {"heads": [2, 2, -1], "relations": ["det", "det", "root"]}
    example = sentence(weights, "the a dog", False, ["DET", "DET", "NOUN"], **flat)
    table = reference.part_of_speech([example], (0,))  # only the second is left: .5 + 1 + .2
    assert table["one_token"][0, 0, "to", "DET"] == near(1)
    assert table["one_token_chance"][0, 0, "to", "DET"] == near(1)
    table = reference.part_of_speech([example], "none")
    assert table["one_token"][0, 0, "to", "DET"] == near(1.7 / 2.8)  # 1 + .5 + .2, of .5 + .6 more
    assert table["one_token_chance"][0, 0, "to", "DET"] == near(0.5)  # both have three pairs
    assert table["one_token"][0, 0, "from", "DET"] == near(0.5)  # each row gives 1
    # A causal sentence: the first determiner has three pairs, the second two.
    causal = sentence([[1, 0, 0], [0.5, 0.5, 0], [0.6, 0.2, 0.2]], "the a dog", True, ["DET", "DET", "NOUN"], **flat)
    table = reference.part_of_speech([causal], "none")
    assert table["one_token"][0, 0, "to", "DET"] == near(2.1 / 2.8)
    assert table["one_token_chance"][0, 0, "to", "DET"] == near(0.6)
    # In "the dog barks" the only determiner has all of its .5 + .25 + 1, by chance too.
    table = reference.part_of_speech([causal, dog(CAUSAL, True)], "none")
    assert table["one_token"][0, 0, "to", "DET"] == near((2.1 + 1.75) / (2.8 + 1.75))
    assert table["one_token_chance"][0, 0, "to", "DET"] == near((0.6 * 2.8 + 1.75) / (2.8 + 1.75))
    assert math.isnan(reference.part_of_speech([dog(CAUSAL, True)], "first")["one_token"][0, 0, "to", "DET"])


# ---- dependency type


def test_dependency_type_is_the_relation_of_the_attended_token(reference, dog):
    table = reference.dependency_type([dog(CAUSAL, True)], "first")
    assert one_head(table["value"]) == near({"det": 0, "nsubj": 0.6, "root": 0.4})  # as "to" of DET, NOUN, VERB
    assert one_head(table["chance"]) == near({"det": 0, "nsubj": 2 / 3, "root": 1 / 3})
    table = reference.dependency_type([dog(CAUSAL, True)], "none")
    assert table["value"][0, 0, "det"] == near(1.75 / 3)  # 1 + .5 + .25


# ---- dependency alignment (Eq. 4)


def test_alignment_of_a_causal_sentence(reference, dog):
    # Kept: (1, 1), (2, 1), (2, 2). The one linked pair is barks → dog, (2, 1): head to dependent, nsubj.
    table = reference.dependency_alignment([dog(CAUSAL, True)], "first")
    for direction in ("head_to_dependent", "either"):
        for relation in ("any", "nsubj"):
            key = (0, 0, direction, relation)
            assert table["value"][key] == near(0.2)  # .25 / 1.25
            assert table["chance"][key] == near(1 / 3)
            assert (table["best_offset"][key], table["offset_value"][key]) == (-1, 1)  # (2, 1) is alone at -1
            assert table["focus"][key] == near(1 / 3)  # of row 2: .25 / .75
            assert (table["focus_offset"][key], table["focus_offset_value"][key]) == (-1, 1)
    key = (0, 0, "dependent_to_head", "any")
    assert (table["value"][key], table["chance"][key]) == (0, 0)
    assert (table["best_offset"][key], table["offset_value"][key]) == (-1, 0)
    assert math.isnan(table["focus"][key])  # no query has such a link
    assert math.isnan(table["focus_offset"][key])


def test_alignment_of_a_causal_sentence_with_nothing_dropped(reference, dog):
    # Linked: dog → the (1, 0), det, weight .5; barks → dog (2, 1), nsubj, weight .25.
    table = reference.dependency_alignment([dog(CAUSAL, True)], "none")
    key = (0, 0, "head_to_dependent", "any")
    assert table["value"][key] == near(0.25)  # .75 / 3
    assert table["chance"][key] == near(2 / 6)
    assert table["offset_value"][key] == 1  # both pairs at -1 are linked
    assert table["focus"][key] == near(0.375)  # .75 / (1 + 1)
    key = (0, 0, "head_to_dependent", "det")
    assert table["value"][key] == near(0.5 / 3)
    assert (table["best_offset"][key], table["offset_value"][key]) == (-1, 0.5)  # one of the two pairs at -1
    assert table["focus"][key] == near(0.5)  # row 1 alone
    assert (table["focus_offset"][key], table["focus_offset_value"][key]) == (-1, 1)
    assert table["value"][0, 0, "head_to_dependent", "root"] == 0


def test_alignment_both_ways(reference, dog):
    table = reference.dependency_alignment([dog(BOTH_WAYS, False)], "none")
    value, focus = table["value"], table["focus"]
    assert value[0, 0, "dependent_to_head", "det"] == near(0.25 / 3)  # (0, 1)
    assert value[0, 0, "dependent_to_head", "nsubj"] == near(0.5 / 3)  # (1, 2)
    assert value[0, 0, "head_to_dependent", "det"] == 0  # (1, 0)
    assert value[0, 0, "head_to_dependent", "nsubj"] == near(0.25 / 3)  # (2, 1)
    assert value[0, 0, "either", "det"] == near(0.25 / 3)
    assert value[0, 0, "either", "nsubj"] == near(0.75 / 3)
    assert value[0, 0, "either", "any"] == near(1 / 3)
    assert table["chance"][0, 0, "dependent_to_head", "any"] == near(2 / 9)
    assert table["chance"][0, 0, "either", "any"] == near(4 / 9)
    assert focus[0, 0, "dependent_to_head", "any"] == near(0.375)  # rows 0 and 1: (.25 + .5) / 2
    assert focus[0, 0, "dependent_to_head", "nsubj"] == near(0.5)  # row 1
    assert focus[0, 0, "head_to_dependent", "any"] == near(0.125)  # rows 1 and 2: (0 + .25) / 2
    assert focus[0, 0, "either", "det"] == near(0.125)  # rows 0 and 1: (.25 + 0) / 2
    assert focus[0, 0, "either", "any"] == near(1 / 3)


def test_offsets_both_ways(reference, dog):
    table = reference.dependency_alignment([dog(BOTH_WAYS, False)], "none")

    def best(kind, *label):
        return table[kind][0, 0, *label]

    assert best("best_offset", "dependent_to_head", "any") == 1  # the head follows: (0, 1) and (1, 2), both linked
    assert best("offset_value", "dependent_to_head", "any") == 1
    assert best("best_offset", "head_to_dependent", "any") == -1
    assert best("best_offset", "either", "any") == -1  # +1 is as good: the one before wins
    assert best("offset_value", "either", "nsubj") == 0.5  # of (1, 0) and (2, 1) the second
    assert best("focus_offset", "dependent_to_head", "nsubj") == 1
    assert best("focus_offset_value", "dependent_to_head", "nsubj") == 1
    assert best("focus_offset", "either", "any") == -1  # rows 1 and 2 find a link before them, rows 0 and 1 after
    assert best("focus_offset_value", "either", "any") == near(2 / 3)


def test_a_further_offset_wins_when_it_is_better(reference, sentence):
    # a and b hang on the word two after them: both pairs at +2 are linked. d hangs on c, at -1.
    weights = np.full((4, 4), 0.25)
    example = sentence(weights, "a b c d", False, ["X"] * 4, [2, 3, -1, 2], ["dep", "dep", "root", "conj"])
    table = reference.dependency_alignment([example], "none")
    key = (0, 0, "dependent_to_head", "dep")
    assert (table["best_offset"][key], table["offset_value"][key]) == (2, 1)
    key = (0, 0, "dependent_to_head", "any")  # +2: 2 of 2 pairs; -1: d → c, 1 of 3 pairs
    assert (table["best_offset"][key], table["offset_value"][key]) == (2, 1)
    assert (table["focus_offset"][key], table["focus_offset_value"][key]) == (2, near(2 / 3))  # three words have heads


def test_an_offset_without_pairs_is_no_candidate(reference, dog):
    # Column 2 alone is left, so the offsets are +2, +1 and 0: nothing stands at -1.
    table = reference.dependency_alignment([dog(BOTH_WAYS, False)], (0, 1))
    key = (0, 0, "head_to_dependent", "any")
    assert (table["best_offset"][key], table["offset_value"][key]) == (1, 0)
    assert table["value"][key] == 0
    key = (0, 0, "dependent_to_head", "any")
    assert (table["best_offset"][key], table["offset_value"][key]) == (1, 1)  # dog → barks
    assert table["value"][key] == near(0.4)  # .5 / (.25 + .5 + .5)


@pytest.mark.parametrize(("words", "expected"), [(11, (-10, 1.0)), (12, (-1, 0.0))])
def test_offsets_reach_ten_tokens(reference, sentence, words, expected):
    # The first word hangs on the last one, and there is no other link.
    heads = [words - 1] + [-1] * (words - 1)
    relations = ["far"] + ["root"] * (words - 1)
    weights = np.tri(words) / np.arange(1, words + 1)[:, None]
    example = sentence(weights, " ".join("abcdefghijkl"[:words]), True, ["X"] * words, heads, relations)
    table = reference.dependency_alignment([example], "none")
    key = (0, 0, "head_to_dependent", "far")
    assert (table["best_offset"][key], table["offset_value"][key]) == expected
    assert (table["focus_offset"][key], table["focus_offset_value"][key]) == expected
    assert table["focus"][key] == near(1 / words)


def test_pieces_of_one_word_and_special_tokens_are_never_linked(reference, sentence):
    # [CLS] dog ##s bark: dogs ←nsubj− bark, so bark is linked with both pieces, and they are not with each other.
    example = sentence(np.full((4, 4), 0.25), "[CLS] dog ##s bark", False, ["NOUN", "VERB"], [1, -1], ["nsubj", "root"])
    linked = {(i, j) for i in range(4) for j in range(4) if reference.link(example, i, j)}
    assert linked == {(1, 3), (2, 3), (3, 1), (3, 2)}
    table = reference.dependency_alignment([example], "special")  # nine pairs, four of them linked
    assert table["value"][0, 0, "either", "any"] == near(4 / 9)
    assert table["value"][0, 0, "dependent_to_head", "nsubj"] == near(2 / 9)
    key = (0, 0, "head_to_dependent", "nsubj")
    assert table["focus"][key] == near(2 / 3)  # row 3: two of its three kept weights
    assert table["focus_offset_value"][key] == 1  # at -1 and at -2 alike: one query finds it there
    assert table["focus_offset"][key] == -1


# ---- distance (Eq. 6)


def test_distance_of_a_causal_sentence(reference, dog):
    table = reference.distance([dog(CAUSAL, True)], "first")
    assert table["value"] == near({(0, 0): 0.2})  # .25 * 1 / 1.25
    assert table["signed"] == near({(0, 0): 0.2})
    table = reference.distance([dog(CAUSAL, True)], "none")
    assert table["value"] == near({(0, 0): 1.25 / 3})  # (.5 * 1 + .25 * 2 + .25 * 1) / 3


def test_distance_both_ways(reference, dog):
    table = reference.distance([dog(BOTH_WAYS, False)], "none")
    # Ahead: .25 * 1 + .25 * 2 + .5 * 1 = 1.25; back: 0 * 1 + .25 * 2 + .25 * 1 = .75.
    assert table["value"] == near({(0, 0): 2 / 3})
    assert table["signed"] == near({(0, 0): -0.5 / 3})


# ---- entropy (Eq. 7)


def test_entropy_renormalises_and_leaves_rows_out(reference, sentence):
    weights = [
        [1, 0, 0, 0],  # nothing kept: out
        [0.9, 0.1, 0, 0],  # .9 is not above .9: kept, one weight, entropy 0
        [0.92, 0.04, 0.04, 0],  # above .9: out
        [0.5, 0.25, 0.25, 0],  # renormalised to .5 and .5: ln 2
    ]
    table = reference.entropy([sentence(weights, "a b c d")], "first")
    assert table["value"] == near({(0, 0): math.log(2) / 2})
    assert table["rows"] == {(0, 0): 2}
    assert table["rows_share"] == near({(0, 0): 0.5})


def test_entropy_with_nothing_dropped_counts_every_row(reference, sentence):
    table = reference.entropy([sentence([[1, 0], [0.5, 0.5]], "a b")], "none")
    assert table["value"] == near({(0, 0): math.log(2) / 2})  # 0 and ln 2
    assert table["rows"] == {(0, 0): 2}
    assert table["rows_share"] == {(0, 0): 1}


def test_entropy_without_special_tokens(reference, bracketed):
    # Row 1 keeps .25 and .125: 2/3 and 1/3. Row 2 keeps .25 and .25: ln 2. The special rows are no rows.
    first = -(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3))
    table = reference.entropy([bracketed], "special")
    assert table["value"] == near({(0, 0): (first + math.log(2)) / 2})
    assert table["rows"] == {(0, 0): 2}
    assert table["rows_share"] == {(0, 0): 1}


def test_entropy_of_a_corpus_is_the_mean_over_all_rows(reference, sentence):
    short, long = sentence([[1]], "a"), sentence([[1, 0], [0.5, 0.5]], "a b")
    assert reference.entropy([short, long], "none")["value"] == near({(0, 0): math.log(2) / 3})


# ---- variability (Eq. 5)


def test_identical_sentences_do_not_vary(reference, dog):
    table = reference.variability([dog(CAUSAL, True)] * 3, "none", first=3)
    assert table == {"value": {(0, 0): 0}, "sentences": {(0, 0): 3}}


def test_variability_of_two_sentences(reference, sentence):
    # Weights .5 and .5 against 0 and 1 in row 1: the means are .25 and .75, each of the four deviates by .25.
    pair = [sentence([[1, 0], [0.5, 0.5]], "a b"), sentence([[1, 0], [0, 1]], "a b")]
    assert reference.variability(pair, "none", first=2)["value"] == near({(0, 0): 1 / 8})  # 4 * .25 / (2 * 4)
    # Column 0 dropped: .5 against 1, both .25 from .75.
    assert reference.variability(pair, "first", first=2)["value"] == near({(0, 0): 0.5 / 3})  # .5 / (2 * 1.5)


def test_variability_counts_sentences_that_are_long_enough(reference, sentence):
    ten, nine = np.tri(10) / np.arange(1, 11)[:, None], np.eye(9)
    examples = [sentence(ten, "a b c d e f g h i j"), sentence(nine, "a b c d e f g h i")]
    assert reference.variability(examples, "none")["sentences"] == {(0, 0): 1}
    table = reference.variability(examples[1:], "none")
    assert table["sentences"] == {(0, 0): 0}
    assert math.isnan(table["value"][0, 0])


def test_variability_looks_at_the_first_tokens_alone(reference, sentence):
    # The sentences differ in row 2 and nowhere else.
    first = sentence([[1, 0, 0], [0.5, 0.5, 0], [1, 0, 0]], "a b c")
    second = sentence([[1, 0, 0], [0.5, 0.5, 0], [0, 0, 1]], "a b c")
    assert reference.variability([first, second], "none", first=2)["value"] == {(0, 0): 0}
    assert reference.variability([first, second], "none", first=3)["value"] == near({(0, 0): 2 / 12})


def test_variability_starts_after_leading_special_tokens(reference, sentence, bracketed):
    # The words of `bracketed` give .25 .125 / .25 .25, the other's .75 .125 / .25 .25: (0, 0) deviates by .25 twice.
    other = np.array(bracketed.weights[0, 0])
    other[1] = [0, 0.75, 0.125, 0.125]
    pair = [bracketed, sentence(other, "[CLS] dogs bark [SEP]", causal=False)]
    table = reference.variability(pair, "special", first=2)
    assert table["value"] == near({(0, 0): 0.5 / (2 * (0.875 + 1.375))})
    assert table["sentences"] == {(0, 0): 2}
    assert reference.variability(pair, "special", first=3)["sentences"] == {(0, 0): 0}  # [SEP] would be the third
    assert reference.variability(pair, "none", first=4)["sentences"] == {(0, 0): 2}


# ---- null attention (Fig. 5)


@pytest.mark.parametrize(
    ("null", "expected"),
    [
        ("first", 1.8),  # .1 + .5 + .5 + .7, all rows
        ("none", 1.8),
        ("special", 2.425),  # and .4 + .125 + 0 + .1 of the last
        ((-1,), 0.625),
        ((0, -1), 2.425),
        ((0, -4), 1.8),  # the same column twice
    ],
)
def test_null_attention(reference, bracketed, null, expected):
    assert reference.null_attention([bracketed], null)["value"] == near({(0, 0): expected / 4})


def test_one_token_of_each_sentence(reference, dog, sentence):
    # Kept: row 1 gives dog .5; row 2 gives dog .25 and barks .5. So dog gets .75 of 1.25; alike, .5 + .75 / 2.
    table = reference.null_attention([dog(CAUSAL, True)], "first")
    assert table["one_token"] == near({(0, 0): 0.6})
    assert table["one_token_chance"] == near({(0, 0): 0.7})
    # In a second sentence it is another column, the last one, that gets .5 of .5.
    other = sentence([[1, 0, 0], [1, 0, 0], [0.5, 0, 0.5]], "a b c")
    table = reference.null_attention([dog(CAUSAL, True), other], "first")
    assert table["one_token"] == near({(0, 0): 1.25 / 1.75})
    assert table["one_token_chance"] == near({(0, 0): (0.875 + 0.25) / 1.75})
    assert table["sentences"] == {(0, 0): 2}


def test_one_token_without_special_tokens(reference, bracketed):
    # dogs gets .25 + .25, bark .125 + .25, of .875; rows that share alike give both the same.
    table = reference.null_attention([bracketed], "special")
    assert table["one_token"] == near({(0, 0): 4 / 7})
    assert table["one_token_chance"] == near({(0, 0): 0.5})


def test_one_token_of_nothing_is_not_known(reference, sentence):
    table = reference.null_attention([sentence([[1]], "a")], "first")
    assert math.isnan(table["one_token"][0, 0])
    assert math.isnan(table["one_token_chance"][0, 0])


# ---- patterns


def test_patterns_of_a_causal_sentence(reference, sentence):
    # "a b a": the second a sees its first self at 0, and what followed it at 1.
    table = reference.patterns([sentence(CAUSAL, "a b a")], "none")
    of_all = {"first": 1.75 / 3, "special": 0, "punctuation": 0}
    chance_of_all = {"first": 0.5, "special": 0, "punctuation": 0}
    assert one_head(table["value"]) == near(
        {
            "previous": 0.75 / 3,  # (1, 0) and (2, 1)
            "next": 0,
            "same": 2 / 3,  # 1 + .5 + .5
            "repeated": 0.25 / 3,  # (2, 0)
            "induction": 0.25 / 3,  # (2, 1)
            **of_all,
        }
    )
    assert one_head(table["chance"]) == near(
        {"previous": 1 / 3, "next": 0, "same": 0.5, "repeated": 1 / 6, "induction": 1 / 6, **chance_of_all}
    )
    table = reference.patterns([sentence(CAUSAL, "a b a")], "first")  # kept: .5, .25, .5
    assert one_head(table["value"]) == near(
        {"previous": 0.2, "next": 0, "same": 0.8, "repeated": 0, "induction": 0.2, **of_all}
    )
    assert one_head(table["chance"]) == near(
        {"previous": 1 / 3, "next": 0, "same": 2 / 3, "repeated": 0, "induction": 1 / 3, **chance_of_all}
    )


def test_patterns_both_ways(reference, sentence):
    value = one_head(reference.patterns([sentence(BOTH_WAYS, "a b a", causal=False)], "none")["value"])
    assert value["next"] == near(0.25)  # (0, 1) and (1, 2): .75 / 3
    assert value["previous"] == near(0.25 / 3)  # (1, 0) and (2, 1): 0 + .25
    assert value["repeated"] == near(0.5 / 3)  # (0, 2) and (2, 0)
    assert value["induction"] == near(0.25 / 3)  # (2, 1): the first a has no earlier self, though b follows it


def test_induction_goes_by_the_last_occurrence(reference, sentence):
    example = sentence(np.eye(4), "a a b a")
    pairs = {(i, j) for i in range(4) for j in range(4) if reference.is_induction(example, i, j)}
    assert pairs == {(3, 2)}  # behind the first a stands an a itself; the third follows position 1, not 0


def test_special_tokens_are_neither_repeated_nor_induced(reference, sentence):
    example = sentence(np.eye(4), "[SEP] a [SEP] a", causal=False)
    pairs = [(i, j) for i in range(4) for j in range(4)]
    assert {pair for pair in pairs if reference.is_repeated(example, *pair)} == {(1, 3), (3, 1)}
    assert {pair for pair in pairs if reference.is_induction(example, *pair)} == {(3, 2)}


def test_special_and_punctuation_are_shares_of_all_weight(reference, sentence):
    example = sentence(np.full((4, 4), 0.25), "[CLS] , a [.]", causal=False)
    for null in ("none", "first", "special"):
        table = reference.patterns([example], null)
        for column in ("value", "chance"):
            assert table[column][0, 0, "first"] == near(0.25)
            assert table[column][0, 0, "special"] == near(0.5)
            assert table[column][0, 0, "punctuation"] == near(0.25)


def test_punctuation_is_nothing_but_punctuation(reference, sentence):
    example = sentence(np.eye(8), ", ... a. $ — ## [,] ##?")  # "##" alone is an empty piece here
    assert [reference.is_punctuation(example, 0, j) for j in range(8)] == [
        True,
        True,
        False,
        False,  # a currency sign is a symbol
        True,
        False,
        False,
        True,
    ]


# ---- exemplars (section 5.4)


def test_exemplars_are_ranked_by_their_largest_kept_weight(reference, sentence):
    low = sentence([[1, 0], [0.75, 0.25]], "a b")
    high = sentence([[1, 0], [0.25, 0.75]], "c d")
    table = reference.exemplars([low, high, sentence([[1]], "e")], "first", 5)  # the third has no kept pair
    assert table["value"] == {(0, 0, 0): 0.75, (0, 0, 1): 0.25}
    assert table["sentence"] == {(0, 0, 0): 1, (0, 0, 1): 0}
    assert table["query"] == {(0, 0, 0): 1, (0, 0, 1): 1}
    assert table["key"] == {(0, 0, 0): 1, (0, 0, 1): 1}
    assert reference.exemplars([low, high], "first", 1)["sentence"] == {(0, 0, 0): 1}


def test_ties_go_to_the_smallest_query_then_the_smallest_key_then_the_first_sentence(reference, sentence):
    weights = [[0.2, 0.3, 0.5], [0.5, 0.5, 0], [0, 0.5, 0.5]]
    table = reference.exemplars([sentence(weights, text, causal=False) for text in ("a b c", "d e f")], "none", 2)
    assert table["sentence"] == {(0, 0, 0): 0, (0, 0, 1): 1}
    assert (table["query"][0, 0, 0], table["key"][0, 0, 0]) == (0, 2)
    table = reference.exemplars([sentence(weights, "a b c", causal=False)], (2,), 1)
    assert (table["query"][0, 0, 0], table["key"][0, 0, 0]) == (1, 0)


def test_the_same_sentence_counts_once_with_its_best(reference, sentence):
    low, high = [[1, 0], [0.75, 0.25]], [[1, 0], [0.25, 0.75]]
    examples = [sentence(low, "a b"), sentence(high, "a b"), sentence(high, "a b"), sentence(low, "c d")]
    table = reference.exemplars(examples, "first", 4)
    assert table["sentence"] == {(0, 0, 0): 1, (0, 0, 1): 3}
    assert table["value"] == {(0, 0, 0): 0.75, (0, 0, 1): 0.25}


# ---- dependency by distance (section 5.3.3)


@pytest.mark.parametrize("causal", [True, False])
def test_dependency_by_distance(reference, dog, causal):
    example = dog(BOTH_WAYS, causal)  # the weights do not matter, nor which way the model looks
    table = reference.dependency_by_distance([example], "none")
    assert table["pairs"] == {(1,): 2, (2,): 1}
    assert table["linked"] == {(1,): 2, (2,): 0}  # the–dog and dog–barks; not the–barks
    assert table["value"] == {(1,): 1, (2,): 0}
    table = reference.dependency_by_distance([example], "first")
    assert table["pairs"] == {(1,): 1}  # dog–barks is left
    assert table["linked"] == {(1,): 1}
    table = reference.dependency_by_distance([example, example], (1,))
    assert table["pairs"] == {(1,): 2, (2,): 2}  # the–dog and the–barks, twice: the earlier token is not position 1
    assert table["linked"] == {(1,): 2, (2,): 0}


def test_dependency_by_distance_without_special_tokens(reference, bracketed):
    table = reference.dependency_by_distance([bracketed], "special")
    assert (table["pairs"], table["linked"]) == ({(1,): 1}, {(1,): 1})
    table = reference.dependency_by_distance([bracketed], "none")
    assert table["pairs"] == {(1,): 3, (2,): 2, (3,): 1}
    assert table["value"] == near({(1,): 1 / 3, (2,): 0, (3,): 0})


# ---- laws


@pytest.mark.parametrize("null", ["first", "special", "none", (0, -1)])
@pytest.mark.parametrize("causal", [True, False])
def test_equal_weights_give_the_chance(reference, sentence, null, causal):
    # Not rows that sum to one, but the same weight everywhere: then a share of weight is a share of pairs.
    weights = np.tri(5) if causal else np.ones((5, 5))
    examples = [
        sentence(weights / 8, "[A] a b a [Z]", causal, *plain(3)),
        sentence(weights / 8, "[A] c c c ,", causal, *plain(4)),
    ]
    for statistic in (
        reference.part_of_speech,
        reference.dependency_alignment,
        reference.dependency_type,
        reference.patterns,
    ):
        table = statistic(examples, null)
        assert table["value"] == near(table["chance"])
    for statistic in (reference.part_of_speech, reference.null_attention):
        table = statistic(examples, null)
        assert table["one_token"] == near(table["one_token_chance"])


def test_layers_and_heads_are_told_apart(reference, dog):
    # Layer 0: CAUSAL and a head that looks at itself; layer 1: the previous token, and CAUSAL again.
    itself, previous = np.eye(3), [[1, 0, 0], [1, 0, 0], [0, 1, 0]]
    example = dog(CAUSAL, True)
    weights = np.array([[CAUSAL, itself], [previous, CAUSAL]], dtype=np.float64)
    example = reference.Example(**{**vars(example), "weights": weights})
    values = reference.distance([example], "none")["value"]
    assert values == near({(0, 0): 1.25 / 3, (0, 1): 0, (1, 0): 2 / 3, (1, 1): 1.25 / 3})
    same = reference.patterns([example], "none")["value"]
    assert [same[layer, head, "same"] for layer in (0, 1) for head in (0, 1)] == near([2 / 3, 1, 1 / 3, 2 / 3])
    focus = reference.dependency_alignment([example], "none")["focus"]
    label = ("head_to_dependent", "any")
    assert [focus[layer, head, *label] for layer in (0, 1) for head in (0, 1)] == near([0.375, 0, 1, 0.375])
