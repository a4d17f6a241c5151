"""The experiment: train every cell of Table 2, look at the words, judge the claims, write the report."""

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import pandas as pd

from ...engine import RECIPE, Store
from ...lab.data import ClassifiedTexts
from ..claims import without_verdicts
from ..document import Block, Figure, Heading, Paragraph
from ..writing import WHAT, Reproduction, own_folder, write_reproduction
from .contextual import contextual_finding, contextual_words
from .drawing import score_distributions
from .pretrained import pretrained_finding, pretrained_runs
from .scales import VARIANTS, Scale, scale_named
from .word_tables import comparisons

TOY = (
    "The sentences are made up and the models small: this run shows that the experiment works, and is not meant to "
    "confirm the paper's claims."
)


def reproduce_sun2020(
    out: str | Path,
    *,
    scale: str = "smoke",
    vectors: str | Path | None = None,
    encoder: str | None = None,
    engine: str = "local",
    data: str | Path | None = None,
    resume: bool = False,
) -> Reproduction:
    """Tables 1 and 2, Figures 2 to 5, the made-up sentences and every claim of Sun & Lu (2020), in the folder `out`.

    `scale` is "smoke" (made-up sentences in place of SST), "cpu" (all 112 cells of Table 2; three seeds, one for IMDB)
    or "paper" (40 epochs, three seeds). Beyond the paper, embeddings also begin as pretrained `vectors` (a GloVe file;
    by default "glove-50" if it is installed), and a frozen `encoder` (a hub name or folder) reads SST. `engine` is
    "local", or "cores" or "ray", which spread variants and seeds over workers. Every stage is kept in `out`; with
    `resume` a run goes on to the very same result.
    """
    chosen = scale_named(scale)
    folder = own_folder(out, resume=resume, begun=(RECIPE,))
    import pandas as pd

    from ...engine import engine as engine_named
    from ...lab.data import text_statistics
    from .criteria import claims_of
    from .evidence import Evidence
    from .made_up import made_up_runs, skewed_runs, term_curves
    from .report import TITLE, report_of
    from .scales import data_set
    from .sweeping import penalised, swept
    from .word_tables import comparisons, score_summary

    engine_named(engine)  # so that a wrong name is told before anything is written
    sets = {name: data_set(name, chosen, data) for name in chosen.seeds}
    recipe = {"scale": scale, "vectors": None if vectors is None else str(vectors), "encoder": encoder}
    Store(folder, WHAT, recipe).begin()
    found = [
        swept(folder / "sweeps", sets[name], variant, seeds, chosen, engine)
        for name, seeds in chosen.seeds.items()
        for variant in VARIANTS
    ]
    found.append(penalised(folder / "sweeps", sets["sst"], chosen.seeds["sst"], chosen, engine))
    made_up, made_up_curves = made_up_runs(folder / "made_up", chosen, chosen.seeds["sst"])
    evidence = Evidence(
        accuracies=pd.concat([accuracies for accuracies, _ in found], ignore_index=True),
        words=pd.concat([words for _, words in found if len(words)], ignore_index=True),
        made_up=made_up,
        skewed=skewed_runs(folder / "made_up", chosen),
    )
    terms = term_curves(folder / "terms", sets["sst"], chosen)
    more, further = next_steps(folder, sets["sst"], chosen.seeds["sst"], chosen, vectors, encoder)
    caution = TOY if chosen.toy else ""
    claims = without_verdicts(claims_of(evidence), caution)
    statistics = pd.concat([text_statistics(texts) for texts in sets.values()])
    facts = {
        "paper": TITLE,
        "runs": str(len(evidence.accuracies)),
        "seeds": ", ".join(f"{name} {len(seeds)}" for name, seeds in chosen.seeds.items()),
        "epochs at most": ", ".join(f"{variant} {epochs}" for variant, epochs in chosen.epochs.items()),
        "patience": ", ".join(f"{variant} {epochs or 'none'}" for variant, epochs in chosen.patience.items()),
        "words of a text": "all" if chosen.longest is None else f"the first {chosen.longest}",
        "versions": ", ".join(f"{name} {version(name)}" for name in ("attnscope", "torch")),
    }
    document = report_of(evidence, claims, facts, statistics, terms, made_up_curves, more, caution)
    tables = {
        "table_1": statistics,
        "table_2": evidence.accuracies,
        "scores": score_summary(evidence.words),
        "comparisons": comparisons(evidence.words),
        "made_up": made_up,
        "skewed": evidence.skewed,
        **further,
    }
    return write_reproduction(folder, document, claims, tables)


# What the paper names as next steps, run here: pretrained vectors, and a frozen contextual encoder.


SCORES = ("polarity", "attention", "local_polarity", "local_attention")


def next_steps(
    folder: Path,
    data: ClassifiedTexts,
    seeds: Sequence[int],
    scale: Scale,
    vectors: str | Path | None,
    encoder: str | None,
) -> tuple[list[Block], dict[str, pd.DataFrame]]:
    """What is told of both steps, as far as there are vectors and an encoder, and the tables behind it."""
    blocks: list[Block] = []
    tables: dict[str, pd.DataFrame] = {}
    rare = pretrained_runs(folder / "pretrained", data, seeds, scale, vectors)
    if rare is not None:
        blocks += [Heading("Pretrained vectors: do rare words gain from polar neighbours?", 2)]
        blocks += [Paragraph(pretrained_finding(rare))]
        tables["pretrained"] = rare
    if encoder is not None:
        words = contextual_words(folder / "contextual", data, seeds, scale, encoder)
        blocks += _contextual(words)
        tables["contextual"] = comparisons(words.assign(data=data.name))
    return [Heading("Beyond the paper"), *blocks] if blocks else [], tables


def _contextual(words: pd.DataFrame) -> Iterator[Block]:
    yield Heading("A frozen contextual encoder", 2)
    yield Paragraph(contextual_finding(words))
    first = words[words["seed"] == words["seed"].min()]
    panels = {score.replace("_", " "): (first, score) for score in SCORES}
    caption = "Scores by kind of word on a frozen encoder: of the word alone, and (local) in training texts."
    yield Figure("contextual", score_distributions(panels, caption), "The first seed.")
