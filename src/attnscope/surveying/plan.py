"""The survey and its plan: what is asked is checked before a model is loaded, so nobody waits to hear of a slip."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ..corpora import named_file
from ..engine import UNFINISHED, Engine, check_recipe, checked_folder, recipe_in
from ..engine import engine as engine_named
from ..errors import BadInput, check_number, check_workers
from ..progress import Watch
from ..record.schema import checked
from ..statistics import NEEDED, PARSE, ROLE_EXEMPLARS, ROLES, STATISTICS, TAGS, Need, Null, checked_null
from ..syntax import Corpus, sentences_of
from .result import Survey
from .storage import CARD, read_card

TOKENS_PER_BATCH = 2048


@checked
def survey(
    model: Any,
    corpus: Any,
    statistics: str | Sequence[str | type[Any]] | None = None,
    engine: str | Engine = "local",
    out: str | Path | None = None,
    resume: bool = False,
    *,
    null: str | Sequence[int] | None = None,
    parser: Any = None,
    limit: int | None = None,
    data: str | Path | None = None,
    shard_size: int | None = None,
    tokens_per_batch: int = TOKENS_PER_BATCH,
    threads: int | None = None,
    engine_options: Mapping[str, Any] | None = None,
    watch: Watch | None = None,
) -> Survey:
    """What each head of a model does over a corpus, exactly, without ever holding its attention.

    `model` is a loaded model, or a name or folder. `corpus` is a CoNLL-U, text or JSON-lines file, "demo", a data set
    of `CORPORA` ("ud_ewt", "ud_ewt:dev") or of the Hugging Face hub by its name, or any iterable of sentences, texts or
    lists of words; `parser` names the spaCy model that parses texts. `statistics` are names of
    `STATISTICS`, "roles", or classes; by default all that the corpus has the annotation for. `null` says what is left
    out as null attention: "first", "special", "none" or positions; by default the first token of causal models and the
    special tokens of others. "sinks" leaves these out and, beside them, each token of a sentence that many heads rest
    on, for which the model reads every sentence once more.

    With a folder `out` every shard of `shard_size` texts is kept when it is done, and `resume` goes on from there to
    the very same tables. `engine` is "local", "cores" or "ray". The result has the same bits for any engine and any
    number of workers on machines of one kind, as long as the `threads` of each are as many. `watch` is told of progress
    after every shard.
    """
    plan = plan_survey(
        corpus,
        statistics,
        engine,
        out,
        resume=resume,
        null=null,
        parser=parser,
        limit=limit,
        data=data,
        shard_size=shard_size,
        tokens_per_batch=tokens_per_batch,
        threads=threads,
        engine_options=engine_options,
    )
    from .passes import measure_corpus

    return measure_corpus(model, plan, watch)


# Which statistics are taken: those that were named, or all that the corpus has the annotation for.


MEANINGS: dict[Need, str] = {TAGS: "parts of speech", PARSE: "heads and relations"}
OUR_NAMES: dict[Any, str] = {kind: name for name, kind in STATISTICS.items()}

Kinds = dict[str, type[Any]]


@dataclass(frozen=True)
class Choice:
    """The statistics of a survey by name, whether roles are derived from them, and what the corpus did not allow."""

    statistics: Kinds
    wants_roles: bool
    left_out: dict[str, str]
    """Statistics that were not taken for want of annotation, and what they need."""

    @property
    def names(self) -> list[str]:
        """The names of the tables."""
        of_roles = [(ROLES, self.wants_roles), (ROLE_EXEMPLARS, self.wants_role_exemplars)]
        return [*self.statistics, *(name for name, wanted in of_roles if wanted)]

    @property
    def wants_role_exemplars(self) -> bool:
        """Whether cases of each role are shown beside the largest weights."""
        return self.wants_roles and "exemplars" in self.statistics

    @property
    def needs(self) -> frozenset[Need]:
        """The annotation that every sentence must have."""
        return frozenset(need for kind in self.statistics.values() for need in kind.needs)


def named_statistics(asked: Sequence[str | type[Any]] | None) -> tuple[Kinds, bool] | None:
    """The statistics that were asked for, and whether roles were; None is all that can be taken."""
    if asked is None:
        return None
    if isinstance(asked, str) or not asked:
        raise BadInput(f"statistics= is a list of {', '.join(STATISTICS)}, {ROLES}, not {asked!r}.")
    named: Kinds = {}
    for one in asked:
        if one != ROLES:
            name, kind = _named(one)
            if name in named and named[name] is not kind:
                raise BadInput(f"Two statistics are called {name}: give each a name of its own.")
            named[name] = kind
    return named, ROLES in asked


def chosen_statistics(named: tuple[Kinds, bool] | None, corpus: Corpus) -> Choice:
    """What is taken on this corpus; what was named and cannot be is refused."""
    offered = _annotation(corpus)
    possible = {name: kind for name, kind in STATISTICS.items() if offered >= set(kind.needs)}
    if named is None:
        missing = {name: _meaning(kind.needs) for name, kind in STATISTICS.items() if name not in possible}
        return Choice(possible, True, missing)
    chosen, wants_roles = named
    for name, kind in chosen.items():
        if missing_here := [need for need in kind.needs if need not in offered]:
            raise BadInput(
                f"{name} needs {_meaning(missing_here)}, and the first sentence of {corpus.name} has none: give"
                " annotated ones (CoNLL-U), or a parser (--parser, parser=)."
            )
    if wants_roles:
        chosen = chosen | {name: possible[name] for name in NEEDED if name in possible}
    return Choice(chosen, wants_roles, {})


def _meaning(needs: Sequence[Need]) -> str:
    return " and ".join(MEANINGS[need] for need in needs)


def _named(one: Any) -> tuple[str, type[Any]]:
    """A statistic by its name, or a class; a class of ours goes by the name it has here."""
    if isinstance(one, str):
        if one not in STATISTICS:
            raise BadInput(f"There is no statistic {one!r}: choose {', '.join(STATISTICS)} or {ROLES}.")
        return one, STATISTICS[one]
    name = str(OUR_NAMES.get(one) or getattr(one, "__name__", type(one).__name__))
    if not all(hasattr(one, part) for part in ("empty", "update", "from_state", "needs", "second_pass")):
        raise BadInput(f"{name} is no statistic: give a class such as those of STATISTICS.")
    if name in (ROLES, ROLE_EXEMPLARS) or STATISTICS.get(name, one) is not one:
        raise BadInput(f"There is another statistic called {name}: give yours a name of its own.")
    return name, one


def _annotation(corpus: Corpus) -> set[str]:
    """What the first sentence has; a parser that cannot be loaded is reported here, before anything is written.

    Later sentences that have less are skipped and counted, as are all that a model cannot read.
    """
    first = next(corpus.sentences())
    parsed = first.heads is not None and first.relations is not None
    return ({TAGS} if first.tags is not None else set()) | ({PARSE} if parsed else set())


SHARD_SIZE, SMALLEST_SHARD, LARGEST_SHARD, SHARDS = 64, 8, 256, 32
"""Texts in a shard where the size of the corpus is not known; where it is, about so many shards within these limits."""
MOST_IN_SHARD = 2**31
"""Fewer than the numbers that a shard has for its sentences."""


@dataclass(frozen=True)
class Plan:
    """All that a survey is to do, but for the model."""

    choice: Choice
    corpus: Corpus
    engine: Engine
    is_local: bool
    """Whether the work is done in this process."""
    folder: Path | None
    null: Null | None
    """None is what is usual for the model."""
    limit: int | None
    shard_size: int
    tokens_per_batch: int
    threads: int

    @property
    def unfinished(self) -> Path | None:
        """Where the shards are kept until all are done."""
        return None if self.folder is None else self.folder / UNFINISHED

    def recipe(self, null: Null | None) -> dict[str, Any]:
        """What must be asked again for a survey to go on; the model comes on top."""
        return {
            "corpus": self.corpus.name,
            "statistics": self.choice.names,
            "null": list(null) if isinstance(null, tuple) else null,
            "limit": self.limit,
            "parser": self.corpus.parser,
            "shard_size": self.shard_size,
            "tokens_per_batch": self.tokens_per_batch,
            "threads": self.threads,
        }


def plan_survey(
    corpus: Any,
    statistics: Sequence[str | type[Any]] | None,
    engine: str | Engine,
    out: str | Path | None,
    *,
    resume: bool,
    null: str | Sequence[int] | None,
    parser: Any,
    limit: int | None,
    data: str | Path | None,
    shard_size: int | None,
    tokens_per_batch: int,
    threads: int | None,
    engine_options: Mapping[str, Any] | None,
) -> Plan:
    """The plan, if it can be done as far as is known without the model; the arguments are those of `survey`."""
    folder = None if out is None else checked_folder(Path(out), "survey", resume=resume, finished=CARD)
    null_rule = None if null is None else checked_null(null)
    check_number("tokens_per_batch", tokens_per_batch, 1)
    if limit is not None:
        check_number("limit", limit, 0, MOST_IN_SHARD)
    if shard_size is not None:
        check_number("shard_size", shard_size, 1, MOST_IN_SHARD)
    of_each = torch.get_num_threads() if threads is None else threads
    check_workers((engine_options or {}).get("workers"), of_each)
    on_engine = _with_options(engine, of_each, engine_options)
    named = named_statistics(statistics)
    source = source_of(corpus, parser, limit, data)
    plan = Plan(
        choice=chosen_statistics(named, source),
        corpus=source,
        engine=on_engine,
        is_local=engine == "local",
        folder=folder,
        null=null_rule,
        limit=limit,
        shard_size=shard_size or usual_shard_size(source.size),
        tokens_per_batch=tokens_per_batch,
        threads=of_each,
    )
    _check_begun(plan)
    return plan


def source_of(corpus: Any, parser: Any, limit: int | None, data: str | Path | None) -> Corpus:
    """The corpus; a data set that is known by name is found in its folder ("ud_ewt", "ud_ewt:dev")."""
    path, kind = named_file(corpus, data) or (corpus, None)
    return sentences_of(path, parser=parser, limit=limit, kind=kind)


def usual_shard_size(corpus_size: int | None) -> int:
    """Enough shards for standard errors, each large enough to batch well."""
    if corpus_size is None:
        return SHARD_SIZE
    return min(max(corpus_size // SHARDS, SMALLEST_SHARD), LARGEST_SHARD)


def _check_begun(plan: Plan) -> None:
    """What the folder holds must be the same survey, as far as is known without the model."""
    if plan.folder is None or not plan.folder.exists():
        return
    theirs = read_card(plan.folder) if (plan.folder / CARD).exists() else recipe_in(plan.folder / UNFINISHED)
    if theirs is not None:
        ours = plan.recipe(plan.null)
        if plan.null is None:
            del ours["null"]
        check_recipe(plan.folder, "survey", theirs, ours)


def _with_options(engine: str | Engine, threads: int, options: Mapping[str, Any] | None) -> Engine:
    """The engine with what it is given beyond the work; more threads than one are no matter of the local one."""
    given = dict(options or {})
    if engine == "local" and given:
        raise BadInput(f"The local engine takes no options, but {', '.join(given)} were given.")
    if engine in ("cores", "ray"):
        given.setdefault("threads", threads)
    if engine == "cores" and "address" in given:
        raise BadInput("The engine cores has no address: it is this machine.")
    return partial(engine_named(engine), **given) if given else engine_named(engine)
