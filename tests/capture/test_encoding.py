"""Texts of every kind, fast and slow tokenizers."""

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast
from transformers.tokenization_python import PreTrainedTokenizer

import attnscope
from attnscope.capture.alignment import offsets_by_decoding
from attnscope.capture.encoding import encode, encode_ids, words_by_marker
from attnscope.record import readable

CORPUS = [
    "the key to the cabinets is unbelievable",
    "你好 世界 我们",
    "smile 😀 again 😀",
    "the cabinets are here",
] * 20


@pytest.fixture(scope="module")
def byte_level():
    """A byte-level BPE tokenizer like GPT-2's, trained on a few sentences."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    bpe.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    )
    return PreTrainedTokenizerFast(tokenizer_object=bpe)


@pytest.fixture(scope="module")
def without_pre_tokenizer():
    """Like Llama 2's: spaces become ▁ in the normalizer, and the whole text is one word to the tokenizer."""
    from tokenizers import normalizers

    pieces = ["▁", *"abcdefghijklmnopqrstuvwxyz", "▁t", "▁k", "he"]
    merges = [("▁", "t"), ("▁", "k"), ("h", "e")]
    bpe = Tokenizer(models.BPE({piece: number for number, piece in enumerate(pieces)}, merges))
    bpe.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return PreTrainedTokenizerFast(tokenizer_object=bpe)


class SlowTokenizer(PreTrainedTokenizer):
    """A tokenizer in plain Python that cuts words into pieces of three letters."""

    model_input_names = ("input_ids", "attention_mask")

    def __init__(self, **options):
        pieces = [chr(97 + letter) for letter in range(26)] + [".", "你", "好"]
        self.pieces = {piece: number + 5 for number, piece in enumerate(pieces)}
        self.pieces |= {"##" + piece: number + len(pieces) + 5 for number, piece in enumerate(pieces)}
        self.pieces |= {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
        super().__init__(
            pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]",
            special_tokens_pattern="cls_sep", **options,
        )  # fmt: skip

    @property
    def vocab_size(self):
        return len(self.pieces)

    def get_vocab(self):
        return dict(self.pieces)

    def _tokenize(self, text, **options):
        return [piece for word in text.split() for piece in [word[0], *("##" + letter for letter in word[1:])]]

    def _convert_token_to_id(self, token):
        return self.pieces.get(token, 1)

    def _convert_id_to_token(self, index):
        return next(piece for piece, number in self.pieces.items() if number == index)


def test_pairs_have_words_of_their_own(tiny):
    model = tiny.load("bert")
    record = model.record(("the key", "the dogs see"))
    assert record.tokens == ("[CLS]", "the", "key", "[SEP]", "the", "dogs", "see", "[SEP]")
    assert record.word_ids == (None, 0, 1, None, 2, 3, 4, None)
    assert record.special == (True, False, False, True, False, False, False, True)
    assert record.inputs["token_type_ids"].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert record.words().tokens == record.tokens
    with torch.no_grad():
        expected = model.model(**model.tokenizer("the key", "the dogs see", return_tensors="pt")).logits.softmax(-1)
    assert dict(record.prediction)["LABEL_1"] == pytest.approx(expected[0, 1].item(), abs=1e-5)


def test_words_already_split_keep_their_borders(byte_level):
    encoded = encode(byte_level, ["unbelievable", "cabinets"], None)
    assert set(encoded.word_ids) == {0, 1}
    assert len(encoded) > 2


def test_words_of_byte_level_pieces(byte_level):
    encoded = encode(byte_level, "the cabinets 你好 😀", None)
    assert len(set(encoded.word_ids)) == 4
    assert "".join(text for text in readable(encoded.tokens) if text != "·") == "the cabinets 你好 😀"


def test_generated_ids_get_the_words_of_their_text(byte_level):
    encoded = encode(byte_level, "the cabinets are here", None)
    again = encode_ids(byte_level, encoded.inputs["input_ids"].tolist())
    assert again.word_ids == encoded.word_ids
    assert again.tokens == encoded.tokens


def test_a_tokenizer_without_words_is_read_by_its_markers(without_pre_tokenizer):
    encoding = without_pre_tokenizer("the key to")
    assert set(encoding.word_ids(0)) == {0}
    encoded = encode(without_pre_tokenizer, "the key to", None)
    assert len(set(encoded.word_ids)) == 3
    assert encoded.word_ids == tuple(sorted(encoded.word_ids))


def test_slow_tokenizer_gives_words_and_special_tokens():
    tokenizer = SlowTokenizer()
    assert not tokenizer.is_fast
    encoded = encode(tokenizer, "the key [MASK]", None)
    content = [token for token, quiet in zip(encoded.tokens, encoded.special, strict=True) if not quiet]
    assert content[:6] == ["t", "##h", "##e", "k", "##e", "##y"]
    words = [word for word in encoded.word_ids if word is not None]
    assert words[:6] == [0, 0, 0, 1, 1, 1]
    pair = encode(tokenizer, ("the", "the"), None)
    assert sorted({word for word in pair.word_ids if word is not None}) == [0, 1]
    split = encode(tokenizer, ["the", "key"], None)
    assert [word for word in split.word_ids if word is not None] == [0, 0, 0, 1, 1, 1]


