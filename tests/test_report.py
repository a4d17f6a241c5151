"""The report: what it says, that it is harmless, and that it stays small."""

import base64
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from attnscope import AttentionRecord, BadInput
from attnscope.report import page as page_module
from attnscope.report import report_html, summary, write_report
from attnscope.report.maps import LARGEST_CODE, block_of, map_data
from attnscope.report.tokens import joined, ranks, shown

VOID = {"meta", "input", "br"}


class Page(HTMLParser):
    """The elements of a page, each with its attributes and the text in it; complains where tags do not nest."""

    def __init__(self, page):
        super().__init__()
        self.open, self.elements = [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "text": "", **dict(attrs)}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, tag, name=""):
        return [
            element
            for element in self.elements
            if element["tag"] == tag and (not name or name in (element.get("class") or "").split())
        ]

    @property
    def text(self):
        return " ".join(self.all("main")[0]["text"].split())

    def tokens(self):
        found = [element for element in self.all("span") if "data-share" in element]
        return [element["text"] for element in found]


def made(tokens, layers=2, heads=3, seed=0, **options):
    torch.manual_seed(seed)
    weights = torch.rand(layers, heads, len(tokens), len(tokens)).softmax(-1)
    return AttentionRecord(
        weights=weights,
        query_tokens=tuple(tokens),
        key_tokens=tuple(tokens),
        **{"stack": "encoder", "causal": False, "readout": torch.eye(len(tokens))[0], **options},
    )


@pytest.fixture
def record():
    return made(
        ["[CLS]", "the", "key", "##s", "[SEP]"],
        key_special=(True, False, False, False, True),
        query_special=(True, False, False, False, True),
        prediction=(("plural", 0.9), ("singular", 0.1)),
        text="the keys",
        card={"model": "tiny", "class": "BertForSequenceClassification", "revision": None, "versions": {"torch": "2"}},
    )


