"""Statistics over a corpus: what is asked is checked at once, and then measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..engine import Engine
from ..progress import Watch
from ..record.schema import checked
from . import plan
from .result import Survey

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
    special tokens of others.

    With a folder `out` every shard of `shard_size` texts is kept when it is done, and `resume` goes on from there to
    the very same tables. `engine` is "local", "cores" or "ray". The result has the same bits for any engine and any
    number of workers on machines of one kind, as long as the `threads` of each are as many. `watch` is told of progress
    after every shard.
    """
    asked = plan.checked(
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
    from .passes import measure_corpus  # what runs models takes seconds to import, and a slip is told before

    return measure_corpus(model, asked, watch)