def test_slow_tokenizer_makes_records(tiny):
    model = attnscope.load(tiny.build("bert", vocab_size=80), tokenizer=SlowTokenizer())
    record = model.record("the key 你好")
    assert "你好" in record.words().tokens
    torch.testing.assert_close(record.words().weights.sum(-1), torch.ones(3, 4, len(record.words().tokens)))


def test_markers_tell_words():
    assert words_by_marker(["a", "##b", "c"], [False] * 3) == (0, 0, 1)
    assert words_by_marker(["▁a", "b", "▁c"], [False] * 3) == (0, 0, 1)
    assert words_by_marker(["[CLS]", "a", "[SEP]", "##b"], [True, False, True, False]) == (None, 0, None, 1)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ([], "empty"),
        (("the", ""), "empty"),
        (("a", "b", "c"), "a pair of texts"),
        (("the", ["key"]), "both lists of words"),
    ],
)
def test_unusable_texts_get_one_sentence(tiny, text, sentence):
    model = tiny.load("bert")
    with pytest.raises(attnscope.BadInput, match=sentence):
        next(model.records([text]))


def test_too_long_says_both_lengths_and_truncates_on_request(tiny):
    model = tiny.load("bert")
    text = " ".join(["the"] * 60)
    with pytest.raises(attnscope.BadInput, match="62 tokens and the model reads at most 40"):
        model.record(text)
    record = model.record(text, truncate=True)
    assert len(record.tokens) == 40
    assert record.tokens[-1] == "[SEP]"


@pytest.mark.parametrize(
    ("family", "longest"),
    [("bert", 40), ("roberta", 39), ("mpnet", 38), ("opt", 40), ("gpt2", 40), ("t5", None), ("bloom", None)],
)
def test_longest_input_is_what_the_model_really_reads(tiny, family, longest):
    model = tiny.load(family)
    assert model.reader.longest == longest
    ids = torch.full((1, longest or 70), 7)
    with torch.no_grad():
        extra = {"decoder_input_ids": ids[:, :2]} if family == "t5" else {}
        assert model.model(input_ids=ids, **extra).logits.isfinite().all()
    if longest is not None and family != "opt":
        with pytest.raises((IndexError, RuntimeError)), torch.no_grad():
            model.model(input_ids=torch.full((1, longest + 1), 7))


def test_special_tokens_written_in_the_text_are_not_doubled(tiny):
    model = tiny.load("bert")
    whole = model.record("the dogs see")
    for text in ("[CLS] the dogs see [SEP]", "[CLS] the dogs see", "the dogs see [SEP]"):
        record = model.record(text)
        assert record.inputs["input_ids"].tolist() == whole.inputs["input_ids"].tolist()
        assert (record.special, record.word_ids) == (whole.special, record.word_ids)
        assert record.inputs["token_type_ids"].tolist() == whole.inputs["token_type_ids"].tolist()
    assert tiny.load("t5").record("the dogs </s>", stack="encoder").tokens == ("the", "dogs", "</s>")


def test_markers_of_a_chat_are_special_and_parts_of_no_word(byte_level):
    import copy

    tokenizer = copy.deepcopy(byte_level)
    tokenizer.add_tokens(["<|im_start|>", "<|im_end|>"], special_tokens=True)
    tokenizer.bos_token = "<|im_start|>"
    encoded = encode(tokenizer, "<|im_start|>the key<|im_end|>", None)
    markers = [token.startswith("<|") for token in encoded.tokens]
    assert markers == list(encoded.special)
    assert markers[0]
    assert markers[-1]
    assert [word is None for word in encoded.word_ids] == markers
    assert encode(tokenizer, "<|im_start|>", None).special == (True,)  # a prompt of its own


def test_a_token_without_a_name_is_called_by_its_number(tiny):
    record = attnscope.load(tiny.build("gpt2", vocab_size=40), tokenizer=tiny.tokenizer("plain")).record("the dogs")
    assert all(name for name, _ in record.prediction)
    assert encode_ids(tiny.tokenizer("plain"), [6, 39]).tokens == ("the", "[39]")


@pytest.mark.parametrize("text", ["the \udcff dogs", "\ud83d", ["the", "do\ud800gs"], ("the", "dogs \udfff")])
def test_half_characters_get_one_sentence(tiny, text):
    with pytest.raises(attnscope.BadInput, match=r"half of one \(U\+D"):
        tiny.load("bert").record(text)


@pytest.mark.parametrize("truncation", [True, "longest_first", "only_first"])
def test_truncation_of_one_text_is_that_of_transformers(tiny, truncation):
    model = tiny.load("bert")
    text = " ".join(["the", "key", "to"] * 20)
    expected = tuple(model.tokenizer(text, truncation=truncation, max_length=40).tokens())
    assert model.tokens(text, truncation=truncation) == expected
    assert model.record(text, truncation=truncation).tokens == expected
    assert next(model.records([text], truncation=truncation)).tokens == expected


