"""The report: what was run, every claim beside the paper's figure, every table and figure."""

from collections.abc import Mapping, Sequence

import pandas as pd

from ..claims import Claim
from ..document import Block, Document, Heading, Paragraph, Table, Words
from ..telling import claims_blocks, details_blocks
from .evidence import Evidence
from .telling_tables import accuracy_blocks, correlation_blocks, sentiment_blocks, subject_blocks

TITLE = "Abnar & Zuidema (2020), Quantifying Attention Flow in Transformers"
HOW = (
    "Heads are averaged; in rollout and flow half of every layer is the residual. Scores are the row of [CLS]; flows "
    "are divided by their sum. Blank-out puts [UNK] in the place of each token, [CLS] and the verb's place too, and "
    "follows the probability of the right number. Gradients are of p(right) - p(wrong) at the embeddings, by their "
    "length. Correlations are per sentence; a table shows their mean ± population SD, and intervals are those of "
    "means when sentences are drawn again (1,000 times). Scores are rounded to 1e-9 before they are ranked. Claims "
    "about Tables 1 and 2 are judged as the paper has them, by the authors' ranks over all tokens, and again by "
    "average ranks and over the words alone. Layers count from one, as in the paper."
)
DIFFERENT = (
    "The paper's model learned from a tenth of Linzen's sentences and, as its code shows, from the answers of an "
    "LSTM; these learn from the right numbers alone, at a higher rate (1e-3), and stop when held-out sentences get "
    "no better. Padding is masked, which theirs was not. Training, validation and held-out examples never have the "
    "same words, but two verbs of one long sentence may be in two of them. Sentences of more than 62 words before "
    "the verb are left out; for Table 3, those of more than 64 tokens."
)


def report_of(
    evidence: Evidence,
    claims: Sequence[Claim],
    *,
    facts: Mapping[str, str],
    illustrations: Sequence[Block],
    pronouns: Sequence[Block],
    caution: str = "",
) -> tuple[Document, dict[str, pd.DataFrame]]:
    """The report, and the tables behind it. `facts` say what was run; figures 1 to 4 come as blocks."""
    correlations = evidence.tables()
    rows: list[Sequence[Words]] = [[name, said] for name, said in facts.items()]
    blocks: list[Block] = [
        Table(["", ""], rows),
        *claims_blocks(claims),
        Heading("The paper's tables"),
        *correlation_blocks(correlations, evidence),
        *sentiment_blocks(evidence.sentiment),
        Heading("The paper's figures"),
        *illustrations,
        *pronouns,
        Heading("Beyond the paper"),
        *subject_blocks(evidence.subjects),
        *accuracy_blocks(evidence),
        Heading("The claims one by one"),
        *details_blocks(claims),
        Heading("How it was measured"),
        Paragraph(HOW),
        Paragraph(DIFFERENT),
    ]
    tables = {
        "tables_1_and_2": correlations,
        "saturation": evidence.saturation,
        "evenness": evidence.evenness,
        "subjects": evidence.subjects,
        "accuracy": accuracy_table(evidence),
    }
    if not isinstance(evidence.sentiment, str):
        tables["table_3"] = evidence.sentiment.table().rename(columns={"reference": "source"}).drop(columns="seed")
    return Document(TITLE, blocks, caution), tables


def accuracy_table(evidence: Evidence) -> pd.DataFrame:
    """By seed, kind of sentence and attractors: how many verbs are right, and of how many."""
    rows = [
        {"seed": run.correlations.seed, "sentences": kind, "attractors": attractors, "right": right, "of": of}
        for run in evidence.runs
        for kind, counts in (("held out", run.held_out), ("tested", run.testing))
        for attractors, (right, of) in counts.items()
    ]
    return pd.DataFrame(rows)
