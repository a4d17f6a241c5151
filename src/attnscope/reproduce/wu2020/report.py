"""The report: what was run, every claim beside the paper's figure, Table 1 and Figures 3 to 6."""

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from ...views.printing import Plot
from ..claims import Claim
from ..document import Block, Document, Figure, Heading, Paragraph, Table, Words
from ..telling import claims_blocks, details_blocks
from .evidence import Evidence, Run
from .paper import ACCURACY, CONCORDANCE

TITLE = "Wu, Nguyen & Ong (2020), Structured Self-Attention Weights Encode Semantics in Sentiment Analysis"
HOW = (
    "Words are scored in the test sentences: the score of a word is its mean over all places where it stands, after a "
    "softmax over each sentence as in the paper; scores times the words of their sentence are a check. Valence is what "
    "raters say of a word, matched exactly, by its lemma, or as the mean of its forms. Regressions are on orthogonal "
    "polynomials of valence, so that t can be compared between studies and the coefficients cannot. Very positive and "
    "very negative words are those that SST's raters have so labelled as single words. Chance is Eq. 14 for even "
    "attention. The gradient is that of all outcomes' probabilities added up, as the authors have it."
)


def report_of(
    evidence: Evidence, claims: Sequence[Claim], facts: Mapping[str, str], tracing: Plot, caution: str = ""
) -> tuple[Document, dict[str, pd.DataFrame]]:
    """The report, and the tables behind it."""
    rows: list[Sequence[Words]] = [[name, said] for name, said in facts.items()]
    first = evidence.sentences[0]
    blocks: list[Block] = [
        Table(["", ""], rows),
        *claims_blocks(claims),
        Heading("The paper's table and figures"),
        *_table_1(evidence),
        Heading("Figure 3: attention handed down", 2),
        Figure(
            "fig03_tracing", tracing, "One sentence, from the local attention at the top to the words at the input."
        ),
        *_figures(first),
        *_regressions(evidence),
        Heading("The claims one by one"),
        *details_blocks(claims),
        Heading("How it was measured"),
        Paragraph(HOW),
    ]
    return Document(TITLE, blocks, caution), _tables(evidence)


def _table_1(evidence: Evidence) -> Iterator[Block]:
    yield Heading("Table 1: how well the models do", 2)
    rows: list[Sequence[Words]] = [["SST-5, accuracy", "paper", f"{ACCURACY:.3f}"]]
    rows += [["SST-5, accuracy", f"seed {run.seed}", f"{run.score:.3f}"] for run in evidence.sentences]
    rows.append(["SEND, mean concordance", "paper", f"{CONCORDANCE:.2f}"])
    rows += [["SEND, mean concordance", f"seed {run.seed}", f"{run.score:.2f}"] for run in evidence.stories]
    yield Table(["", "", ""], rows)


def _figures(run: Run) -> Iterator[Block]:
    """Figures 4 to 6 of one seed."""
    drawn = run.study.figures()
    yield Heading("Figure 4: the words with the highest scores", 2)
    yield Figure("fig04_words", drawn["cloud"], f"By layer-wise tracing, seed {run.seed}.")
    yield Heading("Figure 5: scores against valence", 2)
    yield Figure("fig05_valence", drawn["valence_softmax"], f"As in the paper, seed {run.seed}.")
    yield Figure(
        "fig05_valence_length_corrected", drawn["valence_length_corrected"], "Times the words of the sentence."
    )
    if "heads" in drawn:
        yield Heading("Figure 6: heads on very positive and very negative words", 2)
        yield Figure("fig06_heads", drawn["heads"], f"In percent, seed {run.seed}.")


def _regressions(evidence: Evidence) -> Iterator[Block]:
    yield Heading("Every regression", 2)
    rows: list[Sequence[Words]] = [
        [
            f"seed {run.seed}",
            str(row["method"]).replace("_", " "),
            str(row["scaling"]).replace("_", " "),
            f"{row['b2']:.3f} ± {row['b2_error']:.3f}",
            f"{row['b2_t']:.2f}",
            f"{row['b2_p']:.2g}",
            "yes" if row["vertex_inside"] else "no",
        ]
        for run in evidence.sentences
        for row in run.study.regressions.to_dict("records")
    ]
    yield Table(["", "method", "scores", "quadratic term", "t", "p", "turns within the range"], rows)


def _tables(evidence: Evidence) -> dict[str, pd.DataFrame]:
    def every(name: str) -> pd.DataFrame:
        return pd.concat([getattr(run.study, name).assign(seed=run.seed) for run in evidence.sentences])

    return {
        "regressions": every("regressions"),
        "correlations": every("correlations"),
        "heads": every("heads"),
        "evenness": pd.concat([run.evenness.assign(seed=run.seed) for run in evidence.sentences]),
        "accuracy": pd.DataFrame([{"seed": run.seed, "accuracy": run.score} for run in evidence.sentences]),
    }