def test_the_answer_comes_first(record):
    text = Page(report_html(record)).text
    parts = [
        "the keys",
        "Predicts plural with 90.0 %",
        "Where the model looks",
        "How far to trust",
        "Layer by layer",
        "All heads",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_tokens_carry_their_exact_score_and_rank(record):
    scores = (record.weights[-1].mean(0)[0]).tolist()
    titles = [element["title"] for element in Page(report_html(record)).all("span") if "data-share" in element]
    assert titles == [
        f"{token} · {score:.4f} · rank {rank} of 5"
        for token, score, rank in zip(["[CLS]", "the", "key", "s", "[SEP]"], scores, ranks(scores), strict=True)
    ]


def test_the_most_attended_token_has_the_end_of_the_scale(record):
    spans = [element for element in Page(report_html(record)).all("span") if "data-share" in element]
    best = int(record.weights[-1].mean(0)[0].argmax())
    assert "w255" in spans[best]["class"].split()
    assert (
        f"{float(record.weights[-1].mean(0)[0].max()):.3f}" in Page(report_html(record)).all("p", "legend")[0]["text"]
    )


def test_special_tokens_and_joins_are_marked(record):
    spans = [element for element in Page(report_html(record)).all("span") if "data-share" in element]
    assert ["special" in element["class"].split() for element in spans] == [True, False, False, False, True]
    assert ["join" in element["class"].split() for element in spans] == [False, False, False, True, False]


def test_every_layer_has_its_row(record):
    rows = [element["title"] for element in Page(report_html(record)).all("td") if "data-share" in element]
    means = record.weights.mean(1)[:, 0]
    assert [float(title.split(" · ")[2]) for title in rows] == pytest.approx(means.flatten().tolist(), abs=1e-4)
    assert rows[0].startswith("layer 0 · ")
    assert rows[-1].startswith("layer 1 · ")


def test_every_head_is_a_button_that_names_its_strongest_pair(record):
    buttons = Page(report_html(record)).all("button", "map")
    assert len(buttons) == 6
    query, key = divmod(int(record.weights[1, 2].argmax()), 5)
    names = ["[CLS]", "the", "key", "s", "[SEP]"]
    assert buttons[-1]["title"].startswith(f"Layer 1, head 2: strongest “{names[query]}” → “{names[key]}”")


def test_what_special_tokens_take_is_said(record):
    here = float(record.weights[-1].mean(0)[0][[0, 4]].sum())
    everywhere = float(record.weights[..., [0, 4]].sum(-1).mean())
    expected = (
        f"Special tokens take {100 * here:.1f} % of this attention, and {100 * everywhere:.1f} % of all attention"
    )
    assert expected in Page(report_html(record)).text


def test_the_table_and_the_card_are_there(record):
    page = Page(report_html(record))
    table = next(element for element in page.all("table", "plain"))
    assert "special" in table["text"]
    assert "2 layers × 3 heads" in page.text
    assert "not known" in page.text


def test_no_prediction_is_said():
    assert "No prediction" in Page(report_html(made(["a", "b"]))).text


def test_next_tokens_say_what_is_left():
    record = made(["a", "b"], prediction=((" Paris", 0.6), ("\n", 0.1)), card={"class": "LlamaForCausalLM"})
    text = Page(report_html(record)).text
    assert "Predicts Paris with 60.0 %" in text
    assert "All other tokens of the vocabulary together have 30.0 %" in text


def test_several_labels_at_once_need_not_sum_to_one():
    record = made(
        ["a", "b"], prediction=(("toxic", 0.6), ("rude", 0.1)), card={"class": "BertForSequenceClassification"}
    )
    assert "All other tokens" not in Page(report_html(record)).text


def test_a_single_output_is_no_probability():
    assert "Output score -3.2500" in Page(report_html(made(["a", "b"], prediction=(("score", -3.25),)))).text


def test_many_classes_are_cut_and_counted():
    record = made(["a", "b"], prediction=tuple((f"class {number}", 0.1) for number in range(10)))
    assert "2 more outcomes are not shown; the likeliest of them has 10.0 %" in Page(report_html(record)).text


@pytest.mark.parametrize("share", [0.99999, 0.00001])
def test_nothing_is_rounded_to_certainty(share):
    text = Page(report_html(made(["a", "b"], prediction=(("yes", share), ("no", 1 - share))))).text
    assert "100.0 %" not in text
    assert " 0.0 %" not in text


@pytest.mark.parametrize(
    ("readout", "words"),
    [
        ([0.0, 1.0, 0.0], "“b” (position 1)"),
        ([1 / 3] * 3, "the mean over all 3 tokens"),
        ([0.5, 0.3, 0.2], "a weighted mean of tokens (largest: “a” with 0.50)"),
    ],
)
def test_the_readout_is_said(readout, words):
    assert words in Page(report_html(made(["a", "b", "c"], readout=torch.tensor(readout)))).text


def test_tokens_cannot_break_out():
    attack = "</script><script>alert(1)</script>"
    record = made([attack, '" onmouseover="alert(1)', "&lt;"], text=attack, prediction=((attack, 0.9), ("<b>", 0.1)),
                  card={"model": attack})  # fmt: skip
    page = Page(report_html(record, title=attack))
    assert len(page.all("script")) == 2
    assert not any("onmouseover" in element for element in page.elements)
    assert page.tokens() == [attack, '" onmouseover="alert(1)', "&lt;"]
    data = next(element for element in page.all("script") if element.get("id") == "data")
    assert json.loads(data["text"])["maps"][0]["keys"][0] == attack


def test_nothing_comes_from_the_network(record):
    page = report_html(record)
    assert not re.search(r"""(?:src|href)\s*=|url\(|@import|https?://""", page)


def test_any_script_of_the_world_is_kept():
    tokens = ["日本", "語", "😀", "שלום", "مرحبا", "é"]
    assert Page(report_html(made(tokens))).tokens() == tokens


def test_a_special_token_does_not_decide_the_direction(record):
    spans = [element for element in Page(report_html(record)).all("span") if "data-share" in element]
    assert [element.get("dir") for element in spans] == ["ltr", None, None, None, "ltr"]


def test_cross_attention_shows_both_texts():
    weights = torch.rand(2, 2, 3, 4).softmax(-1)
    record = AttentionRecord(
        weights=weights, query_tokens=("le", "chat", "dort"), key_tokens=("the", "cat", "sleeps", "now"), stack="cross",
        causal=False, readout=torch.eye(3)[2],
    )  # fmt: skip
    page = Page(report_html(record))
    assert page.tokens() == ["the", "cat", "sleeps", "now"]
    assert [element["text"] for element in page.all("span", "plain")] == ["le", "chat", "dort"]
    assert "“dort” (position 2)" in page.text


def test_several_texts_are_on_one_page(record):
    page = Page(report_html([record, made(["other", "text"], text="other text")]))
    assert len(page.all("article")) == 2
    assert {button["data-map"] for button in page.all("button", "map")} == {"0", "1"}


def test_maps_are_coded_to_2e_5(record):
    data = map_data(record, 1)
    codes = np.frombuffer(base64.b64decode(data["codes"]), "<u2").reshape(record.weights.shape)
    assert np.abs(data["largest"] * (codes / LARGEST_CODE) ** 2 - record.weights.numpy()).max() <= 2e-5


def test_blocks_keep_the_largest_weight():
    record = made([str(number) for number in range(10)])
    data = map_data(record, 4)
    codes = np.frombuffer(base64.b64decode(data["codes"]), "<u2").reshape(2, 3, data["rows"], data["columns"])
    assert (data["rows"], data["columns"]) == (3, 3)
    value = data["largest"] * (codes[1, 2, 2, 0] / LARGEST_CODE) ** 2
    assert value == pytest.approx(float(record.weights[1, 2, 8:, :4].max()), abs=2e-5)


def test_blocks_are_as_small_as_the_budget_allows():
    record = made([str(number) for number in range(40)], layers=1, heads=1)
    assert block_of(record, 40 * 40 * 8 // 3 + 1) == 1
    assert block_of(record, 20 * 20 * 8 // 3 + 1) == 2
    assert block_of(record, 10) is None


def test_a_large_record_makes_a_page_below_8_megabytes():
    length = 512
    weights = torch.rand(12, 12, length, length)
    record = AttentionRecord.from_weights(weights / weights.sum(-1, keepdim=True), ["antidisestablishment"] * length)
    page = report_html(record)
    assert len(page.encode()) < 8_000_000
    assert "A pixel of a thumbnail is the largest weight of a block of" in page
    assert "every weight would make this page too large" in page


def test_what_does_not_fit_is_left_out_in_words(monkeypatch):
    monkeypatch.setattr(page_module, "MAP_BUDGET", 1000)
    monkeypatch.setattr(page_module, "CELL_BUDGET", 100)
    page = Page(report_html(made([str(number) for number in range(40)], layers=5)))
    assert "The maps of the heads are left out" in page.text
    assert "The lowest 3 layers are left out" in page.text
    assert page.all("button", "map") == []
    assert sum("data-share" in element for element in page.all("td")) == 80


def test_a_report_of_nothing_is_refused():
    with pytest.raises(BadInput, match="at least one record"):
        report_html([])


def test_a_folder_is_no_file(record, tmp_path):
    with pytest.raises(BadInput, match="is a folder"):
        write_report(tmp_path, record)
    assert list(tmp_path.iterdir()) == []


def test_written_whole_and_same_every_time(record, tmp_path):
    path = write_report(tmp_path / "new" / "report.html", record)
    assert path.read_text(encoding="utf-8") == report_html(record)
    assert [entry.name for entry in path.parent.iterdir()] == ["report.html"]


def test_summary_is_plain_data(record):
    told = json.loads(json.dumps(summary(record)))
    assert told["prediction"][0] == {"label": "plural", "probability": 0.9}
    assert told["scores"] == pytest.approx(record.weights[-1].mean(0)[0].tolist())
    assert told["tokens"] == ["[CLS]", "the", "key", "##s", "[SEP]"]


def test_joins_without_word_ids_come_from_markers():
    words = list(range(4))
    assert joined(["un", "##believ", "##able", "now"], words, [False] * 4) == [False, True, True, False]
    assert joined(["▁un", "believ", "▁now", "!"], words, [False] * 4) == [False, True, False, True]
    assert joined(["a", "b"], [0, 0], [True, False]) == [False, False]


def test_invisible_tokens_are_drawn():
    assert shown(["Ġ", "Ċ", "", "Ġa"]) == ["␣", "⏎", "∅", "a"]
