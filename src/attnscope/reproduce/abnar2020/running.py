"""The experiment: train the models, score the sentences, fine-tune a classifier, judge the claims, write the report."""

from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ...engine import RECIPE, Store
from ...errors import BadInput
from ..claims import without_verdicts
from ..writing import WHAT, Reproduction, own_folder, write_reproduction
from .paper import scale_named

DATA = "data"
PARSER = "en_core_web_sm"
TOY = (
    "The shipped grammar is a toy and the model of a smoke run hardly trained: this run shows that the experiment "
    "works, and is not meant to confirm the paper's claims."
)


def reproduce_abnar2020(
    out: str | Path,
    *,
    scale: str = "smoke",
    model: Any = None,
    encoder: str | None = None,
    corpus: str | None = None,
    data: str | Path | None = None,
    parser: str | None = None,
    limit: int | None = None,
    resume: bool = False,
) -> Reproduction:
    """Tables 1 to 3, Figures 1 to 4 and every claim of Abnar & Zuidema (2020), in the folder `out`.

    `scale` is "smoke" (the shipped grammar, a small model, a trial), "cpu" (three seeds on verbs of real text, tested
    on Linzen's subset) or "paper" (Linzen's own file, given as `corpus`). `corpus` is a file of agreement examples to
    train on; without one it is built from the data sets in `data`, `limit` texts of each, by the spaCy model `parser`.
    `encoder` is what the classifier of Table 3 is fine-tuned from, and `model` the masked language model of Figure 4.

    Every stage is kept in `out` while it grows; with `resume` a run goes on to the very same result.

    Raises:
        BadInput: If the scale is not known, a model or data set is not there, or the folder holds something else.
    """
    chosen = scale_named(scale)
    folder = own_folder(out, resume=resume, begun=(RECIPE, DATA))
    # what runs models takes seconds to import: a slip is told before
    from .criteria import claims_of
    from .drawing import figures_of, illustrated
    from .examples import examples_of
    from .pronouns import pronoun_blocks
    from .report import TITLE, report_of
    from .stages import evidence_of, model_of, scores_of, sentiment_of, some_of

    pronouns = pronoun_blocks(_loaded(model))
    recipe = {"scale": scale, "corpus": _told(corpus), "parser": parser or PARSER, "limit": limit}
    store = Store(folder, WHAT, recipe)
    try:
        examples = examples_of(chosen, folder / DATA, corpus=corpus, data=data, parser=parser or PARSER, limit=limit)
    except BadInput:
        _remove_if_empty(folder)
        raise
    store.begin()
    sentiment, about = sentiment_of(folder, chosen, encoder, examples, data)
    models = {seed: model_of(folder, chosen, examples, seed) for seed in chosen.seeds}
    first = models[chosen.seeds[0]]
    tested = some_of(examples.testing, chosen.sentences, first.settings.positions)
    scores = {seed: scores_of(folder, trained, tested, seed) for seed, trained in models.items()}
    evidence = evidence_of(models, scores, examples, sentiment)
    caution = TOY if chosen.text == "grammar" and corpus is None else ""
    claims = without_verdicts(claims_of(evidence), caution)
    settings = first.settings
    facts = {
        "paper": TITLE,
        "agreement model": f"{settings.layers} layers of {settings.heads} heads, width {settings.width}",
        "trained on": f"{len(examples.training):,} sentences {examples.told}",
        "seeds": ", ".join(map(str, chosen.seeds)),
        "blanked in training": f"{chosen.blanked:.0%} of the words",
        "tables 1 and 2": f"{len(tested):,} of {len(examples.testing):,} test sentences",
        "table 3": about,
        "versions": ", ".join(f"{name} {version(name)}" for name in ("attnscope", "torch", "transformers")),
    }
    document, tables = report_of(
        evidence,
        claims,
        facts=facts,
        illustrations=figures_of(illustrated(first)),
        pronouns=pronouns,
        caution=caution,
    )
    return write_reproduction(folder, document, claims, tables)


def _loaded(model: Any) -> Any:
    """The model of Figure 4, if one is named."""
    from ...capture import load

    return load(model) if isinstance(model, str) else model


def _told(corpus: str | None) -> list[str] | None:
    """The name of a file and what tells its content, so that another is not taken for it."""
    if corpus is None:
        return None
    path = Path(corpus)
    if not path.is_file():
        raise BadInput(f"There is no file {path}: give one that attnscope data build agreement has written.")
    return [path.name, sha256(path.read_bytes()).hexdigest()]


def _remove_if_empty(folder: Path) -> None:
    """Who asked for what cannot be done finds nothing written."""
    for place in (folder / DATA, folder):
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()
