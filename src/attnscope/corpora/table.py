"""CORPORA: what each data set is, its files, its readers, its licence, its official place, and what a whole file is.

A new data set is one row here: all that lists, finds, fetches, reads or describes data sets goes by this table.
A digest stands here only where a file was seen to be the official one, byte for byte: those of WikiText-2 by the SHA-1
that libraries have published for its members. The others are checked by their number of rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal[
    "conllu",
    "csv",
    "jsonl",
    "table",
    "text",
    "wikitext",
    "marked verbs",
    "sentiment trees",
    "amazon reviews",
    "labelled lines",
]
"""How a file is written. The first six are those that `attnscope.syntax` reads sentences or texts from."""
Layout = Literal["trees", "reviews", "postings", "news", "tagged reviews", "tagged lines"]
"""How texts stand with their labels, by the names of `attnscope.lab.data.labelled.LAYOUTS`."""


@dataclass(frozen=True)
class Download:
    """An official file: its address and, if that is an archive (.zip, .tar.gz), which of its members is meant."""

    url: str
    member: str | None = None


@dataclass(frozen=True)
class Labels:
    """Where the label of each text stands, and the class that a label means; other labels are left out."""

    layout: Layout
    classes: Mapping[str, str]


@dataclass(frozen=True)
class Dataset:
    """A data set: its file of each split, how they are written, what it is, its licence, and where it comes from.

    `rows` is how many rows each split has; `row` is a pattern that each of them begins with. `sha256` is the digest of
    the unpacked file, where it is known. `downloads` are the official files that hold just what is kept here; where
    there are none, `layout` says how what is kept here differs from what can be downloaded. `labels` is given where
    texts belong to classes, `megabytes` is the size of all splits, packed.
    """

    files: Mapping[str, str]
    kind: Kind
    about: str
    licence: str
    source: str
    rows: Mapping[str, int]
    row: str = ""
    sha256: Mapping[str, str] = field(default_factory=dict)
    downloads: Mapping[str, Download] = field(default_factory=dict)
    layout: str = ""
    labels: Labels | None = None
    megabytes: int | None = None


_EWT = "https://raw.githubusercontent.com/UniversalDependencies/UD_English-EWT/r2.14"
_GULORDAVA = (
    "https://raw.githubusercontent.com/facebookresearch/colorlessgreenRNNs/"
    "00a7b1cbd6b5b837cedcb38a37962150be4f4273/data/linzen_testset/subj_agr_filtered"
)
_MULTI30K = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
_SST = "https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip"
_WIKITEXT = "https://s3.amazonaws.com/research.metamind.io/wikitext/wikitext-2-v1.zip"
_AMAZON = "https://www.cs.jhu.edu/~mdredze/datasets/sentiment/domain_sentiment_data.tar.gz"
_SMS = "https://archive.ics.uci.edu/ml/machine-learning-databases/00228/smsspamcollection.zip"

_SPLITS = ("train", "dev", "test")
_CAPTIONED = {"train": 29_000, "val": 1_014, "test_2016_flickr": 1_000}
_CAPTIONS = [f"{part}.{language}" for part in _CAPTIONED for language in ("en", "de")]
_POLARITY = {"negative": "negative", "positive": "positive"}
_REVIEWS = [f"{of}.{label}" for of in ("books", "dvd", "electronics", "kitchen") for label in _POLARITY]


def _amazon_member(split: str) -> str:
    of, _, label = split.partition(".")
    return f"sorted_data_acl/{'kitchen_&_housewares' if of == 'kitchen' else of}/{label}.review"


CORPORA = {
    "ud_ewt": Dataset(
        files={split: f"en_ewt-ud-{split}.conllu.gz" for split in _SPLITS},
        kind="conllu",
        about="Universal Dependencies, English Web Treebank: weblogs, newsgroups, e-mail, reviews and answers, with "
        "parts of speech and dependencies by hand",
        licence="CC BY-SA 4.0",
        source="https://github.com/UniversalDependencies/UD_English-EWT",
        rows={"train": 12_544, "dev": 2_001, "test": 2_077},
        row="# sent_id",
        downloads={split: Download(f"{_EWT}/en_ewt-ud-{split}.conllu") for split in _SPLITS},
        megabytes=4,
    ),
    "wikitext2": Dataset(
        files={split: f"{split}.txt.gz" for split in ("valid", "test")},
        kind="wikitext",
        about="WikiText-2: good and featured articles of the English Wikipedia, split into words, without a parse",
        licence="CC BY-SA",
        source="https://huggingface.co/datasets/Salesforce/wikitext",
        rows={"valid": 3_760, "test": 4_358},
        sha256={
            "valid": "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8",
            "test": "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0",
        },
        downloads={split: Download(_WIKITEXT, f"wikitext-2/wiki.{split}.tokens") for split in ("valid", "test")},
        megabytes=1,
    ),
    "agreement": Dataset(
        files={"test": "linzen2016_subset.text.gz", "gold": "linzen2016_subset.gold.gz"},
        kind="marked verbs",
        about="subject-verb agreement in sentences of Wikipedia, from Linzen et al. 2016, the subset of Gulordava et "
        "al. 2018: sentences (test), and the verb's position, right form, wrong form and attractors (gold)",
        licence="CC BY-NC 4.0",
        source="https://github.com/facebookresearch/colorlessgreenRNNs",
        rows={"test": 7_489, "gold": 7_489},
        downloads={"test": Download(f"{_GULORDAVA}.text"), "gold": Download(f"{_GULORDAVA}.gold")},
        megabytes=1,
    ),
    "sst": Dataset(
        files={split: f"{split}.txt.gz" for split in _SPLITS},
        kind="sentiment trees",
        about="Stanford Sentiment Treebank: sentences of film reviews as trees, each node labelled from 0 (bad) to 4",
        licence="none stated",
        source="https://nlp.stanford.edu/sentiment/",
        rows={"train": 8_544, "dev": 1_101, "test": 2_210},
        row=r"\([0-4] ",
        downloads={split: Download(_SST, f"trees/{split}.txt") for split in _SPLITS},
        labels=Labels("trees", {"0": "negative", "1": "negative", "3": "positive", "4": "positive"}),
        megabytes=1,
    ),
    "imdb": Dataset(
        files={split: f"{split}.tsv.gz" for split in ("train", "val", "test")},
        kind="table",
        about="Large Movie Review Dataset: film reviews with label, id, rating and text",
        licence="none stated",
        source="https://ai.stanford.edu/~amaas/data/sentiment/",
        rows={"train": 20_000, "val": 5_000, "test": 25_000},
        row="(neg|pos)\t",
        layout="the official archive has a file for each review; here a review is a row under the header "
        "label, id, rating, text, and train and val are its 25,000 for training",
        labels=Labels("reviews", {"neg": "negative", "pos": "positive"}),
        megabytes=26,
    ),
    "multi30k": Dataset(
        files={split: f"{split}.gz" for split in _CAPTIONS},
        kind="text",
        about="Multi30k, task 1: captions of pictures in English and German, line by line",
        licence="non-commercial",
        source="https://github.com/multi30k/dataset",
        rows={split: _CAPTIONED[split.partition(".")[0]] for split in _CAPTIONS},
        downloads={split: Download(f"{_MULTI30K}/{split}.gz") for split in _CAPTIONS},
        megabytes=2,
    ),
    "20news": Dataset(
        files={split: f"{split}.jsonl.gz" for split in ("train", "test")},
        kind="jsonl",
        about="20 Newsgroups by date, five groups of it: JSON lines with group, id and text",
        licence="none stated",
        source="http://qwone.com/~jason/20Newsgroups/",
        rows={"train": 2_935, "test": 1_954},
        row=r"\{",
        layout="the official archive (by date) has a file for each posting in all twenty groups; here five groups are "
        "JSON lines with group, id and text",
        labels=Labels(
            "postings",
            {
                "rec.sport.baseball": "baseball",
                "rec.sport.hockey": "hockey",
                "rec.motorcycles": "motorcycles",
                "sci.med": "medicine",
                "talk.politics.guns": "guns",
            },
        ),
        megabytes=4,
    ),
    "ag_news": Dataset(
        files={"test": "test.csv.gz"},
        kind="csv",
        about="AG News, the test part: class, title and description",
        licence="non-commercial",
        source="http://groups.di.unipi.it/~gulli/AG_corpus_of_news_articles.html",
        rows={"test": 7_600},
        row='"[1-4]",',
        layout="the official page has the whole corpus; the classes and the test part are those of Zhang et al. 2015",
        labels=Labels("news", {"1": "world", "2": "sports", "3": "business", "4": "technology"}),
        megabytes=1,
    ),
    "amazon": Dataset(
        files={split: f"{split}.review.gz" for split in _REVIEWS},
        kind="amazon reviews",
        about="Amazon multi-domain sentiment: reviews of books, DVDs, electronics and kitchenware, good and bad",
        licence="none stated",
        source="https://www.cs.jhu.edu/~mdredze/datasets/sentiment/",
        rows=dict.fromkeys(_REVIEWS, 1_000),
        row="<review>",
        downloads={split: Download(_AMAZON, _amazon_member(split)) for split in _REVIEWS},
        labels=Labels("tagged reviews", _POLARITY),
        megabytes=4,
    ),
    "sms_spam": Dataset(
        files={"all": "SMSSpamCollection.gz"},
        kind="labelled lines",
        about="SMS Spam Collection: messages that are ham or spam",
        licence="none stated",
        source="https://archive.ics.uci.edu/dataset/228/sms+spam+collection",
        rows={"all": 5_574},
        row="(ham|spam)\t",
        downloads={"all": Download(_SMS, "SMSSpamCollection")},
        labels=Labels("tagged lines", {"ham": "ham", "spam": "spam"}),
        megabytes=1,
    ),
    "warriner": Dataset(
        files={"all": "ratings.csv.gz"},
        kind="csv",
        about="Norms of valence, arousal and dominance for English lemmas (Warriner et al. 2013)",
        licence="CC BY-NC-ND 3.0",
        source="https://crr.ugent.be/archives/1003",
        rows={"all": 13_915},
        row=r"\d+,",
        layout="the official file Ratings_Warriner_et_al.csv under the name ratings.csv.gz",
        megabytes=1,
    ),
}
