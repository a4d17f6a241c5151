"""The recurrent encoder-decoder with attention: what it computes, what it tells of itself, and how it is kept."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import attnscope
from attnscope.errors import BadInput
from attnscope.lab.models import Seq2Seq
from attnscope.lab.models.seq2seq import HEADS, TRANSLATION, run_cells, run_looked_up
from attnscope.lab.vocabulary import FRAMED, Vocabulary

WORDS = Vocabulary([str(number) for number in range(9)], special=FRAMED)
FORMS = {
    "copying": {},
    "translation": TRANSLATION,
    "heads": {**HEADS, "heads": 3},
    "heads, summed": {**HEADS, "heads": 3, "contexts": "sum"},
    "sum": {"output": "sum", "bidirectional": True},
    "uniform": {"attention": "uniform"},
}


def made(form: str = "copying", **settings) -> Seq2Seq:
    torch.manual_seed(4)
    return Seq2Seq(WORDS, **{"width": 6, **FORMS[form], **settings}).double().eval()


def batch(rows: int = 3, sources: int = 5, steps: int = 4) -> tuple[Tensor, Tensor, Tensor]:
    """Sources, decoder inputs and right words, without special tokens."""
    random = torch.Generator().manual_seed(7)
    return tuple(torch.randint(4, len(WORDS), (rows, size), generator=random) for size in (sources, steps, steps))


def by_hand(model: Seq2Seq, source: list[int], read: list[int]) -> tuple[Tensor, Tensor]:
    """Logits and α of one text, written out for layers of one direction, step by step and head by head."""
    state, said = model.state_dict(), model.settings

    def cells(part: str, ids: list[int], vectors: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        states = []
        for word in ids:
            of_input = state[f"{part}.weight_ih_l0"] @ vectors[word] + state[f"{part}.bias_ih_l0"]
            of_state = state[f"{part}.weight_hh_l0"] @ h + state[f"{part}.bias_hh_l0"]
            if said.cell == "lstm":
                i, f, g, o = (of_input + of_state).chunk(4)
                c = f.sigmoid() * c + i.sigmoid() * g.tanh()
                h = o.sigmoid() * c.tanh()
            else:
                (ir, iz, inew), (hr, hz, hnew) = of_input.chunk(3), of_state.chunk(3)
                update = (iz + hz).sigmoid()
                h = (1 - update) * (inew + (ir + hr).sigmoid() * hnew).tanh() + update * h
            states.append(h)
        return torch.stack(states), h, c

    zero = torch.zeros(said.width, dtype=torch.double)
    values, h, c = cells("encoder", source, state["embeddings.weight"], zero, zero)
    targets = state.get("own_embeddings.weight", state["embeddings.weight"])
    states, _, _ = cells("decoder", read, targets, h, c)
    logits, looks = [], []
    for s in states:
        total, rows = torch.zeros(said.width, dtype=torch.double), []
        for head in range(said.heads):
            name = f"attention.heads.{head}"
            scores = values @ (state[f"{name}.query.weight"] @ s + state[f"{name}.query.bias"])
            share = torch.full_like(scores, 1 / len(scores)) if said.attention == "uniform" else scores.softmax(0)
            total = total + state[f"{name}.context.weight"] @ (share @ values) + state[f"{name}.context.bias"]
            rows.append(share)
        total = total / said.heads if said.contexts == "mean" else total
        hidden = torch.cat([total, s])
        hidden = (state["output.hidden.weight"] @ hidden + state["output.hidden.bias"]).tanh()
        logits.append(state["output.words.weight"] @ hidden + state["output.words.bias"])
        looks.append(torch.stack(rows))
    return torch.stack(logits), torch.stack(looks, 1)


@pytest.mark.parametrize("form", ["copying", "heads", "heads, summed", "uniform"])
def test_it_computes_what_the_paper_says(form):
    model = made(form)
    source, read, _ = batch(1)
    logits, weights = by_hand(model, source[0].tolist(), read[0].tolist())
    torch.testing.assert_close(model(source, read)[0], logits)
    torch.testing.assert_close(model.weights(source, read)[0], weights)


def test_translation_has_the_papers_number_of_parameters():
    words = Vocabulary([str(number) for number in range(8000 - len(FRAMED))], special=FRAMED)
    model = Seq2Seq(words, **TRANSLATION)
    counted = {name: parameter.numel() for name, parameter in model.named_parameters()}
    assert sum(counted.values()) == 8_180_544
    assert sum(counted.values()) - counted["embeddings.weight"] == 6_132_544


def test_copying_has_the_maps_of_the_authors_code():
    shapes = {name: tuple(part.shape) for name, part in Seq2Seq(WORDS).named_parameters() if "weight" in name}
    assert shapes == {
        "embeddings.weight": (13, 256),
        "encoder.weight_ih_l0": (1024, 256),
        "encoder.weight_hh_l0": (1024, 256),
        "decoder.weight_ih_l0": (1024, 256),
        "decoder.weight_hh_l0": (1024, 256),
        "attention.heads.0.query.weight": (256, 256),
        "attention.heads.0.context.weight": (256, 256),
        "output.hidden.weight": (256, 512),
        "output.words.weight": (13, 256),
    }


@pytest.mark.parametrize("form", FORMS)
def test_padding_changes_nothing(form):
    model = made(form)
    source, read, right = batch()
    lengths = [5, 2, 3]
    real = torch.arange(5) < torch.tensor(lengths).unsqueeze(1)
    padded = source.masked_fill(~real, WORDS.number("pad"))
    logits, weights = model(padded, read, real), model.weights(padded, read, real)
    lexical = model.lexical(padded, read, right, real)
    for row, length in enumerate(lengths):
        alone = source[row : row + 1, :length], read[row : row + 1]
        torch.testing.assert_close(logits[row], model(*alone)[0])
        torch.testing.assert_close(weights[row, :, :, :length], model.weights(*alone)[0])
        assert not weights[row, :, :, length:].any()
        torch.testing.assert_close(lexical[row, :, :length], model.lexical(*alone, right[row : row + 1])[0])
        assert (lexical[row, :, length:] == -torch.inf).all()


@pytest.mark.parametrize("form", FORMS)
def test_lexical_is_the_right_word_under_forced_attention(form, monkeypatch):
    model = made(form)
    source, read, right = batch()
    expected = []
    for place in range(source.shape[1]):
        forced = torch.zeros(3, 1, 4, 5, dtype=torch.double)
        forced[..., place] = 1
        told = model(source, read, attention=forced).log_softmax(-1)
        expected.append(told.gather(-1, right.unsqueeze(-1)).squeeze(-1))
    torch.testing.assert_close(model.lexical(source, read, right), torch.stack(expected, -1))
    monkeypatch.setattr("attnscope.lab.models.seq2seq_output.TOGETHER", 2 * 5 * len(WORDS))  # two steps at a time
    torch.testing.assert_close(model.lexical(source, read, right), torch.stack(expected, -1))


def test_a_mean_of_contexts_is_their_sum_shared_out():
    summed, mean = made("heads, summed"), made("heads")
    source, read, _ = batch()
    states = summed.decode(summed.encode(source), read)
    total, _ = summed.attention(states.states, summed.encode(source).values, torch.ones_like(source).bool())
    shared, _ = mean.attention(states.states, mean.encode(source).values, torch.ones_like(source).bool())
    torch.testing.assert_close(total, 3 * shared)


def test_given_attention_takes_the_place_of_its_own():
    model = made("heads")
    source, read, _ = batch()
    torch.testing.assert_close(
        model(source, read, attention=model.weights(source, read)), model(source, read), rtol=0, atol=1e-14
    )
    even = torch.full((3, 1, 4, 5), 0.2, dtype=torch.double)
    torch.testing.assert_close(model(source, read, attention=even), made("heads", attention="uniform")(source, read))


def test_the_decoder_begins_with_the_mean_over_directions():
    model = made("translation")
    source, _, _ = batch()
    _, end = model.encoder(model.embeddings(source))
    for given, both in zip(model.encode(source).start, end, strict=True):
        torch.testing.assert_close(given, torch.stack([(both[0] + both[1]) / 2, (both[2] + both[3]) / 2]))


@pytest.mark.parametrize("form", ["copying", "translation", "heads"])
def test_it_goes_on_from_where_it_was(form):
    model = made(form)
    source, read, _ = batch()
    encoded = model.encode(source)
    first = model.decode(encoded, read[:, :2])
    second = model.decode(type(encoded)(encoded.values, encoded.real, first.end), read[:, 2:])
    torch.testing.assert_close(torch.cat([first.logits, second.logits], 1), model(source, read))


def test_looked_up_inputs_give_the_same_states_and_gradients():
    torch.manual_seed(0)
    embeddings, cells = nn.Embedding(7, 5).double(), nn.LSTM(5, 4, batch_first=True).double()
    ids = torch.randint(7, (3, 6))
    start = tuple(torch.randn(1, 3, 4, dtype=torch.double, requires_grad=True) for _ in range(2))
    every = [embeddings.weight, *cells.parameters(), *start]
    told = []
    for states, (h, c) in (
        run_cells(cells, embeddings(ids), start),
        run_looked_up(cells, embeddings, ids, start),
    ):
        value = (states * torch.arange(72.0, dtype=torch.double).view(3, 6, 4)).sin().sum() + (h * c * 3).sum()
        told.append((states, h, c, *torch.autograd.grad(value, every)))
    for plain, quick in zip(*told, strict=True):
        torch.testing.assert_close(quick, plain)


def test_training_takes_the_quick_way_to_the_same_gradients():
    model = made()
    source, read, right = batch(8, 5, 5)
    gradients = []
    for mode in (False, True):
        model.train(mode).zero_grad()
        model.loss(model(source, read), right).backward()
        gradients.append({name: part.grad.clone() for name, part in model.named_parameters()})
    assert all(not torch.equal(part, torch.zeros_like(part)) for part in gradients[1].values())
    torch.testing.assert_close(gradients[1], gradients[0])


def test_loss_and_accuracy_do_not_count_padding():
    model = made()
    source, read, right = batch()
    right[0, 2:] = WORDS.number("pad")
    logits = model(source, read)
    told = logits.log_softmax(-1).gather(-1, right.unsqueeze(-1)).squeeze(-1)
    counted = right != WORDS.number("pad")
    torch.testing.assert_close(model.loss(logits, right), -told[counted].mean())
    assert model.accuracy(logits, right) == pytest.approx(float((logits.argmax(-1) == right)[counted].double().mean()))


def test_a_record_is_cross_attention():
    model = made("heads").float()
    record = model.record("3 1 2", "2 1")
    assert record.stack == "cross"
    assert record.query_tokens == ("[BOS]", "2", "1")
    assert record.key_tokens == ("3", "1", "2", "[EOS]")
    source, read = (torch.tensor([WORDS.encode(tokens)]) for tokens in (record.key_tokens, record.query_tokens))
    torch.testing.assert_close(record.weights[0], model.weights(source, read)[0])
    assert record.readout.tolist() == [0, 0, 1]
    label, probability = record.prediction[0]
    expected = model(source, read)[0, -1].softmax(0).detach()
    assert probability == pytest.approx(float(expected.max()))
    assert label == WORDS.tokens[int(expected.argmax())]


def test_a_record_works_with_views_and_scores(tmp_path):
    record = made("heads").float().record(["3", "1", "2"], ["2", "1"])
    scores = attnscope.attribute(record, "raw")
    assert scores.tokens == record.key_tokens
    torch.testing.assert_close(torch.as_tensor(scores.scores), record.weights[0, :, -1].mean(0))
    page = attnscope.views.head(record).save(tmp_path / "head.html")
    assert "[BOS]" in Path(page or tmp_path / "head.html").read_text(encoding="utf-8")


def test_a_record_takes_gradients_and_can_be_blanked_out():
    instrumented = made().float().instrumented()
    record = instrumented.record(("3 1 2", "2 1"), gradients=True)
    assert record.embedding_gradients.shape == (4, 6)
    assert record.embedding_gradients.any()
    assert len(attnscope.attribute(record, "blank_out", model=instrumented).scores) == 4


def test_without_an_output_it_reads_its_own():
    model = made().float()
    written = [WORDS.number("bos")]
    source = torch.tensor([WORDS.encode(["3", "1", "2", "[EOS]"])])
    while len(written) <= 128:
        word = int(model(source, torch.tensor([written]))[0, -1].argmax())
        if word == WORDS.number("eos"):
            break
        written.append(word)
    assert model.record("3 1 2").query_tokens == tuple(WORDS.decode(written))


@pytest.mark.parametrize("form", FORMS)
def test_it_is_kept(form, tmp_path):
    model = made(form).float()
    source, read, _ = batch()
    again = Seq2Seq.load(model.save(tmp_path))
    assert again.settings == model.settings
    assert torch.equal(again(source, read), model(source, read))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"cell": "rnn"}, "cell= is lstm or gru"),
        ({"contexts": "max"}, "contexts= is sum or mean"),
        ({"output": "x"}, "output= is network or sum"),
        ({"attention": "x"}, "attention= is learned or uniform"),
        ({"activation": "x"}, "activation= is tanh or relu"),
        ({"heads": 0}, "heads= is at least 1"),
        ({"dropout": 1.0}, "dropout= is a share"),
    ],
)
def test_settings_are_checked(settings, said):
    with pytest.raises(BadInput, match=said):
        Seq2Seq(WORDS, **settings)


def test_its_vocabulary_needs_a_beginning():
    with pytest.raises(BadInput, match="special token bos"):
        Seq2Seq(Vocabulary(["a"]))
    with pytest.raises(BadInput, match="source is empty"):
        made().record("")
