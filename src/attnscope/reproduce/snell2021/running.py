"""The experiment: every stage in the order of what matters most, the claims, and the report."""

from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

from ...corpora import dataset
from ...engine import RECIPE, Store
from ...errors import BadInput
from ..claims import without_verdicts
from ..writing import WHAT, Reproduction, own_folder, write_reproduction

DERIVED = ("proxy-is-logistic", "initial-gradient-is-cooccurrence", "optimal-attention-may-avoid-largest-beta")
"""Claims about equations, which a toy shows as well as any model."""
TOY = (
    "Texts and pairs are made up and the models small: this run shows that the experiment works, and is not meant to "
    "confirm the paper's claims."
)
DONE = "done"
"""The part that names the stages that are done."""
STAGES = ("copying", "locality", "theory", "classification", "heads", "translation")


def reproduce_snell2021(
    out: str | Path,
    *,
    scale: str = "smoke",
    stages: str | Sequence[str] | None = None,
    engine: str = "local",
    data: str | Path | None = None,
    vectors: str | Path | None = None,
    resume: bool = False,
) -> Reproduction:
    """Figures 3, 6 and 7, Tables 2 to 11 and every claim of Snell et al. (2021), in the folder `out`.

    `scale` is "smoke" (made-up data, short sequences), "cpu" (20 seeds of copying, six data sets of texts and Multi30k)
    or "paper". A data set that is not found is left out, and its claims say so. `stages` are some of copying, locality,
    theory, classification, heads and translation, with commas between them; all by default. Claims of others are not
    measured. Each training is kept in `out`, so that stages may be run one after the other with `resume`: the report
    has all that are done. A run that was stopped goes on to the very same result, on the same engine. `engine` is
    "local", or "cores" or "ray", which spread the trainings over workers of one thread each. `vectors` are those that
    the words of texts begin with: a GloVe file, or "glove-50" for the package; by default they begin at random, as they
    do in the authors' code.
    """
    asked = _asked(stages)
    folder = own_folder(out, resume=resume, begun=(RECIPE,))
    from ...engine import engine as engine_named
    from ...lab.word_vectors import said_vectors
    from .criteria import claims_of
    from .measuring import measured, wanted_data
    from .paper import TITLE
    from .report import report_of
    from .scales import scale_named

    chosen = scale_named(scale)
    engine_named(engine)  # so that a wrong name is told before anything is written
    vectors = said_vectors(vectors)
    recipe = {"scale": scale, "vectors": None if vectors is None else Path(vectors).name}
    store = Store(folder, WHAT, recipe)
    done = store.find(DONE) or ()
    asked = tuple(stage for stage in STAGES if stage in (*asked, *done))
    missing = {} if chosen.toy else missing_data(wanted_data(asked, chosen), data)
    store.begin()
    found = measured(folder, chosen, asked, engine, data, missing, vectors)
    store.keep(DONE, list(asked))
    caution = TOY if chosen.toy else ""
    claims = without_verdicts(claims_of(found.evidence), caution, DERIVED)
    facts = {
        "paper": TITLE,
        "scale": scale,
        "stages": ", ".join(asked),
        **({"words begin as": f"vectors of {Path(vectors).name}"} if vectors else {}),
        **({"not found": ", ".join(missing)} if missing else {}),
        "versions": ", ".join(f"{name} {version(name)}" for name in ("attnscope", "torch")),
    }
    document = report_of(found, claims, facts, chosen.told(asked), caution)
    return write_reproduction(folder, document, claims, found.tables)


def _asked(stages: str | Sequence[str] | None) -> tuple[str, ...]:
    """The stages asked for, in their order."""
    if stages is None:
        return STAGES
    named = [name.strip() for name in stages.split(",")] if isinstance(stages, str) else list(stages)
    if unknown := [name for name in named if name not in STAGES]:
        raise BadInput(f"There is no stage {unknown[0]!r}: choose of {', '.join(STAGES)}.")
    return tuple(stage for stage in STAGES if stage in named)


# Which data sets can be had: what is missing is told before anything is trained, and left out with its reason.


NAMES = {"sms": "sms_spam"}
"""Data sets that lie under another name than they have in tables."""


def missing_data(names: Iterable[str], data: str | Path | None) -> dict[str, str]:
    """Why each data set that is not there is not; it is bad input if none is there."""
    wanted = list(names)
    missing: dict[str, str] = {}
    for name in wanted:
        try:
            dataset(NAMES.get(name, name), data)
        except BadInput as reason:
            missing[name] = str(reason)
    if wanted and len(missing) == len(wanted):
        raise BadInput(missing[wanted[0]])
    return missing
