"""Real pretrained models with real subwords: the survey equals the double loops over their records."""

import os
from itertools import islice
from pathlib import Path

import pytest

import attnscope
from attnscope import Sentence, survey
from attnscope.corpora import DATA, dataset_file
from attnscope.statistics import STATISTICS
from attnscope.statistics.exemplars import HOW_MANY
from attnscope.syntax import sentences_of

# word/tag/head/relation: heads are counted from one, and a word that is glued to the next ends in +
MADE = [
    "I/PRON/4/nsubj did+/AUX/4/aux n't/PART/4/advmod expect/VERB/0/root that+/PRON/4/obj !/PUNCT/4/punct",
    (
        "Kathmandu+/PROPN/4/nmod:poss 's/PART/1/case oldest/ADJ/4/amod bookshops/NOUN/5/nsubj reopened/VERB/0/root"
        " yesterday+/NOUN/5/obl ,/PUNCT/10/punct and/CCONJ/10/cc tourists/NOUN/10/nsubj queued/VERB/5/conj"
        " outside+/ADV/10/advmod ./PUNCT/5/punct"
    ),
    "Thanks/NOUN/0/root for/ADP/4/case the/DET/4/det attachments/NOUN/1/nmod",
    (
        "The/DET/2/det hyperparameters/NOUN/5/nsubj that/PRON/4/obj mattered/VERB/2/acl:relcl were/VERB/0/root"
        " the/DET/8/det unglamorous/ADJ/8/amod ones+/NOUN/5/xcomp ,/PUNCT/11/punct she/PRON/11/nsubj"
        " wrote+/VERB/5/parataxis ./PUNCT/5/punct"
    ),
    "Call/VERB/0/root 555+/NUM/1/obj -+/PUNCT/4/punct 0199/NUM/2/list now+/ADV/1/advmod !!/PUNCT/1/punct",
    "Where/ADV/2/advmod is/VERB/0/root everybody+/PRON/2/nsubj ?/PUNCT/2/punct",
    "Please/INTJ/2/discourse reread/VERB/0/root Schaumburg-Lippe+/PROPN/5/nmod:poss 's/PART/3/case memo/NOUN/2/obj",
    "Our/PRON/3/nmod:poss naïve/ADJ/3/amod café-owner/NOUN/4/nsubj cried+/VERB/0/root …/PUNCT/4/punct",
]


def made(line: str) -> Sentence:
    rows = [entry.rsplit("/", 3) for entry in line.split(" ")]
    words = tuple(row[0].removesuffix("+") for row in rows)
    heads = tuple(int(row[2]) - 1 for row in rows)
    return Sentence(
        words, tuple(row[1] for row in rows), heads, tuple(row[3] for row in rows),
        spaces=tuple(not row[0].endswith("+") for row in rows),
    )  # fmt: skip


@pytest.fixture(scope="module")
def corpus() -> list[Sentence]:
    """Sentences of the English Web Treebank where it lies here, and some like them."""
    own = [made(line) for line in MADE]
    if DATA not in os.environ:
        return own
    treebank = sentences_of(dataset_file("ud_ewt"))
    short = (sentence for sentence in islice(treebank, 100) if 4 <= len(sentence) <= 14)
    return [*own, *islice(short, 12 - len(own))]


def by_characters(sentence: Sentence, offsets: list[tuple[int, int]], special: list[bool]) -> list[int | None]:
    """The word of each token, character by character; a lone space belongs to the word behind it."""
    text = sentence.text
    of_character: list[int | None] = [None] * (len(text) + 1)
    place = 0
    for number, word in enumerate(sentence.words):
        place = text.index(word, place)
        of_character[place : place + len(word)] = [number] * len(word)
        place += len(word)
    words = []
    for (start, end), quiet in zip(offsets, special, strict=True):
        inside = [of_character[place] for place in range(start, end) if of_character[place] is not None]
        behind = [word for word in of_character[end:] if word is not None]
        word = max(sorted(set(inside)), key=inside.count) if inside else behind[0]
        words.append(None if quiet else word)
    return words


@pytest.mark.parametrize(("name", "causal"), [("minilm", False), ("smollm2", True)])
def test_a_real_model(name: str, causal: bool, corpus, real_model, reference, sample, labels) -> None:
    model = attnscope.load(str(real_model(name)))
    model.model.double()  # a padded batch is summed in another order than a text alone
    found = survey(model, corpus, shard_size=4, tokens_per_batch=64)
    assert found.card["sentences"] + sum(found.card["skipped"].values()) == len(corpus)
    stack = "decoder" if causal else "encoder"
    few = (0, found.card["layers"] // 2, found.card["layers"] - 1)  # double loops are slow
    examples = []
    for sentence, record in zip(corpus, model.records([one.text for one in corpus], stack=stack), strict=True):
        encoding = model.tokenizer(sentence.text, return_offsets_mapping=True)
        special = [bool(mark) for mark in record.special]
        words = by_characters(sentence, encoding["offset_mapping"], special)
        if set(words) - {None} != set(range(len(sentence))):
            continue
        examples.append(
            reference.Example(
                weights=record.weights.double().numpy()[list(few)][:, :2],
                token_ids=encoding["input_ids"],
                tokens=[sentence.text[start:end] for start, end in encoding["offset_mapping"]],
                special=special,
                words=words,
                tags=list(sentence.tags),
                heads=list(sentence.heads),
                relations=list(sentence.relations),
                causal=causal,
            )
        )
    assert len(examples) == found.card["sentences"] >= 5
    null = found.card["null"]
    assert null == ("first" if causal else "special")
    for statistic in STATISTICS:
        expected = getattr(reference, statistic)(
            examples, null, **({"top": HOW_MANY} if statistic == "exemplars" else {})
        )
        expected.pop("sentence", None)
        table = found[statistic].result()
        if "layer" in table:
            table = table[table["layer"].isin(few) & (table["head"] < 2)]
            table = table.assign(layer=table["layer"].map({layer: place for place, layer in enumerate(few)}))
        sample.compare(table, expected, labels[statistic])
    assert Path(found.card["model"]["name"]).name == found.card["model"]["name"]
