"""Figure 4 of abnar2020 on a tiny masked language model: shares and probabilities against loops, and who is refused."""

import networkx as nx
import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    PreTrainedTokenizerFast,
)

import attnscope
from attnscope.errors import BadInput
from attnscope.reproduce.abnar2020.pronouns import (
    SENTENCES,
    MaskedSentence,
    masked_pronouns,
    pieces_of,
    pronoun_blocks,
    pronoun_figure,
)
from attnscope.reproduce.document import Figure, Heading, Paragraph, Table, pieces
from attnscope.views.printing import file_bytes

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = "the aut ##hor talked to sa ##ra about book mary convinced john of love his her .".split()


def tokenizer(words: list[str] = WORDS) -> PreTrainedTokenizerFast:
    """Lower case and word pieces, as of bert-base-uncased: author and Sara are two pieces each."""
    vocabulary = {word: place for place, word in enumerate([*SPECIAL, *words])}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    names = {f"{name[1:-1].lower()}_token": name for name in SPECIAL}
    return PreTrainedTokenizerFast(tokenizer_object=made, **names)


def tiny(kind: type, *, words: list[str] = WORDS) -> attnscope.InstrumentedModel:
    settings = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 24}
    config = BertConfig(vocab_size=len(SPECIAL) + len(words), initializer_range=0.5, pad_token_id=0, **settings)
    torch.manual_seed(3)
    model = kind(config).eval()
    for parameter in model.parameters():
        if parameter.ndim == 1:
            torch.nn.init.normal_(parameter, std=0.2)
    return attnscope.load(model, tokenizer=tokenizer(words))


@pytest.fixture(scope="module")
def model() -> attnscope.InstrumentedModel:
    return tiny(BertForMaskedLM)


def shares_by_hand(weights: np.ndarray, mask: int, words: dict[str, list[int]]) -> dict[tuple[str, int, str], float]:
    """Raw attention, rollout and flow of the mask by loops, and networkx's maximum flow."""
    layers, tokens, _ = weights.shape
    mixed = 0.5 * weights + 0.5 * np.eye(tokens)
    graph = nx.DiGraph()
    for layer in range(layers):
        for i in range(tokens):
            for j in range(tokens):
                graph.add_edge((layer + 1, i), (layer, j), capacity=float(mixed[layer, i, j]))
    found = {}
    for layer in range(layers):
        row = np.eye(tokens)[mask]
        for below in range(layer, -1, -1):
            row = np.array([sum(row[i] * mixed[below, i, j] for i in range(tokens)) for j in range(tokens)])
        flows = np.array([nx.maximum_flow_value(graph, (layer + 1, mask), (0, j)) for j in range(tokens)])
        rows = {"raw": weights[layer, mask], "rollout": row, "flow": flows / flows.sum()}
        for method, scores in rows.items():
            for word, places in words.items():
                found[method, layer + 1, word] = float(sum(scores[place] for place in places))
    return found


def test_shares_are_those_of_loops_over_the_models_own_attention(model):
    found = masked_pronouns(model)
    places = [
        ({"author": [2, 3], "Sara": [6, 7]}, "[CLS] the aut ##hor talked to sa ##ra about [MASK] book . [SEP]"),
        ({"Mary": [1], "John": [3]}, "[CLS] mary convinced john of [MASK] love . [SEP]"),
    ]
    model.model.set_attn_implementation("eager")
    for sentence, (words, expected_tokens) in zip(SENTENCES, places, strict=True):
        encoded = model.tokenizer(sentence.shown, return_tensors="pt")
        tokens = model.tokenizer.convert_ids_to_tokens(encoded["input_ids"][0])
        assert tokens == expected_tokens.split()
        with torch.no_grad():
            output = model.model(input_ids=encoded["input_ids"], output_attentions=True)
        weights = torch.stack(output.attentions)[:, 0].mean(1).double().numpy()
        mask = tokens.index("[MASK]")
        rows = found.shares[found.shares["sentence"] == sentence.shown]
        got = {(row.method, row.layer, row.word): row.share for row in rows.itertuples()}
        expected = shares_by_hand(weights, mask, words)
        assert got.keys() == expected.keys()
        for key, share in expected.items():
            assert got[key] == pytest.approx(share, abs=1e-5)
        chances = output.logits[0, mask].softmax(-1)[model.tokenizer.convert_tokens_to_ids(["his", "her"])]
        relative = found.relative(sentence)
        assert list(relative.values()) == pytest.approx((chances / chances.sum()).tolist(), abs=1e-5)
        assert sum(relative.values()) == pytest.approx(1)
        assert found.predicted(sentence) == ["his", "her"][int(chances.argmax())]
    assert list(found.shares) == ["sentence", "method", "layer", "word", "share"]
    assert sorted(found.shares["layer"].unique()) == [1, 2, 3]


