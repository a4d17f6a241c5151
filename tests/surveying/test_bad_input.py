"""What a user can get wrong is answered with one sentence that says what, where and what to do."""

import re
import subprocess
import sys
from itertools import count, islice

import pytest

import attnscope
from attnscope import STATISTICS, BadInput, Sentence, survey
from attnscope.syntax import Corpus, agreement_sentences

PLAIN = ["the key", "the dogs see"]


def refused(match: str, *arguments, **options) -> None:
    with pytest.raises(BadInput, match=match) as raised:
        survey(*arguments, **options)
    text = str(raised.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert not re.search(r"\.\s+[A-Z]", text), "one sentence"


@pytest.mark.parametrize(
    ("lines", "match"),
    [
        ("1\tthe\t_\tDET\n\n", r"^Line 1 of .*broken\.conllu has 4 columns"),
        ("1\tthe\t_\tDET\t_\t_\tx\tdet\t_\t_\n\n", r"^Line 1 of .*broken\.conllu has the head 'x'"),
        ("1\tthe\t_\tDET\t_\t_\t7\tdet\t_\t_\n\n", r"^Line 1 of .*broken\.conllu has the head 7"),
        ("# text = no words\n\n", "no sentence"),
        ("", "no sentence"),
    ],
)
def test_malformed_conllu(small, tmp_path, lines: str, match: str) -> None:
    path = tmp_path / "broken.conllu"
    path.write_text(lines)
    refused(match, small(), path)


@pytest.mark.parametrize("corpus", [[], iter([]), ["", "  "]], ids=["list", "iterator", "blank"])
def test_no_sentences(small, corpus) -> None:
    refused("^There is no sentence in sentences in memory", small(), corpus)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("part_of_speech", "parts of speech"),
        ("dependency_alignment", "heads and relations"),
        ("dependency_type", "heads and relations"),
        ("dependency_by_distance", "heads and relations"),
    ],
)
def test_annotation_that_is_missing(small, name: str, what: str) -> None:
    refused(
        rf"^{name} needs {what}, and the first sentence of .* has none: give annotated ones", small(), PLAIN, [name]
    )


def test_without_annotation_only_what_needs_none_is_counted(small) -> None:
    found = survey(small(), PLAIN)
    assert list(found) == [
        "distance",
        "entropy",
        "variability",
        "null_attention",
        "patterns",
        "exemplars",
        "roles",
        "role_exemplars",
    ]
    tagged = survey(small(), [Sentence(("the", "key"), ("DET", "NOUN"))])
    assert set(tagged) - set(found) == {"part_of_speech"}


def test_unknown_names(small) -> None:
    refused(r"^There is no statistic 'distances': choose part_of_speech, .* or roles\.$", small(), PLAIN, ["distances"])
    refused(r"^There is no engine 'spark': choose one of local, cores, ray, or", small(), PLAIN, engine="spark")
    refused(r"^null is first, special, sinks, none or a list of positions, not 'last'\.$", small(), PLAIN, null="last")
    refused(r"^null is first, special, sinks, none or a list of positions, not \[\]\.$", small(), PLAIN, null=[])
    refused(r"^statistics= is a list of part_of_speech, .*, not 'distance'\.$", small(), PLAIN, "distance")
    refused(r"^statistics= is a list of", small(), PLAIN, [])


@pytest.mark.parametrize(
    ("corpus", "options", "said"),
    [
        (PLAIN, {"statistics": ["beauty"]}, "There is no statistic 'beauty'"),
        (PLAIN, {"null": "last"}, "null is first"),
        (PLAIN, {"engine": "spark"}, "There is no engine 'spark'"),
        (PLAIN, {"threads": 0}, "threads must be at least 1"),
        (PLAIN, {"statistics": ["part_of_speech"]}, "part_of_speech needs parts of speech"),
        ("nowhere.txt", {}, "There is no file 'nowhere.txt'"),
        ("ud_ewt:moon", {}, "ud_ewt has no split 'moon'"),
    ],
)
def test_it_is_said_before_the_model_is_loaded(corpus, options: dict, said: str) -> None:
    refused(f"^{said}", "no/such-model", corpus, **options)


