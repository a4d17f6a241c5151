"""The experiment: train the models, score the words, judge the claims, write the report."""

from importlib.metadata import version
from pathlib import Path

from ..recipe import RECIPE, check_begun, keep_recipe
from ..writing import Reproduction, own_folder, write_reproduction
from .scales import scale_named

LEXICON = "warriner"
TOY = (
    "The treebank and its raters are toys and the model is small: this run shows that the experiment works, and is not "
    "meant to confirm the paper's claims."
)


def reproduce_wu2020(
    out: str | Path,
    *,
    scale: str = "smoke",
    corpus: str | None = None,
    vectors: str | None = None,
    lexicon: str | None = None,
    data: str | Path | None = None,
    resume: bool = False,
) -> Reproduction:
    """Table 1, Figures 3 to 6 and every claim of Wu, Nguyen & Ong (2020), in the folder `out`.

    `scale` is "smoke" (a toy treebank, a small model), "cpu" (SST-5, two seeds) or "paper" (five seeds, 200 epochs).
    `corpus` is a folder laid out like SST; `vectors` a GloVe file, "glove-50" or "scratch"; `lexicon` what raters say
    of words: "warriner", "vader" or a file. Every stage is kept in `out`; with `resume` a run goes on to the very same
    result.
    """
    chosen = scale_named(scale)
    folder = own_folder(out, resume=resume, begun=(RECIPE,))
    from .criteria import claims_of
    from .data import sentences_of
    from .evidence import Evidence, Run
    from .report import TITLE, report_of
    from .stages import evenness_by_layer, model_of, right_of, study_of
    from .tracing_figure import traced_sentence

    read = sentences_of(chosen, corpus=corpus, lexicon=lexicon or LEXICON, data=data)
    toy = chosen.toy and corpus is None
    recipe = {"scale": scale, "corpus": read.name, "vectors": vectors, "lexicon": read.lexicon.name}
    check_begun(folder, recipe)
    keep_recipe(folder, recipe)
    runs, models = [], {}
    for seed in chosen.seeds:
        models[seed] = model_of(folder, chosen, read, "scratch" if toy else vectors, seed)
        study = study_of(folder, models[seed], read, seed)
        runs.append(Run(seed, right_of(models[seed], read), study, evenness_by_layer(models[seed], read)))
    evidence = Evidence(tuple(runs), ())
    claims = claims_of(evidence)
    settings = models[chosen.seeds[0]].settings
    facts = {
        "paper": TITLE,
        "model": f"{settings.layers} layers of {settings.heads} heads, width {settings.width}",
        "word vectors": settings.source,
        "trained on": f"{len(read.splits['train']):,} sentences of {read.name}",
        "words scored in": f"{len(read.splits['test']):,} test sentences",
        "valence": read.lexicon.name,
        "seeds": ", ".join(map(str, chosen.seeds)),
        "versions": ", ".join(f"{name} {version(name)}" for name in ("attnscope", "torch")),
    }
    tracing = traced_sentence(models[chosen.seeds[0]])
    document, tables = report_of(evidence, claims, facts, tracing, TOY if toy else "")
    return write_reproduction(folder, document, claims, tables)
