"""`attnscope data`: what it lists and finds, what it fetches and adds, and what it refuses."""

import functools
import gzip
import hashlib
import io
import json
import re
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from attnscope.cli import app
from attnscope.corpora import CORPORA, Dataset, Download, fetching

RUNNER = CliRunner()
FILES = {"train": b"1 a\n1 b\n", "test": b"1 c\n"}


def run(*arguments: str | Path) -> Result:
    return RUNNER.invoke(app, ["data", *map(str, arguments)])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("ATTNSCOPE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "attnscope" / "data"


class Quiet(SimpleHTTPRequestHandler):
    """A server that keeps no log."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of a server on this machine, and the folder that it serves."""
    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}", folder
        serving.shutdown()
        thread.join()


@pytest.fixture
def tiny(server: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """A data set of two small files, served as they are."""
    address, folder = server
    for split, content in FILES.items():
        (folder / f"{split}.txt").write_bytes(content)
    entry = Dataset(
        files={split: f"{split}.txt.gz" for split in FILES},
        kind="text",
        about="two files",
        licence="ours",
        source="https://example.org",
        rows={"train": 2, "test": 1},
        row="1 ",
        downloads={split: Download(f"{address}/{split}.txt") for split in FILES},
    )
    monkeypatch.setitem(CORPORA, "tiny", entry)
    return entry


def test_list_names_every_data_set_and_what_is_here(cache: Path) -> None:
    (cache / "sms_spam").mkdir(parents=True)
    (cache / "sms_spam" / "SMSSpamCollection").write_text("ham\thello\n")
    told = {entry["name"]: entry for entry in json.loads(run("list", "--json").stdout)}
    assert list(told) == list(CORPORA)
    assert told["sms_spam"]["here"] == {"all": str(cache / "sms_spam" / "SMSSpamCollection")}
    assert told["sst"]["here"] == {}
    shown = run("list").stdout
    assert all(name in shown for name in CORPORA)


def test_where_prints_the_folder_or_says_how_to_have_it(cache: Path) -> None:
    missing = run("where", "ud_ewt")
    assert missing.exit_code == 2
    assert "attnscope data get ud_ewt" in missing.stderr
    assert "attnscope data add imdb FILE" in run("where", "imdb").stderr
    assert "no data set 'ptb'" in run("where", "ptb").stderr
    (cache / "ud_ewt").mkdir(parents=True)
    (cache / "ud_ewt" / "en_ewt-ud-dev.conllu.gz").write_bytes(b"")
    assert run("where", "ud_ewt").stdout == f"{cache / 'ud_ewt'}\n"
    assert list(json.loads(run("where", "ud_ewt", "--json").stdout)["here"]) == ["dev"]


def test_get_puts_the_files_in_place(tiny: Dataset, cache: Path, tmp_path: Path) -> None:
    one = run("get", "tiny", "--split", "test")
    assert one.exit_code == 0, one.stderr
    assert sorted(path.name for path in (cache / "tiny").iterdir()) == ["test.txt.gz"]
    kept = (cache / "tiny" / "test.txt.gz").stat().st_mtime_ns
    told = json.loads(run("get", "tiny", "--json").stdout)
    assert told["files"] == [str(cache / "tiny" / f"{split}.txt.gz") for split in FILES]
    for split, content in FILES.items():
        assert gzip.decompress((cache / "tiny" / f"{split}.txt.gz").read_bytes()) == content
    assert (cache / "tiny" / "test.txt.gz").stat().st_mtime_ns == kept
    run("get", "tiny", "--data", tmp_path / "mine")
    for split in FILES:
        elsewhere = tmp_path / "mine" / "tiny" / f"{split}.txt.gz"
        assert elsewhere.read_bytes() == (cache / "tiny" / f"{split}.txt.gz").read_bytes()


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_get_takes_members_out_of_one_download(
    kind: str, tiny: Dataset, server: tuple[str, Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, folder = server
    path = folder / f"all.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            for split, content in FILES.items():
                archive.writestr(f"in/{split}", content)
    else:
        with tarfile.open(path, "w:gz") as archive:
            for split, content in FILES.items():
                member = tarfile.TarInfo(f"in/{split}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    entry = replace(tiny, downloads={split: Download(f"{address}/all.{kind}", f"in/{split}") for split in FILES})
    monkeypatch.setitem(CORPORA, "tiny", entry)
    asked: list[str] = []
    monkeypatch.setattr(fetching, "_download", _noting(asked, fetching._download))
    assert run("get", "tiny").exit_code == 0
    assert asked == [f"{address}/all.{kind}"]
    for split, content in FILES.items():
        assert gzip.decompress((cache / "tiny" / f"{split}.txt.gz").read_bytes()) == content
    gone = replace(tiny, downloads={split: Download(f"{address}/all.{kind}", "in/other") for split in FILES})
    monkeypatch.setitem(CORPORA, "tiny", gone)
    (cache / "tiny" / "test.txt.gz").unlink()
    refused = run("get", "tiny")
    assert refused.exit_code == 1
    assert "has no member in/other" in refused.stderr


def _noting(asked: list[str], download):
    def note(url: str, *rest: object) -> None:
        asked.append(url)
        download(url, *rest)

    return note


def test_what_is_not_the_right_file_is_not_put_in_place(
    tiny: Dataset, server: tuple[str, Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, folder = server
    (folder / "test.txt").write_bytes(b"<html>\nNot here any more\n")
    refused = run("get", "tiny", "--split", "test")
    assert refused.exit_code == 1
    assert "is not tiny:test: it has 0 rows, not 1." in refused.stderr
    digest = hashlib.sha256(FILES["train"]).hexdigest()
    monkeypatch.setitem(CORPORA, "tiny", replace(tiny, sha256={"train": digest}))
    (folder / "train.txt").write_bytes(b"1 a\n1 B\n")
    refused = run("get", "tiny", "--split", "train")
    assert f"not {digest}" in refused.stderr
    assert not cache.exists() or not any((cache / "tiny").iterdir())


def test_no_network_is_one_sentence(tiny: Dataset, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = {split: Download(f"http://127.0.0.1:9/{split}.txt") for split in FILES}
    monkeypatch.setitem(CORPORA, "tiny", replace(tiny, downloads=nowhere))
    refused = run("get", "tiny")
    assert refused.exit_code == 1
    assert re.fullmatch(r"attnscope: Cannot download http://127.0.0.1:9/train.txt \(.*\): .*add\.\n", refused.stderr)
    assert not cache.exists()


def test_get_refuses_what_it_cannot_get() -> None:
    for asked, message in (
        (["imdb"], "imdb must be made by hand from https://ai.stanford.edu"),
        (["ptb"], "no data set 'ptb'"),
        (["ud_ewt", "--split", "all"], "ud_ewt has no split 'all'"),
    ):
        refused = run("get", *asked)
        assert refused.exit_code == 2
        assert message in refused.stderr
        assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize("packed", [True, False])
def test_add_checks_and_copies(tiny: Dataset, tmp_path: Path, cache: Path, packed: bool) -> None:
    file = tmp_path / ("test.txt.gz" if packed else "test.txt")
    file.write_bytes(gzip.compress(FILES["test"]) if packed else FILES["test"])
    added = run("add", "tiny", file)
    assert added.exit_code == 0, added.stderr
    assert gzip.decompress((cache / "tiny" / "test.txt.gz").read_bytes()) == FILES["test"]
    assert file.exists()


def test_add_refuses_what_is_wrong(tiny: Dataset, tmp_path: Path, cache: Path) -> None:
    (tmp_path / "other.txt").write_bytes(FILES["train"])
    (tmp_path / "broken.gz").write_bytes(b"no gzip")
    for asked, message in (
        ([tmp_path / "none"], "There is no file"),
        ([tmp_path / "other.txt"], "Which split of tiny other.txt is cannot be told: say one of train, test"),
        ([tmp_path / "other.txt", "--split", "test"], "is not tiny:test: it has 2 rows, not 1"),
        ([tmp_path / "broken.gz", "--split", "test"], "broken.gz is damaged"),
    ):
        refused = run("add", "tiny", *asked)
        assert refused.exit_code == 2
        assert message in refused.stderr
    assert not cache.exists()
    assert run("add", "tiny", tmp_path / "other.txt", "--split", "train").exit_code == 0


def test_build_writes_examples_and_tells_what_they_are(tmp_path: Path) -> None:
    treebank = tmp_path / "two.conllu"
    treebank.write_text(
        "1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n2\tdogs\tdog\tNOUN\tNNS\t_\t3\tnsubj\t_\t_\n"
        "3\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\t_\n\n"
    )
    out = tmp_path / "train.jsonl"
    made = run("build", "agreement", "--from", treebank, "--out", out)
    assert made.exit_code == 0, made.stderr
    assert "1 example; by attractors: 1 with 0." in made.stdout
    assert f"Written: {out}" in made.stdout
    assert json.loads(out.read_text())["words"] == ["the", "dogs"]
    told = json.loads(run("build", "agreement", "--from", treebank, "--out", tmp_path / "b.jsonl", "--json").stdout)
    assert told["card"]["examples"] == 1
    for asked, message in (
        (["build", "poems", "--from", treebank, "--out", tmp_path / "c"], "nothing called 'poems'"),
        (["build", "agreement", "--from", treebank, "--out", out], "is there already"),
        (["build", "agreement", "--from", tmp_path / "none.txt", "--out", tmp_path / "c"], "There is no file"),
    ):
        refused = run(*asked)
        assert refused.exit_code == 2
        assert message in refused.stderr


def test_every_command_of_data_shows_an_example() -> None:
    for command in ("list", "where", "get", "add", "build"):
        assert f"Example: attnscope data {command}" in " ".join(run(command, "--help").stdout.split())


def test_the_example_of_the_page_runs() -> None:
    page = (Path(__file__).parents[1] / "docs" / "data.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, object] = {}
    exec(block, names)  # noqa: S102 - our own page
    assert eval("example.words[example.subject]", names) == "keys"  # noqa: S307 - our own page
