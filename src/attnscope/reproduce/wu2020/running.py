"""The experiment: train the models, score the words, judge the claims, write the report."""

from importlib.metadata import version
from pathlib import Path

from ...engine import RECIPE, Store
from ..claims import without_verdicts
from ..writing import WHAT, Reproduction, own_folder, write_reproduction
from .scales import scale_named

LEXICON, SCRATCH = "warriner", "scratch"
TOY = (
    "The treebank and its raters are toys, the stories are a stand-in and the models are small: this run shows that "
    "the experiment works, and is not meant to confirm the paper's claims."
)


def reproduce_wu2020(
    out: str | Path,
    *,
    scale: str = "smoke",
    corpus: str | None = None,
    send: str | Path | None = None,
    vectors: str | None = None,
    lexicon: str | None = None,
    probabilities: str = "sigmoid",
    data: str | Path | None = None,
    resume: bool = False,
) -> Reproduction:
    """Table 1, Figures 3 to 6 and every claim of Wu, Nguyen & Ong (2020), in the folder `out`.

    `scale` is "smoke" (a toy treebank, a small model), "cpu" (SST-5, two seeds) or "paper" (five seeds, 200 epochs).
    `corpus` is a folder laid out like SST, `send` the folder of SEND, without which its claims are not judged;
    `vectors` a GloVe file, "glove-50" or "scratch"; `lexicon` what raters say of words: "warriner", "vader" or a file.
    `probabilities` is how classes are learned: "sigmoid" as the authors have it, or "softmax". Every stage is kept in
    `out`; with `resume` a run goes on to the very same result.
    """
    chosen = scale_named(scale)
    folder = own_folder(out, resume=resume, begun=(RECIPE,))
    from ...lab.models.sentiment import Settings
    from .criteria import claims_of
    from .data import SEND, sentences_of, stories_of
    from .judges import Evidence
    from .report import TITLE, report_of, traced_sentence
    from .stages import sentence_run, story_run

    read = sentences_of(chosen, corpus=corpus, lexicon=lexicon or LEXICON, data=data)
    stories = stories_of(chosen, read, send)
    settings = {**chosen.settings, "probabilities": probabilities}
    Settings(**settings)  # so that a wrong one is told before anything is written
    toy = chosen.toy and corpus is None and send is None
    used = SCRATCH if toy else vectors
    recipe = {
        "scale": scale,
        "corpus": read.name,
        "stories": None if stories is None else stories.name,
        "vectors": vectors,
        "lexicon": read.lexicon.name,
        "probabilities": probabilities,
    }
    Store(folder, WHAT, recipe).begin()
    of_sentences = [sentence_run(folder, chosen, read, seed, used, settings) for seed in chosen.seeds]
    of_stories = (
        []
        if stories is None
        else [story_run(folder, chosen, stories, read.lexicon, seed, used) for seed in chosen.seeds]
    )
    evidence = Evidence(
        tuple(run for _, run in of_sentences),
        tuple(run for _, run in of_stories),
        SEND if stories is None else stories.name,
    )
    caution = TOY if toy else ""
    claims = without_verdicts(claims_of(evidence), caution)
    model = of_sentences[0][0]
    facts = {
        "paper": TITLE,
        "model": f"{model.settings.layers} layers of {model.settings.heads} heads, width {model.settings.width}",
        "word vectors": model.settings.source,
        "loss": f"{probabilities} and cross-entropy",
        "trained on": f"{len(read.splits['train']):,} sentences of {read.name}, {chosen.sentences_per_step} to a step,"
        f" {chosen.epochs} epochs at most",
        "words scored in": f"{len(read.splits['test']):,} test sentences",
        "stories": "none" if stories is None else f"{len(stories.splits['train'])} of {stories.name}",
        "valence": read.lexicon.name,
        "seeds": ", ".join(map(str, chosen.seeds)),
        "versions": ", ".join(f"{name} {version(name)}" for name in ("attnscope", "torch")),
    }
    document, tables = report_of(evidence, claims, facts, traced_sentence(model), caution)
    return write_reproduction(folder, document, claims, tables)
