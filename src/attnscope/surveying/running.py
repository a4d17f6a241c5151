"""Statistics over a corpus: an engine maps the shards, they are merged in their order, so any engine gives the same.

The corpus is read again for a statistic that needs a second pass. Memory does not grow with the corpus: states are
merged as they come, into a fixed number of groups, out of which the standard errors are made.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ..capture import InstrumentedModel, load
from ..capture.card import card_of
from ..engine import Engine, check_recipe
from ..engine import engine as engine_named
from ..errors import BadInput
from ..statistics import ROLES, checked_null, merged, roles, with_errors
from ..syntax import Corpus
from .asking import (
    at_least,
    chosen_statistics,
    identity,
    left_out,
    self_attention,
    source_of,
    usual_null,
    usual_shard_size,
)
from .folding import Fold
from .ledger import Ledger, checked_folder, clear
from .passes import Passes, Watch, corpus_fingerprint
from .result import CARD, Survey
from .shard import Job, ShardWorker

TOKENS_PER_BATCH = 2048


def survey(
    model: Any,
    corpus: Any,
    statistics: Sequence[str | type[Any]] | None = None,
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
    special tokens of others.

    With a folder `out` every shard of `shard_size` texts is kept when it is done, and `resume` goes on from there to
    the very same tables. `engine` is "local" or "ray". The result has the same bits for any engine and any number of
    workers on machines of one kind, as long as the `threads` of each are as many. `watch` is told of progress after
    every shard.
    """
    folder = None if out is None else checked_folder(Path(out), resume, CARD)
    loaded = model if isinstance(model, InstrumentedModel) else load(model)
    source = source_of(corpus, parser, limit, data)
    chosen, wants_roles = chosen_statistics(statistics, source)
    job = Job(
        statistics=chosen,
        null=usual_null(loaded) if null is None else checked_null(null),
        stack=self_attention(loaded),
        parser=source.parser,
        needs=frozenset(need for kind in chosen.values() for need in kind.needs),
        tokens_per_batch=at_least("tokens_per_batch", tokens_per_batch, 1),
        threads=at_least("threads", torch.get_num_threads() if threads is None else threads, 1),
    )
    size = usual_shard_size(source.size) if shard_size is None else at_least("shard_size", shard_size, 1)
    recipe = {
        "model": identity(loaded),
        "corpus": source.name,
        "statistics": [*chosen, *([ROLES] if wants_roles else [])],
        "null": job.null if isinstance(job.null, str) else list(job.null),
        "limit": limit,
        "parser": source.parser,
        "shard_size": size,
        "tokens_per_batch": tokens_per_batch,
        "threads": job.threads,
    }
    if folder is not None and (folder / CARD).exists():
        return _finished(folder, recipe, source, size)
    on_engine = _with_options(engine, job.threads, engine_options)  # refused before anything is written
    passes = Passes(
        corpus=source,
        shard_size=size,
        # elsewhere a model given by name is loaded by name, and one that is at hand travels
        model=model if engine != "local" and isinstance(model, str) else loaded,
        engine=on_engine,
        ledger=Ledger(folder, recipe),
        count=1 + any(kind.second_pass is not None for kind in chosen.values()),
        watch=watch,
    )
    with _threads_restored():
        first, groups = _all_passes(passes, job)
        shape = ShardWorker(loaded, job).shape
    _check_found(first, source)
    tables, by_layer = _tables(groups)
    if wants_roles:
        tables[ROLES] = roles(tables)
    read = {**first.totals, "skipped": dict(first.skipped), "corpus_fingerprint": passes.fingerprint}
    read["left_out"] = left_out(chosen) if statistics is None else {}
    result = Survey(tables, by_layer, {**card_of(loaded.model), **recipe, **vars(shape), **read})
    if folder is not None:
        result.save(folder)
        passes.ledger.close()
    return result


def _finished(folder: Path, recipe: Mapping[str, Any], source: Corpus, shard_size: int) -> Survey:
    """The survey that a folder holds, if it is the one that is asked for."""
    finished = Survey.load(folder)
    check_recipe(folder, "survey", finished.card, recipe)
    # the corpus is read only if nothing else differs
    check_recipe(folder, "survey", finished.card, {"corpus_fingerprint": corpus_fingerprint(source, shard_size)})
    clear(folder)
    return finished


@contextmanager
def _threads_restored() -> Iterator[None]:
    """Workers set the number of threads; where one runs in this process, the user's own is put back."""
    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _all_passes(passes: Passes, job: Job) -> tuple[Fold, dict[str, list[Any]]]:
    """The first pass, and the groups of each statistic after its last."""
    first = passes.run(1, job)
    again = {name: kind.second_pass for name, kind in job.statistics.items() if kind.second_pass is not None}
    if not again or not first.groups:
        return first, first.groups
    before = {name: merged(first.groups[name]) for name in again}
    second = passes.run(2, replace(job, statistics=again, before=before))
    return first, {**first.groups, **second.groups}


def _tables(groups: Mapping[str, Sequence[Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    tables = {name: with_errors(of_one, lambda statistic: statistic.result()) for name, of_one in groups.items()}
    by_layer = {name: with_errors(of_one, lambda statistic: statistic.by_layer()) for name, of_one in groups.items()}
    return tables, {name: table for name, table in by_layer.items() if table is not None}


def _check_found(fold: Fold, corpus: Corpus) -> None:
    if fold.totals["sentences"] == 0:
        reasons = ", ".join(f"{reason} ({count})" for reason, count in fold.skipped.most_common(3))
        raise BadInput(f"No sentence of {corpus.name} could be read: {reasons or 'there is none'}.")


def _with_options(engine: str | Engine, threads: int, options: Mapping[str, Any] | None) -> Engine:
    """The engine with what it is told beyond the work; more threads than one are no matter of the local one."""
    told = dict(options or {})
    if engine == "local" and told:
        raise BadInput(f"The local engine takes no options, but {', '.join(told)} were given.")
    if engine == "ray":
        told.setdefault("threads", threads)
    return partial(engine_named(engine), **told) if told else engine_named(engine)
