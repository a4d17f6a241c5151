"""Files of strangers: whatever they hold is opened or refused in a sentence, within the memory that was given."""

import base64
import io
import json
import struct
import tracemalloc
from tempfile import gettempdir

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import attnscope
from attnscope.app import Desk, Guard
from attnscope.app.opening import parquet_bytes
from attnscope.app.server import build
from attnscope.syntax import agreement_sentences, sentences_of

ROOM = 50_000_000
FUZZED = settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def desk(demo):
    desk = Desk({"demo": demo}, budget=ROOM)
    yield desk
    desk.close()


@pytest.fixture(scope="module")
def client(desk):
    """An exception that nobody foresaw is raised here, so that no test takes it for an answer."""
    with TestClient(Guard(build(desk, 8_000_000), upload_bytes=8_000_000), base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture(scope="module")
def record(demo, tmp_path_factory):
    return demo.record("the key").save(tmp_path_factory.mktemp("record") / "r.safetensors").read_bytes()


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def survey(demo, tmp_path_factory):
    folder = tmp_path_factory.mktemp("survey")
    sentences = [next(agreement_sentences(seed)) for seed in range(4)]
    attnscope.survey(demo, sentences_of(sentences), statistics=["distance", "exemplars"]).save(folder)
    return {name: content for name, content in files_of(folder).items() if name.endswith((".json", ".parquet"))}


@pytest.fixture(scope="module")
def trust(demo, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trust")
    attnscope.trust(demo, ["the key", "the keys"], ["raw", "rollout"]).save(folder)
    files = files_of(folder)
    whole = [
        line for line in files["trust.csv"].splitlines(keepends=True) if line.split(b",")[1] in (b"layer", b"")
    ]  # the layers take most of the time
    return {**files, "trust.csv": b"".join(whole)}


def send(client, files):
    listed = [{"name": name, "base64": base64.b64encode(content).decode()} for name, content in files.items()]
    return client.post("/api/folders", json={"files": listed})


def is_refused(answer):
    """A client's mistake, in one sentence that names no place on this machine."""
    said = answer.json()["error"]
    return 400 <= answer.status_code < 500 and said.endswith(".") and gettempdir() not in said and "\n" not in said


def answers(answer):
    return answer.status_code == 200 or is_refused(answer)


def parquet_of(table, **options):
    written = io.BytesIO()
    pq.write_table(pa.table(table), written, **options)
    return written.getvalue()


def safetensors_of(header, tensors=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + tensors


# ---- what unpacks to more than there is room for


def repeated(text, rows):
    return pa.array([text]).dictionary_encode().take(pa.array(np.zeros(rows, dtype=np.int64))).cast(pa.string())


BOMBS = {
    "rows": lambda: parquet_of({"layer": np.zeros(4_000_000, dtype=np.int64)}),
    "a long text many times": lambda: parquet_of({"role": repeated("x" * 400_000, 200)}),
    "a long list": lambda: parquet_of({"tokens": [np.zeros(1_000_000, dtype=np.int64)]}),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_table_that_unpacks_beyond_the_memory_is_refused_and_never_unpacked(client, desk, survey, kind):
    bomb = BOMBS[kind]()
    assert len(bomb) < 200_000
    before = pa.default_memory_pool().max_memory()
    answer = send(client, {**survey, "tables/distance.parquet": bomb})
    assert is_refused(answer)
    assert "this server keeps 50 MB" in answer.json()["error"]
    assert pa.default_memory_pool().max_memory() - before < ROOM


def test_a_table_whose_foot_is_silent_is_caught_while_it_is_counted():
    """A foot tells how many values there are, not how long: only the count in batches finds one long text, repeated."""
    bomb = BOMBS["a long text many times"]()
    assert parquet_bytes(bomb, 1_000_000_000) > 80_000_000
    with pytest.raises(attnscope.BadInput, match="this server keeps 20 MB"):
        parquet_bytes(bomb, 20_000_000)


def test_a_table_packed_in_another_way_is_refused(client, survey):
    packed = parquet_of({"layer": [0], "head": [0], "value": [1.0]}, compression="zstd")
    answer = send(client, {**survey, "tables/distance.parquet": packed})
    assert answer.json()["error"].startswith("This table was not written by attnscope")


def test_a_few_rows_that_ask_for_a_map_of_millions_of_heads_are_refused(client, survey):
    """Layers, heads and labels that are all different: 200 rows would be a map of 8,000,000 cells."""
    many = np.arange(200)
    table = parquet_of({"layer": many, "head": many, "tag": many.astype(str), "value": many / 7})
    card = {**json.loads(survey["survey.json"]), "layers": 200, "heads": 200}
    files = {**survey, "survey.json": json.dumps(card).encode(), "tables/distance.parquet": table}
    del files["tables/distance_by_layer.parquet"]
    answer = send(client, files)
    assert is_refused(answer)
    assert "this server keeps 50 MB" in answer.json()["error"]


@pytest.mark.parametrize(
    "tensors",
    [
        {"weights": {"dtype": "F32", "shape": [0, 1, 10**12, 1], "data_offsets": [0, 0]}},
        {"weight_codes": {"dtype": "U8", "shape": [1, 1, 4000, 4000], "data_offsets": [0, 16_000_000]}},
    ],
    ids=["no layers but a trillion tokens", "bytes that become floats"],
)
def test_a_record_that_unpacks_beyond_the_memory_is_refused(client, tensors):
    metadata = {"format": "attnscope.AttentionRecord", "version": "1", "record": '{"query_tokens": []}'}
    answer = client.post("/api/files", content=safetensors_of({"__metadata__": metadata, **tensors}))
    assert is_refused(answer)
    assert "this server keeps 50 MB" in answer.json()["error"]


def test_a_trust_table_of_more_cells_than_there_is_room_for_is_refused(client, trust):
    wide = b",".join([b"method"] * 2_000) + b"\n" + b"x\n" * 2_000
    answer = send(client, {**trust, "trust.csv": wide})
    assert "this server keeps 50 MB" in answer.json()["error"]


def test_a_folder_of_millions_of_nothings_is_refused_before_python_makes_them(client):
    body = b'{"files": [' + b"[]," * 300_000 + b"[]]}"
    tracemalloc.start()
    answer = client.post("/api/folders", content=body, headers={"content-type": "application/json"})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert is_refused(answer)
    assert peak < 10 * len(body)


# ---- deep JSON

DEEP = [b"[" * depth + b"]" * depth for depth in (40, 400, 100_000)]


@pytest.mark.parametrize("deep", DEEP, ids=["40 levels", "400 levels", "100,000 levels"])
def test_deep_json_is_refused_wherever_it_comes(client, survey, trust, deep):
    card = json.loads(survey["survey.json"])
    answers = [
        send(client, {**survey, "survey.json": json.dumps(card)[:-1].encode() + b', "more": ' + deep + b"}"}),
        send(client, {**trust, "trust.json": b'{"model": ' + deep + b"}"}),
        send(client, {**trust, "trust.json": deep}),
        client.post("/api/files", content=safetensors_of(b'{"__metadata__": ' + deep + b"}")),
        client.post("/api/files", content=safetensors_of({"__metadata__": {"record": deep.decode()}})),
        client.post("/api/texts", content=deep, headers={"content-type": "application/json"}),
        client.post("/api/views/x/code", content=b'{"state": {"layer": ' + deep + b"}}"),
    ]
    assert [is_refused(answer) for answer in answers] == [True] * 7, [answer.text for answer in answers]


# ---- damaged files


@pytest.mark.parametrize(
    "damage",
    [
        {"model": None}, {"model": "x"}, {"model": {}}, {"corpus": None}, {"layers": None}, {"layers": "x"},
        {"heads": []}, {"sentences": None}, {"tokens": "x"}, {"skipped": None}, {"skipped": []},
        {"skipped": {"x": "y"}}, {"warnings": 5},
        {"warnings": [1]}, {"left_out": []}, {"left_out": 3}, {"null": {}}, {"statistics": {}},
        {"statistics": [1]}, {"statistics": [["distance"]]}, {"statistics": None}, {"layers": float("nan")},
        {"layers": 10**4000}, {"statistics": []},
    ],
    ids=lambda damage: str(damage)[:40],
)  # fmt: skip
def test_a_damaged_survey_card_is_opened_or_refused_in_a_sentence(client, survey, damage):
    card = {**json.loads(survey["survey.json"]), **damage}
    assert answers(send(client, {**survey, "survey.json": json.dumps(card).encode()}))


def test_a_survey_card_that_lacks_any_of_its_entries_is_opened_or_refused(client, survey):
    card = json.loads(survey["survey.json"])
    for name in card:
        left = {other: entry for other, entry in card.items() if other != name}
        assert answers(send(client, {**survey, "survey.json": json.dumps(left).encode()})), name


def header_of(record):
    length = struct.unpack("<Q", record[:8])[0]
    return json.loads(record[8 : 8 + length]), record[8 + length :]


WRONG = [None, True, -1, 10**30, 0.5, float("nan"), "", "\ud800", [], [[]], {}, {"a": None}, ["x"] * 3, [None] * 4]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_a_crafted_record_header_is_opened_or_refused_in_a_sentence(client, record, wrong):
    header, tensors = header_of(record)
    told = json.loads(header["__metadata__"]["record"])
    for name in (*told, "target", "unknown"):
        text = json.dumps({**told, name: wrong})
        metadata = {**header["__metadata__"], "record": text}
        assert answers(client.post("/api/files", content=safetensors_of({**header, "__metadata__": metadata}, tensors)))


@settings(FUZZED, max_examples=30)
@given(data=st.data())
def test_mutated_cards_never_make_the_server_fail(client, survey, trust, data):
    folder, name = data.draw(st.sampled_from([(survey, "survey.json"), (trust, "trust.json")]))
    card = json.loads(folder[name])
    changed = data.draw(st.dictionaries(st.sampled_from(sorted(card)), st.sampled_from(WRONG), min_size=1, max_size=3))
    assert answers(send(client, {**folder, name: json.dumps({**card, **changed}).encode()}))


def mutated(data, content):
    """The content with some bytes replaced, taken away or put in."""
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, max(len(changed) - 1, 0)))
        taken = data.draw(st.integers(0, 8))
        changed[place : place + taken] = data.draw(st.binary(max_size=8))
    return bytes(changed)


@FUZZED
@given(data=st.data())
def test_mutated_records_never_make_the_server_fail(client, record, data):
    answer = client.post("/api/files", content=mutated(data, record))
    assert answers(answer)
    if answer.status_code == 200:
        asked = {"text": answer.json()["id"], "view": "head"}
        assert client.post("/api/views", json=asked).status_code == 200


@FUZZED
@given(data=st.data())
def test_mutated_folders_never_make_the_server_fail(client, survey, trust, data):
    folder = data.draw(st.sampled_from([survey, trust]))
    name = data.draw(st.sampled_from(sorted(folder)))
    assert answers(send(client, {**folder, name: mutated(data, folder[name])}))


def test_a_foot_that_would_end_the_process_is_refused(client, survey):
    name = "tables/exemplars.parquet"
    damaged = survey[name].replace(b"%\x02\x18\x05query", b'%"\x18\x05query')  # neither optional nor required
    assert damaged != survey[name]
    assert is_refused(send(client, {**survey, name: damaged}))


# ---- what is kept


def test_surveys_and_trust_tables_are_counted_and_the_oldest_makes_room(demo, survey, trust):
    desk = Desk({"demo": demo}, budget=ROOM)
    with TestClient(Guard(build(desk, 8_000_000)), base_url="http://127.0.0.1") as client:
        assert send(client, trust).json()["kind"] == "trust"
        trusted = desk.shelf.size
        assert trusted > len(trust["trust.csv"])
        opened = send(client, survey).json()
        assert desk.shelf.size - trusted > sum(len(content) for content in survey.values())
        desk.shelf.budget = desk.shelf.size
        card = {**json.loads(survey["survey.json"]), "corpus": "another"}
        assert send(client, {**survey, "survey.json": json.dumps(card).encode()}).status_code == 200
        assert desk.shelf.size <= desk.shelf.budget
        assert desk.trust_in("demo") is None
        assert client.post("/api/views", json={"text": opened["id"], "view": "survey"}).status_code == 200
    desk.close()


def test_a_view_that_was_made_is_counted(desk, client):
    answer = client.post("/api/texts", json={"model": "demo", "text": "the key"}).json()
    entry = desk.entry(answer["id"])
    before = entry.size
    client.post("/api/views", json={"text": answer["id"], "view": "head"})
    assert entry.size - before > entry.record.weights.nbytes
