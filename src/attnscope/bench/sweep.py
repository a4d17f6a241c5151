"""Many runs of the attention classifier together, against one run at a time in PyTorch, equal to 1e-9 in float64."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, dropout
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ..lab.batches import order_of_epoch
from ..lab.data.packed import ClassifiedTexts, PackedTexts
from ..lab.sweep import Recipe, RunSettings, begin_runs, initial_weights, shares, sweep, train_epoch
from ..lab.sweep.kernels import kept_of_context, kept_of_tokens
from ..lab.vocabulary import Vocabulary
from .figure import Figure, faster, share, taking_turns

# The attention classifier as anybody would write it in PyTorch, one run at a time: what the sweep is held against.


Drop = Callable[[Tensor], Tensor]


class PlainClassifier(nn.Module):
    """Embedding, encoder, attention, output: the model of the paper from its equations, under the names of ours."""

    def __init__(self, run: RunSettings, size: int, width: int, outcomes: int, *, sparse: bool) -> None:
        super().__init__()
        self.run = run
        self.embeddings = nn.Embedding(size, width, sparse=sparse)
        self.context = nn.Parameter(torch.zeros(width))
        self.output = nn.Linear(width, outcomes, bias=False)
        if run.variant in {"dot_affine", "additive"}:
            self.affine = nn.Linear(width, width)
        if run.variant == "dot_lstm":
            self.lstm = nn.LSTM(width, width // 2, bidirectional=True, batch_first=True)

    def forward(
        self,
        tokens: Int64[Tensor, "text token"],
        real: Bool[Tensor, "text token"],
        drop_tokens: Drop,
        drop_context: Drop,
    ) -> Float[Tensor, "text outcome"]:
        """The logits of a padded batch."""
        values = keys = drop_tokens(self.embeddings(tokens))
        if self.run.variant == "dot_affine":
            values = keys = self.affine(values)
        elif self.run.variant == "additive":
            keys = torch.tanh(self.affine(values))
        elif self.run.variant == "dot_lstm":
            packed = pack_padded_sequence(values, real.sum(1), batch_first=True, enforce_sorted=False)
            values = keys = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]
        scores = (keys @ self.context / self.run.scaling).masked_fill(~real, -torch.inf)
        logits: Tensor = self.output(drop_context((scores.softmax(-1)[..., None] * values).sum(1)))
        return logits


class OneByOne:
    """The training of one run, as far as it is: padded texts, PyTorch's Adagrad, a batch at a time."""

    def __init__(self, model: PlainClassifier, texts: PackedTexts, recipe: Recipe) -> None:
        self.model, self.texts, self.recipe = model, texts, recipe
        self.tokens = nn.utils.rnn.pad_sequence([torch.from_numpy(text).long() for text in texts], batch_first=True)
        self.lengths = torch.from_numpy(texts.lengths)
        self.labels = torch.from_numpy(texts.labels)
        others = [weight for name, weight in model.named_parameters() if name != "embeddings.weight"]
        groups: list[dict[str, Any]] = [
            {"params": [model.embeddings.weight]},
            {"params": others, "weight_decay": model.run.l2},
        ]
        self.rule = torch.optim.Adagrad(groups, lr=recipe.rate, lr_decay=recipe.rate_decay, eps=recipe.epsilon)
        self.step = 0

    def train(self, steps: int, *, our_masks: bool) -> None:
        """So many updates more, with our dropout masks or with PyTorch's own dropout."""
        run, batches = self.model.run, -(-len(self.texts) // self.recipe.batch)
        for _ in range(steps):
            epoch, turn = divmod(self.step, batches)
            order = order_of_epoch(run.seed, epoch, len(self.texts))
            chosen = order[turn * self.recipe.batch : (turn + 1) * self.recipe.batch]
            lengths = self.lengths[chosen]
            longest = int(lengths.max())
            real = torch.arange(longest) < lengths[:, None]
            drops = _drops(run.seed, self.step, chosen, self.recipe, longest if our_masks else None)
            loss = _loss(self.model(self.tokens[chosen, :longest], real, *drops), self.labels[chosen])
            if run.penalty:
                products = self.model.output.weight @ self.model.context
                loss = loss + run.penalty * (products**2 if run.penalty_kind == "square" else products.abs()).sum()
            self.rule.zero_grad()
            loss.backward()
            with torch.sparse.check_sparse_tensor_invariants(enable=False):  # torch warns where nobody says which
                self.rule.step()
            self.step += 1


def _loss(logits: Float[Tensor, "text outcome"], labels: Int64[Tensor, " text"]) -> Float[Tensor, ""]:
    if logits.shape[1] == 1:
        return binary_cross_entropy_with_logits(logits[:, 0], labels.to(logits.dtype))
    return cross_entropy(logits, labels)


def _drops(
    seed: int, step: int, chosen: Int64[np.ndarray, " text"], recipe: Recipe, longest: int | None
) -> tuple[Drop, Drop]:
    """Dropout of the embeddings and of the context; with `longest`, by our masks."""
    if not recipe.dropout:
        return (lambda vectors: vectors), (lambda vectors: vectors)
    if longest is None:
        return (lambda vectors: dropout(vectors, recipe.dropout)), (lambda vectors: dropout(vectors, recipe.dropout))
    tokens = 2 * torch.from_numpy(kept_of_tokens(seed, step, chosen, longest, recipe.width))
    context = 2 * torch.from_numpy(kept_of_context(seed, step, chosen, recipe.width))
    return (lambda vectors: vectors * tokens), (lambda vectors: vectors * context)


SCALINGS = (0.001, 1, 10, 20, 50, 100, 10_000)
"""λ of the paper's Table 2."""
SEEDS = 2
"""So many times as many runs are trained together."""
TEXTS, WORDS, WIDTH, BATCH = 3000, 16_000, 100, 100
SMALL_BATCH = 32
"""The goals for DP come from a trial with it: the fewer texts an update has, the more dense gradients cost."""
STEPS = {"sparse": 10, "dense": 4}
"""How many updates of one run are timed one by one; ours are an epoch of all runs, and both are told per update."""
GOALS = {"dot": 10, "dot_affine": 2, "additive": 2, "dot_lstm": 2}
"""Over one by one with sparse gradients of the embeddings."""
DENSE_GOAL = 50
EXACT = 1e-9
EXACT_SCALINGS = (1, 10, 100)


def made_texts(count: int, words: int) -> ClassifiedTexts:
    """Random texts of 8 to 28 words, as long as those of SST, with words as frequent as in a language."""
    dice = np.random.default_rng(0)
    frequency = 1 / np.arange(10, words + 10)

    def part(size: int) -> PackedTexts:
        lengths = dice.integers(8, 29, size)
        tokens = dice.choice(words, lengths.sum(), p=frequency / frequency.sum()) + 4  # behind the special tokens
        texts = [text.tolist() for text in np.split(tokens, np.cumsum(lengths)[:-1])]
        return PackedTexts.of(texts, dice.integers(0, 2, size).tolist())

    names = [f"word {number}" for number in range(words)]
    return ClassifiedTexts("made", ("negative", "positive"), Vocabulary(names), part(count), part(1), part(1))


def measure_sweep() -> Iterator[Figure]:
    """Each variant for time, then each for equality with dropout and without."""
    data = made_texts(TEXTS, WORDS)
    yield from _speed(data, "dot", SMALL_BATCH)
    for variant in GOALS:
        yield from _speed(data, variant, BATCH)
    small = made_texts(3 * BATCH, WORDS // 8)
    for variant in GOALS:
        for rate in (0.5, 0):
            worst = largest_difference(small, variant, rate, EXACT_SCALINGS, WIDTH)
            case = f"{variant}, float64, 3 epochs, dropout {rate}: largest difference of a weight"
            yield share(case, f"{EXACT:g}", worst, EXACT, 1.0, unit="")


def _speed(data: ClassifiedTexts, variant: str, batch: int) -> Iterator[Figure]:
    """Seconds per update of one run: ours, and one by one with sparse gradients and dense ones.

    One by one is measured with one thread and with all, and the faster counts: on a busy machine a product that two
    threads share waits for the slower of them, and ours would look better than it is.
    """
    runs = [RunSettings(variant, scaling, seed) for seed in range(SEEDS) for scaling in SCALINGS]
    recipe = Recipe(WIDTH, 1, batch, 0.02, 0.001, 0.5, "float32", None)
    threads = torch.get_num_threads()
    states = begin_runs(data, runs, recipe)
    single = {
        "sparse": OneByOne(_plain(data, RunSettings(variant), WIDTH, sparse=True), data.train, recipe),
        "dense": OneByOne(_plain(data, RunSettings(variant), WIDTH, sparse=False), data.train, recipe),
    }
    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:

        def ours() -> None:
            torch.set_num_threads(1)
            list(pool.map(partial(train_epoch, data, 0, recipe), shares(states, threads)))

        def alone(kind: str, using: int) -> None:
            torch.set_num_threads(using)
            single[kind].train(STEPS[kind], our_masks=False)

        work = {"ours": ours}
        for kind in single:
            work |= {f"{kind} {using}": partial(alone, kind, using) for using in {1, threads}}
        try:
            seconds = taking_turns(work)
        finally:
            torch.set_num_threads(threads)
    own = seconds["ours"] / (len(runs) * -(-len(data.train) // batch))
    case = f"{variant}, {len(runs)} runs together, one update of one run by {batch} texts"
    for kind, goal in (("sparse", GOALS[variant]), ("dense", DENSE_GOAL if variant == "dot" else None)):
        other, using = min((seconds[f"{kind} {count}"] / STEPS[kind], count) for count in {1, threads})
        yield faster(case, f"one by one, {kind}", own, other, goal, f"theirs is fastest with torch threads: {using}")


def largest_difference(
    data: ClassifiedTexts, variant: str, dropout: int | float, scalings: Sequence[int | float], width: int
) -> float:
    """How far any weight of any run ends from where PyTorch takes it alone, with the same masks."""
    runs = [RunSettings(variant, scaling, l2=0.0 if variant == "dot" else 1e-4) for scaling in scalings]
    epochs = 3
    recipe = Recipe(width, epochs, BATCH, 0.02, 0.001, dropout, "float64", None)
    together = sweep(data, runs, width=width, epochs=epochs, batch=BATCH, dropout=dropout, precision="float64")
    worst = 0.0
    for run, result in zip(runs, together, strict=True):
        model = _plain(data, run, width, sparse=False).double()
        model.load_state_dict(initial_weights(variant, len(data.vocabulary), width, 1, run.seed))
        OneByOne(model, data.train, recipe).train(epochs * -(-len(data.train) // BATCH), our_masks=True)
        for name, weight in model.state_dict().items():
            worst = max(worst, float((weight - result.last_weights[name]).abs().max()))
    return worst


def _plain(data: ClassifiedTexts, run: RunSettings, width: int, *, sparse: bool) -> PlainClassifier:
    """One run alone, with the weights that ours begin with."""
    model = PlainClassifier(run, len(data.vocabulary), width, 1, sparse=sparse)
    model.load_state_dict(initial_weights(run.variant, len(data.vocabulary), width, 1, run.seed))
    return model