def test_the_figure_shows_these_numbers(model):
    found = masked_pronouns(model)
    plot = pronoun_figure(found)
    panels = plot.figure.axes
    assert len(panels) == 8
    assert [bar.get_height() for bar in panels[0].patches] == pytest.approx(list(found.relative(SENTENCES[0]).values()))
    for panel, method in zip(panels[1:4], ("raw", "rollout", "flow"), strict=True):
        for line, word in zip(panel.lines, ("author", "Sara"), strict=True):
            assert line.get_ydata()[-1] == pytest.approx(found.last(SENTENCES[0], method)[word])
            assert list(line.get_xdata()) == [1, 2, 3]
    # a pronoun has the colour of the word it would mean
    colours = [to_hex(bar.get_facecolor()) for bar in panels[0].patches]
    assert colours == [line.get_color() for line in panels[1].lines]
    assert len(set(colours)) == 2
    assert file_bytes(plot, "svg") == file_bytes(pronoun_figure(found), "svg")


def test_blocks_say_what_the_model_predicts_and_which_method_agrees(model):
    heading, figure, table = pronoun_blocks(masked_pronouns(model))
    assert isinstance(heading, Heading)
    assert isinstance(figure, Figure)
    assert figure.name == "fig04_pronouns"
    assert isinstance(table, Table)
    found = masked_pronouns(model)
    for row, sentence in zip(table.rows, SENTENCES, strict=True):
        assert len(row) == len(table.names)
        meant = sentence.words[found.predicted(sentence)]
        assert row[2] == [meant]
        for cell, method in zip(row[3:], ("raw", "rollout", "flow"), strict=True):
            shares = found.last(sentence, method)
            ahead = shares.pop(meant) - max(shares.values())
            assert cell[0].split(":")[0] == ("agrees" if ahead > 1e-9 else "differs" if ahead < -1e-9 else "tie")


def test_without_a_model_it_says_what_is_missing():
    heading, paragraph = pronoun_blocks(None)
    assert isinstance(heading, Heading)
    assert isinstance(paragraph, Paragraph)
    words = "".join(piece if isinstance(piece, str) else piece.text for piece in pieces(paragraph.words))
    assert "masked language model" in words
    assert "--model bert-base-uncased" in words


@pytest.mark.parametrize(
    ("kind", "said"),
    [(BertModel, "an encoder without such a head"), (BertForSequenceClassification, "a classifier")],
)
def test_a_model_that_fills_no_gap_is_refused(kind, said):
    with pytest.raises(BadInput, match=f"needs a masked language model.*is {said}"):
        masked_pronouns(tiny(kind))


def test_a_module_that_is_no_model_of_transformers_is_refused():
    with pytest.raises(BadInput, match="is a model of another kind"):
        masked_pronouns(torch.nn.Linear(1, 1))


def test_an_encoder_called_a_masked_language_model_is_refused(tmp_path):
    """Its folder names the architecture but holds no head."""
    encoder = tiny(BertModel)
    encoder.model.config.architectures = ["BertForMaskedLM"]
    state = {f"bert.{name}": tensor for name, tensor in encoder.model.state_dict().items()}
    encoder.model.save_pretrained(tmp_path, state_dict=state)
    file = tmp_path / "config.json"
    file.write_text(file.read_text().replace('"BertModel"', '"BertForMaskedLM"'))
    encoder.tokenizer.save_pretrained(tmp_path)
    with pytest.raises(BadInput, match="an encoder without such a head"):
        masked_pronouns(attnscope.load(tmp_path))
    with pytest.raises(BadInput, match="an encoder without such a head"):
        masked_pronouns(attnscope.load(encoder.model, tokenizer=encoder.tokenizer, task="masked_lm"))


def test_a_model_that_is_not_read_at_its_mask_is_refused(model):
    other = attnscope.load(model.model, tokenizer=model.tokenizer, readout="first")
    with pytest.raises(BadInput, match="not read at its mask"):
        masked_pronouns(other)


@pytest.mark.parametrize("words", [[word for word in WORDS if word != "her"], [*WORDS[:-2], "he", "##r", "."]])
def test_a_vocabulary_without_the_pronouns_is_refused(words):
    with pytest.raises(BadInput, match="“her” is not one token"):
        masked_pronouns(tiny(BertForMaskedLM, words=words))


def test_a_word_that_the_model_does_not_read_is_refused(model):
    unknown = MaskedSentence("The author talked to Sara about {} book.", {"his": "author", "her": "Zelda"})
    with pytest.raises(BadInput, match="“Zelda” is not among the words"):
        masked_pronouns(model, [unknown])


def test_pieces_of_a_word_are_found_whatever_its_case(model):
    record = model.record("Mary talked to Sara .")
    assert pieces_of(record, "SARA") == [4, 5]


def test_minilm_has_no_head_and_is_refused(real_model):
    with pytest.raises(BadInput, match="minilm is an encoder without such a head"):
        masked_pronouns(attnscope.load(real_model("minilm")))
