"""Which sentences are read: by scale, by name, by genre, or joined to documents."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import pandas as pd

from ...corpora import CORPORA, dataset_file
from ...errors import BadInput
from ...numerals import counted
from ...surveying import Survey
from ...syntax import Corpus, Sentence, genre, joined, sentences_of, spread
from ...views.survey import shortened, spaced
from ..document import Emphasis, Strong, Table, Words
from .dependencies import EITHER
from .evidence import chosen

DOCUMENT_WORDS = 250
"""Words in a piece of a document: with all their subwords they stay below the 512 tokens that small models read."""


@dataclass(frozen=True)
class Scale:
    """What is run where nothing else is said. `splits` are those of a named data set; none means all."""

    model: str
    corpus: str
    limit: int | None
    splits: tuple[str, ...] | None = ("dev", "valid", "test")


SCALES = {
    "smoke": Scale("demo", "demo", 200),
    "cpu": Scale("gpt2", "ud_ewt", None),
    "paper": Scale("gpt2", "ud_ewt", 10_000, splits=None),
}


def toys(model: Any, corpus: Any) -> str:
    """What a reader must know before the claims where what is shipped was run; nothing where it was not."""
    shipped = {"The shipped model is a toy": model, "The shipped grammar is a toy": corpus}
    told = [what for what, run in shipped.items() if isinstance(run, str) and run == "demo"]
    if not told:
        return ""
    what = "The shipped model and grammar are toys" if len(told) == len(shipped) else told[0]
    return f"{what}: this run shows that the experiment works, and is not meant to confirm claims about GPT-2."


def scale_named(name: str) -> Scale:
    """The scale, if there is one of that name."""
    if name not in SCALES:
        raise BadInput(f"There is no scale {name!r}: choose {', '.join(SCALES)}.")
    return SCALES[name]


def corpus_of(
    asked: Any, scale: Scale, *, data: str | Path | None, parser: Any, limit: int | None, whole: bool
) -> Corpus:
    """The sentences of a corpus, of which a limit takes some that are spread evenly over it.

    With `whole`, the parse is made here and now, because sentences are to be sorted or joined.
    """
    found = _opened(scale.corpus if asked is None else asked, scale, data, parser, limit)
    if whole and found.parser is not None:
        found = Corpus(found.name, None, None, found.sentences)
    return found if limit is None else spread(found, limit)


def _opened(asked: Any, scale: Scale, data: str | Path | None, parser: Any, limit: int | None) -> Corpus:
    name, _, split = asked.partition(":") if isinstance(asked, str) else ("", "", "")
    if name not in CORPORA:
        # the shipped grammar has no end, so here a limit says how far it goes
        return sentences_of(asked, parser=parser, limit=limit if asked == "demo" else None)
    files = CORPORA[name].files
    if split and split not in files:
        raise BadInput(f"{name} has no split {split!r}: choose from {', '.join(files)}.")
    splits = [split] if split else [one for one in files if scale.splits is None or one in scale.splits]
    kind = CORPORA[name].kind
    parts = [sentences_of(dataset_file(name, one, data), parser=parser, kind=kind) for one in splits]
    sizes = [part.size for part in parts if part.size is not None]
    size = sum(sizes) if len(sizes) == len(parts) else None
    return replace(
        parts[0],
        name=f"{name} ({' + '.join(splits)})",
        size=size,
        source=lambda: chain.from_iterable(part.items() for part in parts),
    )


def genres_of(corpus: Corpus) -> dict[str, Corpus]:
    """The corpus by genre, as the names of its sentences tell it."""
    found: dict[str, int] = {}
    for sentence in corpus.sentences():
        of_it = genre(sentence)
        if of_it is None:
            raise BadInput(f"The sentences of {corpus.name} have no names that tell a genre, as those of ud_ewt do.")
        found[of_it] = found.get(of_it, 0) + 1
    return {
        name: Corpus(f"{corpus.name}, {name}", size, None, _only(corpus, name)) for name, size in sorted(found.items())
    }


def _only(corpus: Corpus, name: str) -> Callable[[], Iterator[Sentence | str]]:
    return lambda: (sentence for sentence in corpus.sentences() if genre(sentence) == name)


def documents_of(corpus: Corpus, readable: Callable[[Sentence], bool] = bool) -> Corpus:
    """The documents of the corpus in pieces of several sentences each; what is left out is told in the name.

    A piece ends before a sentence that is not readable, or one such would cost the whole document.
    """
    verdicts = [readable(sentence) for sentence in corpus.sentences()]
    unreadable = verdicts.count(False)
    pieces = tuple(_pieces(corpus, readable))
    alone = sum(verdicts) - sum(piece.parts for piece in pieces)
    if not pieces:
        raise BadInput(
            f"{corpus.name} has no documents of several sentences: give a corpus that names them, such as ud_ewt."
        )
    left_out = [
        f"{counted(number, 'sentence')} that {why}"
        for number, why in ((unreadable, "cannot be aligned"), (alone, "would stand alone"))
        if number
    ]
    without = f" without {' and '.join(left_out)}" if left_out else ""
    return Corpus(f"{corpus.name}, as documents{without}", len(pieces), None, lambda: iter(pieces))


def _pieces(corpus: Corpus, readable: Callable[[Sentence], bool]) -> Iterator[Sentence]:
    for document, together in groupby(corpus.sentences(), key=lambda sentence: sentence.document):
        if document is None:
            continue
        piece: list[Sentence] = []
        for sentence in together:
            good = readable(sentence)
            if not good or sum(map(len, piece)) + len(sentence) > DOCUMENT_WORDS:
                yield from _several(piece)
                piece = []
            if good:
                piece.append(sentence)
        yield from _several(piece)


def _several(piece: list[Sentence]) -> Iterator[Sentence]:
    if len(piece) > 1:
        yield joined(piece)


# Single heads that show what the paper's examples show: Fig. 4, and the exemplars of Tables 1 to 3.


HEAD = ["layer", "head"]
KINDS = {"same": "current token", "evenness": "broad", "repeated": "repeated words"}
PAPER_EXAMPLES = {
    "same": "layer 0: alignment 0.04",
    "evenness": "layer 0: alignment 0.10",
    "repeated": "layer 5, head 1: distance 14.2, entropy 0.41",
}
PAPER_HEADS = ((10, 10), (11, 2), (11, 10))
"""The heads of Tables 1 to 3, in GPT-2 small."""
SHOWN = 3
AWAKE = 0.5
"""The share of rows that are not mostly null, of a head that is called broad."""


def heads_table(survey: Survey) -> pd.DataFrame:
    """One row for each head with every figure that has one: what the maps show, side by side."""
    tables = survey.tables
    columns = {
        "null_attention": tables["null_attention"],
        "distance": tables["distance"],
        "entropy": tables["entropy"],
        "variability": tables["variability"],
    }
    if "dependency_alignment" in survey:
        columns["alignment"] = chosen(tables["dependency_alignment"], "dependency_alignment", dict(EITHER))
    heads = tables["null_attention"][HEAD]
    for name, table in columns.items():
        renamed = table[[*HEAD, "value", "error"]].rename(columns={"value": name, "error": f"{name}_error"})
        heads = heads.merge(renamed, how="left", on=HEAD)
    heads = heads.merge(tables["entropy"][[*HEAD, "evenness", "rows_share"]], how="left", on=HEAD)
    patterns = tables["patterns"].pivot_table(index=HEAD, columns="pattern", values="value", dropna=False)
    heads = heads.merge(patterns[["previous", "same", "repeated"]].reset_index(), how="left", on=HEAD)
    return heads.merge(tables["roles"][[*HEAD, "role"]], how="left", on=HEAD)


def example_heads(heads: pd.DataFrame) -> pd.DataFrame:
    """The head that is most of each kind, with its figures (Fig. 4)."""
    rows = []
    for column, kind in KINDS.items():
        # what is left of a head at rest says little of how broad it is
        awake = heads[(heads["rows_share"] >= AWAKE) | (column != "evenness")]
        if awake[column].notna().any():
            best = awake.loc[awake[column].idxmax()]
            rows.append({"kind": kind, "share_of_pattern": best[column], **best.to_dict()})
    kept = "kind layer head share_of_pattern null_attention variability distance entropy alignment".split()
    table = pd.DataFrame(rows)
    return table[[name for name in kept if name in table]]


def example_block(examples: pd.DataFrame) -> Table:
    """Fig. 4 as a table of the report."""
    measures = [name for name in examples if name not in {"kind", "layer", "head"}]
    papers = dict(zip(KINDS.values(), PAPER_EXAMPLES.values(), strict=True))
    rows = [
        [
            row["kind"],
            f"layer {row['layer']}, head {row['head']}",
            *(f"{row[name]:.2f}" for name in measures),
            papers[row["kind"]],
        ]
        for row in examples.to_dict("records")
    ]
    return Table(["pattern", "head", *(name.replace("_", " ") for name in measures), "in the paper"], rows)


def specific_heads(survey: Survey) -> list[tuple[int, int]]:
    """Three heads that rest most of the time and, in their exemplars, give one token nearly everything.

    These are the paper's own heads if this is the paper's own model. Heads that attend to the attending token itself
    show nothing and are passed over, and each layer has one head at most.
    """
    card = survey.card
    if str(card["model"]["name"]).rpartition("/")[2] == "gpt2" and (card["layers"], card["heads"]) == (12, 12):
        return list(PAPER_HEADS)
    best = survey.tables["exemplars"]
    best = best[best["rank"] < SHOWN]
    itself = best.assign(itself=best["query"] == best["key"]).groupby(HEAD)["itself"].any()
    scores = best.groupby(HEAD)["value"].mean().rename("weight").reset_index()
    scores = scores.merge(survey.tables["null_attention"][[*HEAD, "value"]], on=HEAD)
    scores = scores.merge(itself.reset_index(), on=HEAD)
    scores = scores[~scores["itself"]].assign(score=lambda rows: rows["weight"] + rows["value"])
    ranked = scores.sort_values("score", ascending=False, kind="stable").drop_duplicates("layer").head(SHOWN)
    return sorted((int(layer), int(head)) for layer, head in ranked[HEAD].to_numpy())


def exemplars_of(survey: Survey, heads: Sequence[tuple[int, int]]) -> pd.DataFrame:
    """The first exemplars of some heads, with the pair of tokens."""
    table = survey.tables["exemplars"]
    asked = [(table["layer"] == layer) & (table["head"] == head) & (table["rank"] < SHOWN) for layer, head in heads]
    columns = ["layer", "head", "rank", "value", "query_token", "key_token", "tokens", "text", "query", "key"]
    return pd.concat([table[:0], *(table[mask] for mask in asked)])[columns].reset_index(drop=True)


def exemplar_block(exemplars: pd.DataFrame) -> Table:
    """The exemplars of one head as a table of the report."""
    rows = [[str(row["rank"] + 1), f"{row['value']:.2f}", _marked(row)] for row in exemplars.to_dict("records")]
    return Table(["rank", "weight", "sentence"], rows)


def _marked(row: dict[str, object]) -> Words:
    """The sentence with the attending token strong and the attended one emphasised."""
    tokens = spaced([str(token) for token in row["tokens"]], str(row["text"]))  # type: ignore[attr-defined]
    tokens, query, key = shortened(tokens, int(str(row["query"])), int(str(row["key"])))
    return [
        Strong(token) if place == query else Emphasis(token) if place == key else token
        for place, token in enumerate(tokens)
    ]
