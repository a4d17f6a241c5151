"""The experiment: every stage in the order of what matters most, the claims, and the report."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from ...errors import BadInput
from ..recipe import RECIPE, check_begun, keep_recipe
from ..writing import Reproduction, own_folder, write_reproduction

TOY = (
    "Texts and pairs are made up and the models small: this run shows that the experiment works, and is not meant to "
    "confirm the paper's claims."
)
STAGES = ("copying", "locality", "theory", "classification", "heads", "translation")


def reproduce_snell2021(
    out: str | Path,
    *,
    scale: str = "smoke",
    stages: str | Sequence[str] | None = None,
    engine: str = "local",
    data: str | Path | None = None,
    resume: bool = False,
) -> Reproduction:
    """Figures 3, 6 and 7, Tables 2 to 11 and every claim of Snell et al. (2021), in the folder `out`.

    `scale` is "smoke" (made-up data, short sequences), "cpu" (20 seeds of copying, six data sets of texts and Multi30k)
    or "paper". A data set that is not found is left out, and its claims say so. `stages` are some of copying, locality,
    theory, classification, heads and translation, with commas between them; all by default. Claims of others are not
    measured. Each training is kept in `out`, so that stages may be run one after the other with `resume`, and a run
    that was stopped goes on to the very same result. `engine` is "local", or "cores" or "ray", which spread the
    trainings over workers.
    """
    asked = _asked(stages)
    folder = own_folder(out, resume=resume, begun=(RECIPE,))
    import pandas as pd

    from ...engine import engine as engine_named
    from .available import missing_data
    from .classification import classification
    from .copying import copying
    from .criteria import claims_of
    from .evidence import Evidence
    from .heads import heads
    from .locality import locality
    from .paper import TITLE
    from .report import report_of
    from .scales import scale_named
    from .theory import theory
    from .translation import NAME, translation

    chosen = scale_named(scale)
    engine_named(engine)  # so that a wrong name is told before anything is written
    texts = chosen.classification.data if "classification" in asked else {}
    pairs = (NAME,) if "translation" in asked else ()
    missing = {} if chosen.toy else missing_data([*texts, *pairs], data)
    texts = {name: each for name, each in texts.items() if name not in missing}
    recipe = {"scale": scale}
    check_begun(folder, recipe)
    keep_recipe(folder, recipe)
    nothing = pd.DataFrame()
    tables: dict[str, pd.DataFrame] = {}
    if "copying" in asked:
        tables["copying"] = copying(folder / "copying", chosen.copying, engine)
    if "locality" in asked:
        tables["locality"] = locality(folder / "locality", chosen.locality, engine)
    derived = theory(chosen.widths) if "theory" in asked else {}
    found = []
    if texts:
        found.append(
            classification(folder / "classification", replace(chosen.classification, data=texts), engine, data)
        )
    if "heads" in asked:
        tables["heads"], tables["heads_tried"] = heads(folder / "heads", chosen.heads, engine)
    if pairs and NAME not in missing:
        found.append(translation(folder / "translation", chosen.translation, engine, data))

    def joined(name: str) -> pd.DataFrame:
        return pd.concat([stage[name] for stage in found], ignore_index=True) if found else nothing

    evidence = Evidence(
        copying=tables.get("copying", nothing),
        heads=tables.get("heads", nothing),
        locality=tables.get("locality", nothing),
        agreements=joined("agreements"),
        contexts=joined("contexts"),
        theory=derived,
        missing=missing,
    )
    claims = claims_of(evidence)
    statistics, performance = joined("statistics"), joined("performance")
    facts = {
        "paper": TITLE,
        "scale": scale,
        "stages": ", ".join(asked),
        **({"not found": ", ".join(missing)} if missing else {}),
        "versions": ", ".join(f"{name} {version(name)}" for name in ("attnscope", "torch")),
    }
    document = report_of(evidence, claims, facts, statistics, performance, TOY if chosen.toy else "")
    kept = {"agreements": evidence.agreements, "contexts": evidence.contexts, "performance": performance}
    tables |= {name: table for name, table in {**kept, "table_9": statistics, **derived}.items() if len(table)}
    return write_reproduction(folder, document, claims, tables)


def _asked(stages: str | Sequence[str] | None) -> tuple[str, ...]:
    """The stages asked for, in their order."""
    if stages is None:
        return STAGES
    named = [name.strip() for name in stages.split(",")] if isinstance(stages, str) else list(stages)
    if unknown := [name for name in named if name not in STAGES]:
        raise BadInput(f"There is no stage {unknown[0]!r}: choose of {', '.join(STAGES)}.")
    return tuple(stage for stage in STAGES if stage in named)
