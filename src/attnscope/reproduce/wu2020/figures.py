"""The paper's table and figures, made again: Table 1 and Figures 3 to 6."""

from collections.abc import Callable, Iterator, Sequence

import pandas as pd

from ...lab.models import SentimentTransformer
from ...views import tracing
from ...views.printing import Plot
from ..document import Block, Figure, Heading, Table, Words
from ..experiment import Attempt, Report
from .claims import Evidence, SeedRun
from .data import SEND
from .paper import ACCURACY, CONCORDANCE, Options, Scale
from .stages import is_toy

TOY = (
    "The treebank and its raters are toys, the stories are a stand-in and the models are small: this run shows that "
    "the experiment works, and is not meant to confirm the paper's claims."
)
HOW = (
    "Words are scored in the test sentences: the score of a word is its mean over all places where it stands, after a"
    " softmax over each sentence as in the paper; scores times the words of their sentence are a check. Valence is "
    "what raters say of a word, matched exactly, by its lemma, or as the mean of its forms. Regressions are on "
    "orthogonal polynomials of valence, so that t can be compared between studies and the coefficients cannot. Very "
    "positive and very negative words are those that SST's raters have so labelled as single words (for stories, the "
    "lexicon says which). Chance is Eq. 14 for even attention. The gradient is that of all outcomes' probabilities "
    "added up, or of a story's valences, as the authors have it."
)


def report_of(attempt: Attempt[Scale, Options], evidence: Evidence) -> Report:
    """What was run, Table 1, Figures 3 to 6, and every regression."""
    scale, read, stories = attempt.scale, attempt["sentences read"], attempt["stories read"]
    model: SentimentTransformer = attempt["sentences"][0][0]
    settings = model.settings
    facts = {
        "model": f"{settings.layers} layers of {settings.heads} heads, width {settings.width}",
        "word vectors": settings.source,
        "loss": f"{settings.probabilities} and cross-entropy",
        "trained on": f"{len(read.splits['train']):,} sentences of {read.name}, {scale.sentences_per_step} to a step,"
        f" {scale.epochs} epochs at most",
        "words scored in": f"{len(read.splits['test']):,} test sentences",
        "stories": "none" if stories is None else f"{len(stories.splits['train'])} of {stories.name}",
        "valence": read.lexicon.name,
        "seeds": ", ".join(map(str, scale.seeds)),
    }
    blocks: list[Block] = [
        *_table_1(evidence),
        Heading("Figure 3: attention handed down", 2),
        Figure(
            "fig03_tracing",
            traced_sentence(model),
            "One sentence, from the local attention at the top to the words at the input.",
        ),
        *_figures(evidence.sentences[0], "the sentences", ""),
        *(block for run in evidence.stories[:1] for block in _figures(run, evidence.story_source, "_stories")),
        *_regressions(evidence),
    ]
    return Report(facts, blocks, [HOW], _tables(evidence), TOY if is_toy(attempt) else "")


def _table_1(evidence: Evidence) -> Iterator[Block]:
    yield Heading("Table 1: how well the models do", 2)
    rows: list[Sequence[Words]] = [["SST-5, accuracy", "paper", f"{ACCURACY:.3f}"]]
    rows += [["SST-5, accuracy", f"seed {run.seed}", f"{run.score:.3f}"] for run in evidence.sentences]
    rows.append([f"{SEND}, mean concordance", "paper", f"{CONCORDANCE:.2f}"])
    rows += [
        [f"{evidence.story_source}, mean concordance", f"seed {run.seed}", f"{run.score:.2f}"]
        for run in evidence.stories
    ]
    yield Table(["", "", ""], rows)


def _figures(run: SeedRun, source: str, suffix: str) -> Iterator[Block]:
    """Figures 4 to 6 of one seed on the sentences or the stories."""
    drawn = run.study.figures()
    yield Heading(f"Figure 4: the words with the highest scores ({source})", 2)
    yield Figure(f"fig04_words{suffix}", drawn["cloud"], f"By layer-wise tracing, seed {run.seed}.")
    yield Heading(f"Figure 5: scores against valence ({source})", 2)
    yield Figure(f"fig05_valence{suffix}", drawn["valence_softmax"], f"As in the paper, seed {run.seed}.")
    yield Figure(
        f"fig05_valence_length_corrected{suffix}",
        drawn["valence_length_corrected"],
        f"Times the words of the sentence, seed {run.seed}.",
    )
    if "heads" in drawn:
        yield Heading(f"Figure 6: heads on very positive and very negative words ({source})", 2)
        yield Figure(f"fig06_heads{suffix}", drawn["heads"], f"In percent, seed {run.seed}.")


def _regressions(evidence: Evidence) -> Iterator[Block]:
    yield Heading("Every regression", 2)
    rows: list[Sequence[Words]] = [
        [
            source,
            f"seed {run.seed}",
            str(row["method"]).replace("_", " "),
            str(row["scaling"]).replace("_", " "),
            f"{row['b2']:.3f} ± {row['b2_error']:.3f}",
            f"{row['b2_t']:.2f}",
            f"{row['b2_p']:.2g}",
            "yes" if row["vertex_inside"] else "no",
        ]
        for source, runs in _sources(evidence)
        for run in runs
        for row in run.study.regressions.to_dict("records")
    ]
    yield Table(["", "", "method", "scores", "quadratic term", "t", "p", "turns within the range"], rows)


def _sources(evidence: Evidence) -> list[tuple[str, tuple[SeedRun, ...]]]:
    """The runs on sentences and on stories, with what these are."""
    return [("sentences", evidence.sentences), (evidence.story_source, evidence.stories)]


def _tables(evidence: Evidence) -> dict[str, pd.DataFrame]:
    def every(table_of: Callable[[SeedRun], pd.DataFrame]) -> pd.DataFrame:
        return pd.concat(
            [table_of(run).assign(seed=run.seed, data=source) for source, runs in _sources(evidence) for run in runs]
        )

    return {
        "regressions": every(lambda run: run.study.regressions),
        "correlations": every(lambda run: run.study.correlations),
        "heads": every(lambda run: run.study.heads),
        "evenness": every(lambda run: run.evenness),
        "scores": every(lambda run: pd.DataFrame({"score": [run.score]})),
    }


# Figure 3: the attention of one sentence handed down from layer to layer.


SENTENCE = "this wonderful film is dull and clumsy"
"""Written for this, of words that the toy treebank has too."""


def traced_sentence(model: SentimentTransformer) -> Plot:
    """The printed tracing view of a sentence with both kinds of feeling."""
    return tracing(model.instrumented().record(SENTENCE.split())).figure()