def test_what_is_asked_is_checked_without_what_runs_models() -> None:
    """Importing that takes longer than all the checks."""
    code = (
        "import sys, attnscope\n"
        "try: attnscope.survey('demo', 'demo', ['beauty'])\n"
        "except attnscope.BadInput: print('transformers' in sys.modules, 'attnscope.capture' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


def test_null_positions_that_the_model_never_reads(small) -> None:
    refused(r"^null= leaves out 40, -41, but the model reads 40 tokens at most, counted from 0\.$", small(), PLAIN,
            null=[0, 40, -41])  # fmt: skip


def test_numbers_that_are_too_small(small) -> None:
    for name in ("shard_size", "tokens_per_batch", "threads"):
        refused(rf"^{name} must be at least 1, not 0\.$", small(), PLAIN, **{name: 0})
    refused("limit", small(), PLAIN, limit=0)


def test_options_for_an_engine_that_takes_none(small) -> None:
    refused(
        r"^The local engine takes no options, but workers were given\.$", small(), PLAIN, engine_options={"workers": 2}
    )


def test_nothing_that_can_be_aligned(small) -> None:
    reason = r"it has more than the 40 tokens that the model reads \(3\)"
    refused(rf"^No sentence of sentences in memory could be read: {reason}\.$", small(), [Sentence(("the",) * 60)] * 3)


def test_what_is_no_corpus(small, tmp_path) -> None:
    refused("^This is a int: a corpus is", small(), 7)
    refused("^There is no file", small(), tmp_path / "nowhere.conllu")
    refused("^Item 1 of the corpus is a int", small(), ["the key", 3])


def test_a_model_that_is_not_there() -> None:
    with pytest.raises(BadInput, match="no/such-model"):
        survey("no/such-model", PLAIN)


def test_a_model_without_attention_weights(tiny) -> None:
    """Mamba mixes tokens without attention."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.MambaConfig(
        vocab_size=40, hidden_size=16, state_size=4, num_hidden_layers=2, pad_token_id=0, eos_token_id=5
    )
    model = attnscope.load(transformers.MambaForCausalLM(config), tokenizer=tiny.tokenizer("plain"))
    refused(r"^MambaModel shows no attention weights in its decoder stack", model, PLAIN)


def test_a_table_the_survey_does_not_have(small) -> None:
    found = survey(small(), PLAIN, ["distance", "exemplars"])
    with pytest.raises(BadInput, match=r"^This survey has no 'entropy': it has distance, exemplars\.$"):
        found["entropy"]
    with pytest.raises(BadInput, match=r"^exemplars says nothing of whole layers: use result\(\)\.$"):
        found["exemplars"].by_layer()


@pytest.mark.parametrize(
    ("name", "written", "said"),
    [
        ("", None, r"holds no finished survey: survey\.json is missing\.$"),
        ("nowhere", None, r"nowhere holds no finished survey: survey\.json is missing\.$"),
        ("survey.json", "{}", r"^A survey is loaded by its folder, and .*survey\.json is a file: give the folder"),
        ("", "{", r"survey\.json, the card of a survey, is damaged, or not written by attnscope: it is not JSON: "),
        ("", "[1]", r"survey\.json, the card of a survey, is damaged, .*: it must be an object, not a list\.$"),
        ("", '{"name": "mine"}', r"survey\.json, the card of a survey, is damaged, .*: model is missing\.$"),
        ("", "[" * 100_000, r"survey\.json, the card of a survey, is damaged, .*: it is not JSON: recursion limit"),
    ],
)
def test_what_is_no_survey_to_load(tmp_path, name: str, written: str | None, said: str) -> None:
    if written is not None:
        (tmp_path / "survey.json").write_text(written)
    with pytest.raises(BadInput, match=said):
        attnscope.Survey.load(tmp_path / name)


def test_a_corpus_that_is_another_when_it_is_read_again_is_refused():
    """The second pass of variability would hold the texts of one corpus against the means of another."""
    seeds = count()
    corpus = Corpus(
        "shuffled", 8, None, lambda: (drawn.sentence for drawn in islice(agreement_sentences(next(seeds)), 8))
    )
    with pytest.raises(BadInput, match="gave other sentences when it was read again"):
        attnscope.survey("demo", corpus, ["variability"])


def test_what_is_no_statistic_is_told():
    for wrong, said in (
        (object, "is no statistic"),
        (type("distance", (STATISTICS["entropy"],), {}), "called distance"),
    ):
        with pytest.raises(BadInput, match=said):
            attnscope.survey("demo", "demo", [wrong], limit=4)


def test_a_class_of_ours_goes_by_its_own_name():
    assert list(attnscope.survey("demo", "demo", [STATISTICS["distance"]], limit=8)) == ["distance"]


def test_a_token_that_covers_several_words_is_told_on_the_card():
    cannot = attnscope.Sentence(("can", "not"), ("AUX", "PART"), (-1, 0), ("root", "advmod"), spaces=(False, True))
    found = attnscope.survey("demo", [cannot] * 4, ["part_of_speech"])
    assert (found.card["skipped"], found.card["words"], found.card["words_without_token"]) == ({}, 8, 4)
    assert set(found["part_of_speech"].result()["tag"]) == {"AUX", "PART"}
    assert "Words without a token: 4 of 8 (50.0%), since a token that covers several words counts as" in found.summary()
    assert attnscope.survey("demo", [cannot] * 4, ["distance"]).card["words_without_token"] == 0
