"""Do words that people find emotional get higher scores? A model's scores of words held against a lexicon."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from ..attribution.choosing import Method
from ..engine import check_recipe, checked_folder, fingerprint_of
from ..errors import BadInput
from ..numerals import counted
from ..record import Model, Text
from .lexicon_study import CARD, LexiconStudy, correlations, regressions, with_valence
from .lexicons import NEGATIVE, POSITIVE, VADER, Lexicon, Matcher, counted_ways, read_lexicon
from .regression import FEWEST, statsmodels_api
from .texts import model_and_texts
from .word_methods import WHAT, Inquiry, Watch, inquire, measure_words, store_of


def lexicon(
    model: str | Model,
    texts: str | Path | Iterable[Text],
    lexicon: str | Path | Mapping[str, float] | Lexicon = VADER,
    methods: Sequence[str | Method] | None = None,
    *,
    tags: Mapping[str, str] | None = None,
    minimum_count: int = 1,
    data: str | Path | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    batch_size: int = 16,
    truncate: bool = False,
    limit: int | None = None,
    watch: Watch | None = None,
) -> LexiconStudy:
    """Hold the scores that a model's words get against what people say of the words.

    Wu, Nguyen & Ong 2020, sections 6.3 to 6.5, for any model and lexicon: the mean score of each word by each method
    (see `word_scores`), a quadratic regression of it on the word's valence, the methods beside each other, and the
    share of attention that each head brings to very positive and very negative words.

    Args:
        model: A model whose attention can be read, or its name or folder.
        texts: What it reads; lists of words where its own idea of a word is not wanted. A name is that of a file or
            data set, as `read_texts` takes it.
        lexicon: "vader", "warriner", a CSV or TSV file (word, value), a mapping, or what `read_lexicon` gives.
        methods: Names or functions; by default WORD_METHODS, as far as the model serves them.
        tags: The kind of each word, in lower case, if the lexicon's very positive and very negative are not meant.
        minimum_count: How often a word must stand in the texts to be used.
        data: The folder of named data sets, before $ATTNSCOPE_DATA.
        out: A folder that sums are kept in while they grow, and the study at the end.
        resume: Go on with what is in the folder, to the very same study.
        batch_size: Texts run together.
        truncate: Cut texts that are too long for the model, instead of refusing them.
        limit: Read only so many texts.
        watch: Called with how many texts are done, and of how many.
    """
    folder = None if out is None else checked_folder(Path(out), WHAT, resume=resume, finished=CARD)
    statsmodels_api()  # what is missing is reported before a model runs for hours
    matcher = Matcher(read_lexicon(lexicon, data))
    used = matcher.lexicon
    model, texts = model_and_texts(model, texts, limit, data)

    @cache
    def tag_of(word: str) -> str | None:
        if tags is not None:
            return tags.get(word)
        match = matcher.match(word)
        return None if match is None else used.tag(match.value)

    kinds = (NEGATIVE, POSITIVE) if tags is None else tuple(dict.fromkeys(tags.values()))
    more = {
        "lexicon": used.name,
        "lexicon_fingerprint": fingerprint_of([dict(used.values), used.negative_below, used.positive_from]),
        "tags": list(kinds),
        "tags_fingerprint": None if tags is None else fingerprint_of(dict(tags)),
    }
    inquiry = inquire(
        model,
        texts,
        methods,
        minimum_count=minimum_count,
        batch_size=batch_size,
        truncate=truncate,
        more=more,
        tags=kinds,
        tag_of=tag_of,
    )
    store = store_of(folder, inquiry)
    if folder is not None and (folder / CARD).exists():
        finished = LexiconStudy.load(folder)
        check_recipe(folder, WHAT, finished.card, inquiry.recipe)
        store.clear()
        return finished
    _check_words(inquiry, matcher)
    found = measure_words(model, inquiry, store, watch)
    words = with_valence(found.words.table(minimum_count), matcher, tag_of)
    names = list(found.words.methods)
    study = LexiconStudy(
        words=words,
        regressions=regressions(words, names),
        correlations=correlations(words, names),
        heads=found.heads.table(),
        card={
            **inquiry.recipe,
            "matched": counted_ways(matcher.match(word) for word in words["word"]),
            "negative_below": used.negative_below,
            "positive_from": used.positive_from,
            "left_out": dict(found.left_out),
        },
    )
    if folder is not None:
        study.save(folder)
        store.clear()
    return study


def _check_words(inquiry: Inquiry, matcher: Matcher) -> None:
    """Raise before the model runs if the texts have too few words of the lexicon; a word is a run of letters."""
    found: dict[str, float] = {}
    for text in inquiry.texts:
        for part in [text] if isinstance(text, str) else text:
            for word in re.findall(r"[^\W\d_]+", " ".join(part).lower() if isinstance(part, list) else part.lower()):
                if word not in found and (match := matcher.match(word)) is not None:
                    found[word] = match.value
        if len(found) >= FEWEST and len(set(found.values())) > 2:
            return
    raise BadInput(
        f"The lexicon {matcher.lexicon.name} has only {counted(len(found), 'word')} of these texts, with"
        f" {counted(len(set(found.values())), 'different value')}: a parabola needs {FEWEST} words with 3."
    )
