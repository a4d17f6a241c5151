"""Data sets by name: where they are looked for, in which order, and what is said where they are missing."""

import re
from pathlib import Path

import pytest

from attnscope.corpora import CORPORA, Download, dataset, dataset_file, fetching, files_here
from attnscope.errors import BadInput
from attnscope.syntax import sentences_of
from attnscope.syntax.from_spacy import UNIVERSAL
from attnscope.syntax.reading import READERS


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The three places where a data set may lie, all empty."""
    monkeypatch.setenv("ATTNSCOPE_DATA", str(tmp_path / "variable"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return {
        "said": tmp_path / "said",
        "variable": tmp_path / "variable",
        "cache": tmp_path / "cache" / "attnscope" / "data",
    }


def put(folder: Path, file: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text("a b\n")
    return folder / file


def test_the_nearest_place_comes_first(places: dict[str, Path]) -> None:
    with pytest.raises(BadInput, match=r"There is no folder .*said to look for data sets in"):
        dataset_file("wikitext2", data=places["said"])
    places["said"].mkdir()
    for place in ("cache", "variable", "said"):
        path = put(places[place] / "wikitext2", "test.txt.gz")
        assert dataset_file("wikitext2", data=places["said"]) == path
        assert dataset("wikitext2", str(places["said"])) == path.parent
    assert dataset("wikitext2") == places["variable"] / "wikitext2"


def test_the_home_is_the_last_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATTNSCOPE_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    path = put(tmp_path / ".cache" / "attnscope" / "data" / "ud_ewt", "en_ewt-ud-dev.conllu.gz")
    assert dataset_file("ud_ewt", "dev") == path


def test_a_file_may_be_unpacked(places: dict[str, Path]) -> None:
    path = put(places["cache"] / "wikitext2", "valid.txt")
    assert dataset_file("wikitext2", "valid") == path
    assert dataset("wikitext2") == path.parent
    assert [item.text for item in sentences_of(path, kind=CORPORA["wikitext2"].kind)] == ["a b"]


def test_what_is_missing_says_where_it_was_looked_for(places: dict[str, Path]) -> None:
    put(places["said"] / "ud_ewt", "en_ewt-ud-dev.conllu.gz")
    for ask in (lambda: dataset("wikitext2", places["said"]), lambda: dataset_file("ud_ewt", data=places["said"])):
        with pytest.raises(BadInput, match="is not here") as caught:
            ask()
        for place in places.values():
            assert str(place) in str(caught.value)
        assert "$ATTNSCOPE_DATA" in str(caught.value)


def test_unknown_names(places: dict[str, Path]) -> None:
    for ask in (dataset, dataset_file):
        with pytest.raises(BadInput, match="no data set 'ptb': choose from ud_ewt, wikitext2"):
            ask("ptb")
    with pytest.raises(BadInput, match="no split 'train': choose from valid, test"):
        dataset_file("wikitext2", "train")
    with pytest.raises(BadInput, match=r"amazon has several splits: name one, as in amazon:books\.negative"):
        dataset_file("amazon")


def test_what_has_one_file_needs_no_split(places: dict[str, Path]) -> None:
    path = put(places["cache"] / "sms_spam", "SMSSpamCollection.gz")
    assert dataset_file("sms_spam") == path


def test_the_splits_that_are_here(places: dict[str, Path]) -> None:
    dev = put(places["cache"] / "ud_ewt", "en_ewt-ud-dev.conllu")
    train = put(places["said"] / "ud_ewt", "en_ewt-ud-train.conllu.gz")
    assert files_here("ud_ewt", places["said"]) == {"train": train, "dev": dev}
    assert files_here("sst") == {}


@pytest.mark.parametrize("name", CORPORA)
def test_every_data_set_says_what_it_is(name: str) -> None:
    entry = CORPORA[name]
    assert entry.kind in {*READERS, "amazon reviews", "csv", "labelled lines", "marked verbs", "sentiment trees"}
    assert all((entry.about, entry.licence, re.match("https?://", entry.source)))
    assert entry.rows.keys() == entry.files.keys()
    assert entry.sha256.keys() <= entry.files.keys()
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in entry.sha256.values())
    assert entry.downloads.keys() == entry.files.keys() or (not entry.downloads and entry.layout)
    assert all(download.url.startswith("https://") for download in entry.downloads.values())


@pytest.mark.parametrize("name", CORPORA)
def test_real_files_pass_their_own_check(name: str, tmp_path: Path) -> None:
    """Where a data set is found, what `add` checks holds of it."""
    here = files_here(name)
    if not here:
        pytest.skip(f"The data set {name} is not here: set $ATTNSCOPE_DATA.")
    for split, path in here.items():
        fetching._unpack(path, Download(path.name), tmp_path / "unpacked")
        assert fetching._wrong(name, split, tmp_path / "unpacked") is None


def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but those that say that they need something; what a comment promises is checked where it is a value."""
    page = (Path(__file__).parents[1] / "docs" / "corpora.md").read_text()
    monkeypatch.chdir(tmp_path)
    checked = 0
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        if block.startswith("# needs"):
            compile(block, "docs/corpora.md", "exec")
            continue
        names: dict[str, object] = {}  # each as it stands, by itself
        exec(block, names)  # noqa: S102 - our own page
        for shown, value in re.findall(r"^([\w.(].*?)  # (\d+|'[^']*'|\(.*\))$", block, re.MULTILINE):
            assert eval(shown, names) == eval(value), shown  # noqa: S307 - our own page
            checked += 1
    assert checked >= 4


def test_the_page_names_every_data_set() -> None:
    page = (Path(__file__).parents[1] / "docs" / "data.md").read_text()
    for name, entry in CORPORA.items():
        row = re.search(rf"^\| `{name}` \|.*$", page, re.MULTILINE)[0]
        assert f"| {entry.licence} |" in row
        assert row.endswith("| yes |" if entry.downloads else "| by hand |")
        assert f"`{next(iter(entry.files))}`" in row


def test_the_page_shows_the_table_of_relations() -> None:
    page = (Path(__file__).parents[1] / "docs" / "corpora.md").read_text()
    shown = re.findall(r"\| `(\w+)` \| `([\w:]+)` (?=\|)", page)
    assert dict(shown) == UNIVERSAL
