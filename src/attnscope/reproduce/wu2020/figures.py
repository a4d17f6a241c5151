"""The paper's table and figures, made again: Table 1 and Figures 3 to 6."""

from collections.abc import Callable, Iterator, Sequence

import pandas as pd

from ...lab.models import SentimentTransformer
from ...views import tracing
from ..claims import Unmeasured
from ..document import Block, Figure, Table, Words, under
from ..experiment import Attempt, Report
from .claims import Evidence, SeedRun, accuracy_of
from .data import SEND
from .paper import ACCURACY, CONCORDANCE, PAPER_HAD, Options, Scale
from .stages import is_toy

TOY = (
    "The treebank and its raters are toys, the stories are a stand-in and the models are small: this run shows that "
    "the experiment works, and is not meant to confirm the paper's claims."
)
SENTENCE = "this wonderful film is dull and clumsy"
"""Of Figure 3: it has both kinds of feeling, and its words are in the toy treebank too."""
HANDED_DOWN = "One sentence, from the local attention at the top to the words at the input."
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
    sentence = model.instrumented().record(SENTENCE.split())
    told = "none" if stories is None else f"{len(stories.splits['train'])} of {stories.name}"
    facts = {
        "model": f"{settings.layers} layers of {settings.heads} heads, width {settings.width}, with "
        f"{settings.probabilities} and cross-entropy",
        "weights": f"all trained here. {settings.source}",
        "data": f"{len(read.splits['train']):,} sentences of {read.name} to learn from, {len(read.splits['test']):,} "
        f"whose words are scored; stories: {told}; valence of words: {read.lexicon.name}",
        "seeds": ", ".join(map(str, scale.seeds)),
        "steps": f"of {scale.sentences_per_step} sentences, {scale.epochs} epochs at most",
        "differs from the paper": f"the paper has {PAPER_HAD}",
    }
    blocks: list[Block] = [
        *_table_1(evidence),
        *under("Figure 3: attention handed down", Figure("fig03_tracing", tracing(sentence).figure(), HANDED_DOWN)),
        *_figures(evidence.sentences[0], "the sentences", ""),
        *(block for run in evidence.stories[:1] for block in _figures(run, evidence.story_source, "_stories")),
        *_regressions(evidence),
    ]
    return Report(facts, blocks, [HOW], _tables(evidence), TOY if is_toy(attempt) else "")


def _exact_regressions(run: SeedRun) -> pd.DataFrame:
    """Over the words that the lexicon has as they stand; none where they are too few."""
    try:
        return pd.DataFrame([{"method": method, **run.exact_regression(method)} for method in run.study.methods])
    except Unmeasured:
        return pd.DataFrame()


def _table_1(evidence: Evidence) -> list[Block]:
    mean, (low, high) = accuracy_of(evidence.sentences)
    rows: list[Sequence[Words]] = [["SST-5, accuracy", "paper", f"{ACCURACY:.3f}"]]
    rows += [["SST-5, accuracy", run.title, f"{run.score:.3f}"] for run in evidence.sentences]
    rows.append(["SST-5, accuracy", "mean, with its 95% interval", f"{mean:.3f} [{low:.3f}, {high:.3f}]"])
    rows.append([f"{SEND}, mean concordance", "paper", f"{CONCORDANCE:.2f}"])
    measure = f"{evidence.story_source}, mean concordance"
    rows += [[measure, run.title, f"{run.score:.2f}"] for run in evidence.stories]
    return under("Table 1: how well the models do", Table(["", "", ""], rows))


def _figures(run: SeedRun, source: str, suffix: str) -> Iterator[Block]:
    """Figures 4 to 6 of one seed on the sentences or the stories."""
    drawn = run.study.figures()

    def shown(name: str, plot: str, words: str) -> Figure:
        return Figure(f"{name}{suffix}", drawn[plot], f"{words}, seed {run.seed}.")

    words = shown("fig04_words", "cloud", "By layer-wise tracing")
    yield from under(f"Figure 4: the words with the highest scores ({source})", words)
    yield from under(
        f"Figure 5: scores against valence ({source})",
        shown("fig05_valence", "valence_softmax", "As in the paper"),
        shown("fig05_valence_length_corrected", "valence_length_corrected", "Times the words of the sentence"),
    )
    if "heads" in drawn:
        heads = shown("fig06_heads", "heads", "In percent")
        yield from under(
            f"Figure 6: heads on very positive and very negative words ({source})", heads, _head_table(run.study.heads)
        )


def _head_table(heads: pd.DataFrame) -> Table:
    """The shares of Figure 6 with their intervals over texts."""
    rows = [
        [row["tag"], str(row["head"]), f"{row['share']:.1%} ± {1.96 * row['error']:.1%}", f"{row['chance']:.1%}"]
        for row in heads.to_dict("records")
    ]
    return Table(["words", "head", "share, with its 95% interval", "chance"], rows)


def _regressions(evidence: Evidence) -> list[Block]:
    rows: list[Sequence[Words]] = [
        [
            source,
            run.title,
            str(row["method"]).replace("_", " "),
            str(row["scaling"]).replace("_", " "),
            f"{row['b2']:.3f} ± {row['b2_error']:.3f}",
            f"{row['b2_t']:.2f}",
            f"{row['b2_p']:.2g}",
            f"{row['r_squared']:.4f}",
            "yes" if row["vertex_inside"] else "no",
        ]
        for source, runs in _sources(evidence)
        for run in runs
        for row in run.study.regressions.to_dict("records")
    ]
    columns = ["", "", "method", "scores", "quadratic term", "t", "p", "r²", "turns within the range"]
    return under("Every regression", Table(columns, rows))


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
        "regressions_exact": every(_exact_regressions),
        "scores": every(lambda run: pd.DataFrame({"score": [run.score], "texts": [run.texts]})),
    }