@pytest.mark.parametrize("truncation", [True, "longest_first", "only_first", "only_second"])
def test_truncation_of_a_pair_is_that_of_transformers(tiny, truncation):
    model = tiny.load("bert")
    pair = (" ".join(["the", "key"] * 13), " ".join(["a", "boy", "that"] * 9))
    expected = tuple(model.tokenizer(*pair, truncation=truncation, max_length=40).tokens())
    assert len(expected) == 40
    assert model.record(pair, truncation=truncation).tokens == expected


@pytest.mark.parametrize("truncation", [False, "do_not_truncate"])
def test_without_truncation_a_long_text_is_refused(tiny, truncation):
    model = tiny.load("bert")
    text = " ".join(["the"] * 60)
    with pytest.raises(attnscope.BadInput, match="62 tokens and the model reads at most 40"):
        model.record(text, truncation=truncation)
    assert len(model.record(text, truncation=truncation, truncate=True).tokens) == 40


@pytest.mark.parametrize("truncation", ["only_third", ""])
def test_other_truncations_are_refused(tiny, truncation):
    with pytest.raises(attnscope.BadInput, match="True, False or one of longest_first, only_first, only_second"):
        tiny.load("bert").record("the key", truncation=truncation)


def test_what_a_strategy_cannot_cut_is_refused(tiny):
    model = tiny.load("bert")
    long = " ".join(["the"] * 60)
    for text in (long, (long, "the key")):
        with pytest.raises(attnscope.BadInput, match=r"truncation='only_second'|at most 40"):
            model.record(text, truncation="only_second")


def test_records_carry_segments_of_their_text_also_in_windows(tiny):
    text = "the key to the cabinets . the red dogs see ! a boy runs ."
    segments = attnscope.Segments.sentences(text)
    model = tiny.load("bert")
    record = model.record(text, segments=segments)
    table = attnscope.raw(record).by("sentence")
    assert list(table["segment"]) == [
        "[CLS]", "the key to the cabinets .", "the red dogs see !", "a boy runs .", "[SEP]",
    ]  # fmt: skip
    assert record.by("sentence").tokens == tuple(table["segment"])
    windows = model.record(text, segments=segments, window=9)
    assert [attnscope.raw(window).by("sentence")["segment"].tolist()[1:-1] for window in windows[:2]] == [
        ["the key to the cabinets .", "the red dogs see !"], ["the key to the cabinets .", "the red dogs see !"],
    ]  # fmt: skip
    vectors = tiny.load("llama").record(text, segments=segments, keep="vectors")
    assert list(attnscope.rollout(vectors).by("sentence")["segment"]) == table["segment"].tolist()[1:-1]
    with pytest.raises(attnscope.BadInput, match="merge the scores of a method"):
        vectors.by("sentence")
    blanked = attnscope.blank_out(record, model, by="sentence")
    assert list(blanked.tokens) == table["segment"].tolist()
    for given, sentence in (
        ({"text": "the key", "segments": segments}, "of another text"),
        ({"text": ("the key", "dogs"), "segments": segments}, "of one text"),
    ):
        with pytest.raises(attnscope.BadInput, match=sentence):
            model.record(given.pop("text"), **given)
    with pytest.raises(attnscope.BadInput, match="text that is attended to"):
        tiny.load("bart").record(text, segments=segments, stack="decoder")
    cross = tiny.load("bart").record(text, segments=segments)
    assert cross.by("sentence").key_tokens == (*table["segment"].tolist()[1:-1], "</s>")
    assert cross.by("sentence").query_tokens == cross.query_tokens


class SpellingTokenizer(SlowTokenizer):
    """The same, able to spell its pieces back."""

    def convert_tokens_to_string(self, tokens):
        return " ".join(tokens).replace(" ##", "")


def test_slow_tokenizers_are_aligned_by_decoding(tiny, byte_level):
    model = attnscope.load(tiny.build("bert", vocab_size=80), tokenizer=SpellingTokenizer())
    text = "the key. a  box."
    record = model.record(text, segments=attnscope.Segments.sentences(text))
    assert attnscope.raw(record).by("sentence")["segment"].tolist()[1:-1] == ["the key.", "a box."]
    with pytest.raises(attnscope.BadInput, match="spell this text back"):
        model.record("the (key).", segments=attnscope.Segments.sentences("the (key)."))
    spoken = "the cabinets 你好 😀 !"
    encoded = encode(byte_level, spoken, None)
    ids = encoded.inputs["input_ids"].tolist()
    told = offsets_by_decoding(byte_level, ids, encoded.special, spoken)
    solid = [spoken[start:end].strip() for start, end in encoded.offsets]
    assert [spoken[start:end].strip() or solid[place] for place, (start, end) in enumerate(told)] == solid
