"""The report: what it says, that it is harmless, and that it stays small."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pandas as pd
import pytest
import torch

from attnscope import AttentionRecord, BadInput, Trust, load
from attnscope.attribution import Comparison, raw
from attnscope.explaining import Explanation, explain
from attnscope.numerals import percent
from attnscope.report import page as page_module
from attnscope.report import report_html, write_report

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

    @property
    def views(self):
        return [element["data-view"] for element in self.all("section")]

    def payloads(self):
        return [
            json.loads(element["text"]) for element in self.all("script") if element.get("type") == "application/json"
        ]


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


def trust_table(**values):
    rows = [
        {"method": method, "against": "blank_out", "measure": "spearman", "special": "without", "bucket": "all",
         "layer": None, "value": value, "low": value - 0.1, "high": value + 0.1}
        for method, value in values.items()
    ]  # fmt: skip
    return Trust(pd.DataFrame(rows), {"model": "tiny", "texts": 9})


def test_the_answer_comes_first(record):
    page = Page(report_html(record))
    places = [
        page.text.index(part) for part in ("the keys", "Predicts plural with 90.0 %", "carried it most", "All heads")
    ]
    assert places == sorted(places)
    assert page.views == ["scores", "model", "flow", "tracing"]


def test_of_a_long_text_the_beginning_and_the_end_stand_above_the_answer(record):
    words = " ".join(f"word{number}" for number in range(400))
    page = report_html(replace(record, text=words))
    quoted = page.split("<blockquote dir=auto>")[1].split("</blockquote>")[0]
    before, after = quoted.split(" … ")
    assert words.startswith(f"{before} ")
    assert words.endswith(f" {after}")
    assert (len(before) > 200, len(after) > 100, len(quoted) < 400) == (True, True, True)
    assert page.index(words) > page.index("<summary>The whole text</summary>")
    assert "<summary>The whole text</summary>" not in report_html(replace(record, text=words[:700]))


def test_without_a_measurement_it_is_said_how_to_make_one(record):
    text = Page(report_html(record)).text
    assert "has not been measured: attnscope trust MODEL CORPUS --out FOLDER" in text
    best = int(record.weights[-1].mean(0)[0][1:4].argmax()) + 1
    name, score = ["[CLS]", "the", "key", "s"][best], float(record.weights[-1].mean(0)[0][best])
    assert f"By raw these words carried it most: “{name}” {score:.3f}" in text


def test_the_method_that_follows_the_model_best_is_asked_first(record):
    page = Page(report_html(record, trust=trust_table(raw=0.2, rollout=0.7, flow=0.4, gradient=0.9)))
    assert "By rollout these words carried it most" in page.text  # gradients were not taken with this record
    assert "it follows this model best (rank agreement 0.70)" in page.text
    told = {method["name"]: method.get("trust") for method in page.payloads()[0]["payload"]["methods"]}
    assert told["rollout"]["value"] == 0.7
    assert told["layerwise_tracing"] is None


def test_an_explanation_brings_what_the_model_itself_says():
    explanation = explain(load("demo"), "the key to the cabinets", ["raw", "rollout", "blank_out"])
    page = Page(report_html(explanation, trust=trust_table(raw=0.2, rollout=0.7)))
    assert "By blank-out these words carried it most: “key”" in page.text
    assert "Of the others rollout comes closest on this model (rank agreement 0.70)" in page.text
    assert [method["name"] for method in page.payloads()[0]["payload"]["methods"]] == ["blank_out", "raw", "rollout"]


def test_a_text_whose_weights_do_not_fit_has_its_page(monkeypatch):
    full = load("demo").record("the key to the cabinets")
    size = full.weights.numel() * 4
    monkeypatch.setattr("attnscope.capture.model.is_too_large", lambda estimate: estimate.record_bytes == size)
    with pytest.warns(UserWarning, match="queries and keys are kept instead"):
        explanation = explain(load("demo"), "the key to the cabinets", methods=["raw", "rollout", "layerwise_tracing"])
    page = report_html([explanation])
    assert all(f'"{name}"' in page for name in ("raw", "rollout", "layerwise_tracing"))
    taken = float(full.weights[..., list(full.key_special)].sum(-1).mean())
    assert f"Special tokens take {percent(taken)} of all attention" in page
    assert page.count("which take too much memory here") == 2


def test_what_special_tokens_take_is_said(record):
    everywhere = float(record.weights[..., [0, 4]].sum(-1).mean())
    assert f"Special tokens take {100 * everywhere:.1f} % of all attention" in Page(report_html(record)).text


def test_the_card_is_there(record):
    text = Page(report_html(record)).text
    assert "2 layers × 3 heads, 5 query × 5 key tokens, encoder" in text
    assert "revision not known" in text.replace("revisionnot", "revision not")


def test_methods_that_need_a_model_are_left_out_in_words(record):
    assert "Left out: blank_out." in Page(report_html(record)).text


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
    scripts = [element for element in page.all("script") if element.get("type") == "module"]
    assert len(scripts) == 5  # the host and four views
    assert not any("onmouseover" in element for element in page.elements)
    assert page.payloads()[0]["payload"]["keys"]["texts"] == [attack, '" onmouseover="alert(1)', "&lt;"]


def test_nothing_comes_from_the_network(record):
    page = report_html(record)
    outside = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"""(?:src|href)\s*=|url\(|@import|https?://""", outside)
    assert "default-src 'none'" in outside


def test_cross_attention_shows_what_it_can():
    weights = torch.rand(2, 2, 3, 4).softmax(-1)
    record = AttentionRecord(
        weights=weights, query_tokens=("le", "chat", "dort"), key_tokens=("the", "cat", "sleeps", "now"), stack="cross",
        causal=False, readout=torch.eye(3)[2],
    )  # fmt: skip
    page = Page(report_html(record))
    assert page.views == ["scores", "model"]
    assert "“dort” (position 2)" in page.text


def test_several_texts_are_on_one_page(record):
    page = Page(report_html([record, made(["other", "text"], text="other text")]))
    assert page.views == ["scores", "model", "flow", "tracing"] * 2
    assert "2 texts" in page.all("header")[0]["text"]


def test_a_large_record_makes_a_page_of_the_size_that_is_said(monkeypatch):
    """Its weights alone take more than half as much again as the page may; flow and tracing would come on top."""
    monkeypatch.setattr(page_module, "PAGE_BUDGET", 1_500_000)
    monkeypatch.setattr(page_module, "FLOW_BYTES", 1000)
    monkeypatch.setattr(page_module, "TRACED_TOKENS", 100)
    length = 160
    weights = torch.rand(4, 12, length, length)
    record = AttentionRecord.from_weights(
        weights / weights.sum(-1, keepdim=True), ["antidisestablishment"] * length, causal=False, readout=0
    )
    page = report_html(record)
    assert 700_000 < len(page.encode()) < page_module.PAGE_BUDGET + 125_000
    assert Page(page).views == ["scores", "model"]


def test_what_does_not_fit_is_left_out_in_words(monkeypatch):
    monkeypatch.setattr(page_module, "LEAST_BUDGET", 260_000)
    monkeypatch.setattr(page_module, "PAGE_BUDGET", 260_000)
    page = Page(report_html(made([str(number) for number in range(50)], layers=8, heads=8)))
    assert "Left out: the maps of the heads. " in page.text
    assert "model" not in page.views


def test_scores_that_do_not_fit_are_left_out_in_words_too(monkeypatch):
    monkeypatch.setattr(page_module, "LEAST_BUDGET", 250_100)
    monkeypatch.setattr(page_module, "PAGE_BUDGET", 250_100)
    monkeypatch.setattr(page_module, "FLOW_BYTES", 1000)
    page = Page(report_html(made([str(number) for number in range(50)], layers=8, heads=8)))
    assert "Left out: the text under each method. A page with these scores does not fit" in page.text
    assert page.views == ["tracing"]


def test_scores_and_heads_share_the_budget(monkeypatch):
    monkeypatch.setattr(page_module, "PAGE_BUDGET", 1_000_000)
    monkeypatch.setattr(page_module, "FLOW_BYTES", 1000)  # flow and tracing would come on top
    monkeypatch.setattr(page_module, "TRACED_TOKENS", 100)
    record = made([f"t{number}" for number in range(130)], layers=6, heads=6)
    page = report_html(record)
    assert Page(page).views == ["scores", "model"]
    assert len(page.encode()) < 1_000_000
    scores, model = Page(page).payloads()
    kept = [method["name"] for method in scores["payload"]["methods"] if method["map"]]
    assert kept == ["raw"]  # a map of 0.3 MB: one fits into half of what the page may take, two do not
    assert model["payload"]["weights"]["kept"] is not None


def test_tracing_has_its_lines(record):
    tracing = next(model["payload"] for model in Page(report_html(record)).payloads() if "trace" in model["payload"])
    assert tracing["trace"]["readout"]
    assert tracing["trace"]["lines"] > 0


def test_masked_queries_are_not_counted_as_attending_to_nothing():
    weights = torch.full((2, 2, 4, 4), 0.25)
    weights[:, :, 1:3] = 0
    masked = (False, True, True, False)
    record = AttentionRecord.from_weights(
        weights, list("abcd"), causal=False, masked_queries=masked, special=[True, False, False, False]
    )
    assert "Special tokens take 25.0 % of all attention" in Page(report_html(record)).text


def test_a_record_that_attends_to_nothing_has_a_report():
    record = AttentionRecord.from_weights(
        torch.zeros(2, 2, 3, 3), list("abc"), causal=False, masked_queries=[True] * 3, readout=0
    )
    page = Page(report_html(record))
    assert "Every query is masked: no token attends to anything." in page.text
    assert page.views == ["scores", "model", "flow", "tracing"]


def test_a_report_of_nothing_is_refused():
    with pytest.raises(BadInput, match="at least one text"):
        report_html([])


def test_a_folder_is_no_file(record, tmp_path):
    with pytest.raises(BadInput, match="is a folder"):
        write_report(tmp_path, record)
    assert list(tmp_path.iterdir()) == []


def test_written_whole_and_same_every_time(record, tmp_path):
    path = write_report(tmp_path / "new" / "report.html", record)
    assert path.read_bytes().decode("utf-8") == report_html(record)
    assert [entry.name for entry in path.parent.iterdir()] == ["report.html"]


def test_the_title_names_the_model_and_the_text(record):
    assert "<title>tiny on “the keys”</title>" in report_html(record)
    assert "<title>tiny on 2 texts</title>" in report_html([record, record])
    assert "<title>Mine</title>" in report_html(record, title="Mine")
    far = replace(record, card={"model": "/home/me/models/clf"}, text="so " * 50)
    assert re.search(r"<title>clf on “(so )+so…”</title>", report_html(far))


def test_sections_that_a_long_text_loses_are_named_with_what_brings_them(monkeypatch):
    long = explained(made([str(number) for number in range(130)], layers=1, heads=1), raw={})
    page = Page(report_html(long))
    assert page.views == ["scores", "model", "flow", "tracing"]
    assert "section. The text has" not in page.text
    # flow to every token would be waited for
    flows = next(one["payload"] for one in page.payloads() if "computed" in one["payload"])
    assert flows["computed"] == {"layers": [], "sources": []}
    monkeypatch.setattr("attnscope.report.page.FLOW_BYTES", 1000)
    monkeypatch.setattr("attnscope.report.page.TRACED_TOKENS", 100)
    page = Page(report_html(long))
    assert page.views == ["scores", "model"]
    for view, most in (("flow", 77), ("tracing", 100)):
        said = f"Left out: the {view} section. The text has 130 tokens, and this page has room for {most} of them"
        assert said in page.text
        assert f'attnscope.views.{view}(record).save("{view}.html")' in page.text


def test_what_is_left_out_is_said_once(record):
    page = Page(report_html(record))
    assert page.text.count("Left out: blank_out.") == 1
    assert page.payloads()[0]["payload"]["left_out"] == {}


def test_cross_attention_names_what_it_has_no_use_for_and_its_outcome_as_it_is():
    record = AttentionRecord(
        weights=torch.rand(1, 1, 2, 3).softmax(-1), query_tokens=("a", "b"), key_tokens=("x", "y", "z"), stack="cross",
        causal=False, readout=torch.eye(2)[1], prediction=(("##d", 0.6), ("e", 0.4)),
    )  # fmt: skip
    page = Page(report_html(record))
    assert "Predicts ##d with 60.0 %" in page.text
    assert page.text.count("Layers of cross-attention cannot be joined: record the encoder") == 2


def explained(record, **scores):
    """An explanation with these scores in place of a method's own."""
    found = [replace(raw(record), method=name, **changes) for name, changes in scores.items()]
    return Explanation(record, Comparison(tuple(found)))


def test_noise_is_called_noise_and_nothing_is_held_against_it(record):
    noise = "no single token carries the answer: its probability of 0.9930 changes by at most 0.0030"
    blank = {"scores": torch.tensor([0.0, 0.2, -0.1, 0.0001, 0.0]), "noise": noise, "warnings": ("of the log-odds",)}
    page = Page(report_html(explained(record, raw={}, gradient={}, blank_out=blank)))
    assert f"N{noise[1:]}. By blank-out, on log-odds, these words speak for it: “the” 0.200; against it: " in page.text
    assert "Methods are therefore held against gradient." in page.text
    assert page.payloads()[0]["reference"] == "gradient"


def test_headlines_are_in_words_and_list_no_zeros(record):
    pieces = replace(record, key_word_ids=(None, 0, 1, 1, None), query_word_ids=(None, 0, 1, 1, None))
    scores = torch.tensor([0.5, 0.0, 0.1, 0.2, 0.5])
    page = Page(report_html(explained(pieces, blank_out={"scores": scores, "word_ids": pieces.key_word_ids})))
    assert "this word carried it most: “keys” 0.300 (the sum over its tokens)." in page.text
    nothing = explained(record, blank_out={"scores": torch.zeros(5)})
    assert "By blank-out no word of the text matters." in Page(report_html(nothing)).text


def test_a_report_on_words_and_another_outcome():
    explanation = explain(load("demo"), "the key to the cabinets", ["raw", "blank_out"], by="word", target="plural")
    page = Page(report_html(explanation))
    assert "Explained: why plural (< 0.1 %)" in page.text
    assert page.payloads()[0]["payload"]["keys"]["texts"][1:-1] == ["the", "key", "to", "the", "cabinets"]


def test_the_page_of_the_quick_methods_does_without_the_heads_that_will_be_drawn_anew(record):
    quick = Explanation(record, Comparison((raw(record),)), to_come=("blank_out",))
    first, last = report_html(quick), report_html(replace(quick, to_come=()))
    said = "They are drawn when the slow methods have answered."
    assert said in first
    assert said not in last
    assert len(Page(first).payloads()) == len(Page(last).payloads()) - 1
