"""Files from a stranger: mutations of real records, surveys, trust tables and claims, each read and used.

`python tests/fuzz/files.py COUNT [START]` tries the mutations START to START + COUNT - 1: each number gives the same
mutation again. What is read must be as it should, or refused in one sentence; anything else is shown, and fails.
"""

import dataclasses
import json
import math
import random
import shutil
import struct
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import attnscope
from attnscope import AttentionRecord, BadInput, Survey, Trust
from attnscope.attribution import METHODS
from attnscope.attribution.choosing import score_what_can_be
from attnscope.record import Segments, Target, TokenSegments, VectorRecord
from attnscope.record.vectors import LayerVectors, normalizers_of
from attnscope.reproduce import Claim, read_claims
from attnscope.reproduce.claims import claims_json, count

DEEP = "@deep@"
NASTY: list[Any] = [
    None, True, False, -1, 0, 1, 7, 0.5, -1.5, 1e308, math.nan, math.inf, 2**31, 2**63, 2**64, 10**400, "", "x", "0",
    "\ud800", "\u0000", "../../x", "[CLS]", [], [[]], [None], [0, 0], [1, "a"], ["a", "b"], [0.5], {}, {"a": 1},
    {"": {}}, [[["a", 1]]], ["a"] * 40, DEEP, "ä" * 2000,
]  # fmt: skip
KINDS = (*["record"] * 16, "claims", "claims", "trust", "survey")
"""How often each kind of file is tried: what is quick to read, more often."""
DTYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "U8", "BOOL", "F8_E4M3", "C64", "U16", "X", 3, None)


# ---- real files


def made(folder: Path) -> dict[str, Path]:
    """Small real files of every kind, by name."""
    torch.manual_seed(0)
    even = torch.rand(2, 2, 3, 3).softmax(-1)
    whole = AttentionRecord(
        weights=even,
        query_tokens=("[CLS]", "so", "##long"),
        key_tokens=("[CLS]", "so", "##long"),
        stack="encoder",
        causal=False,
        readout=torch.tensor([1.0, 0.0, 0.0]),
        prediction=(("good", 0.75), ("bad", 0.25)),
        query_word_ids=(None, 0, 0),
        key_word_ids=(None, 0, 0),
        query_special=(True, False, False),
        key_special=(True, False, False),
        layers=(1, 4),
        heads=(0, 3),
        queries=torch.rand(2, 2, 3, 2),
        keys=torch.rand(2, 2, 3, 2),
        scaling=(0.5, 0.5),
        softcap=2.0,
        score_bias=torch.tensor([0.0, 0.0, -torch.inf]).expand(2, 1, 3, 3),
        values=torch.rand(2, 2, 3, 2),
        embeddings=torch.rand(3, 2),
        embedding_gradients=torch.rand(3, 2),
        attention_gradients=torch.rand(2, 2, 3, 3),
        target=Target("good", 1, "difference"),
        text=("first", "second"),
        segments=TokenSegments(Segments.by_separator("so. long", ".").sentences(), ((0, 0), (0, 2), (3, 8))),
        inputs={"input_ids": torch.tensor([2, 7, 9])},
        card={"model": "mine", "versions": {"torch": "2"}, "window": {"tokens": [0, 3]}},
    )
    cross = AttentionRecord.from_weights(torch.full((1, 2, 2, 3), 1 / 3), ["x", "y"], key_tokens=["a", "b", "c"])
    files = {
        f"record {kind}": whole.save(folder / f"{kind}.safetensors", kind) for kind in ("float32", "float16", "uint8")
    }
    files["record vectors"] = _vectors().save(folder / "vectors.safetensors")
    files["record cross"] = cross.save(folder / "cross.safetensors")
    stacks = dataclasses.replace(
        cross, encoder_weights=torch.full((2, 1, 3, 3), 1 / 3), decoder_weights=torch.full((1, 2, 2, 2), 0.5)
    )
    files["record stacks"] = stacks.save(folder / "stacks.safetensors")
    files["record plain"] = AttentionRecord.from_weights(torch.eye(3), list("abc")).save(folder / "plain.safetensors")
    claims = [Claim("a", "It holds.", "1", "2", holds, "") for holds in (True, False, None)]
    (folder / "claims.json").write_text(claims_json(claims), encoding="utf-8")
    files["claims"] = folder / "claims.json"
    files["trust"] = Trust(_trust_table(), {"model": "tiny", "texts": 3, "left_out": {"flow": "no."}}).save(
        folder / "t"
    )
    files["survey"] = Survey(*_survey_tables(), _survey_card()).save(folder / "s")
    return files


def _vectors() -> VectorRecord:
    """A causal record of vectors of two layers, one of them with a window, whose heads share keys."""
    tokens = ("a", "b", "c")
    queries, keys = torch.rand(2, 2, 3, 2), torch.rand(2, 1, 3, 2)
    layers = [
        LayerVectors(queries[place], keys[place], torch.zeros(2, 3), 0.5, softcap=2.0, back=back, ahead=0)
        for place, back in enumerate((None, 1))
    ]
    return VectorRecord(
        query_tokens=tokens,
        key_tokens=tokens,
        stack="decoder",
        causal=True,
        readout=torch.tensor([0.0, 0.0, 1.0]),
        queries=queries,
        group_keys=keys,
        normalizers=torch.stack([normalizers_of(layer) for layer in layers]),
        scaling=(0.5, 0.5),
        softcap=2.0,
        back=(None, 1),
        ahead=(0, 0),
        group_values=torch.rand(2, 1, 3, 2),
        value_products=torch.rand(2, 2, 2, 2),
        output_gradients=torch.rand(2, 2, 3, 2),
    )


def _trust_table() -> pd.DataFrame:
    rows = [
        (method, layer, against, measure, "without", "all", 0.5, 0.25, 0.75, 3, "random", 0.1, 0.05, 0.2)
        for method in ("raw", "rollout", "random", "position", "frequency")
        for layer in (None, 0)
        for against, measure in (("blank_out", "spearman"), ("gradient", "spearman"), ("erasure", "comprehensiveness"))
    ]
    names = "method layer against measure special bucket value low high texts baseline above above_low above_high"
    return pd.DataFrame(rows, columns=names.split()).astype({"layer": "Int64"})


def _survey_tables() -> tuple[dict[str, pd.DataFrame], dict[str, pd.DataFrame]]:
    heads = [(layer, head) for layer in range(2) for head in range(2)]
    distance = pd.DataFrame([(*head, 1.5, 0.1) for head in heads], columns=["layer", "head", "value", "error"])
    tags = pd.DataFrame(
        [(*head, "to", tag, 0.5, 0.1, 0.2) for head in heads for tag in ("NOUN", "VERB")],
        columns=["layer", "head", "direction", "tag", "value", "error", "chance"],
    )
    exemplars = pd.DataFrame(
        [(*head, 0, 0.5, 0, 1, ["a", "b"], "a b") for head in heads],
        columns=["layer", "head", "rank", "value", "query", "key", "tokens", "text"],
    )
    roles = pd.DataFrame([(*head, "broad", 0.5, 0.1, "…", None) for head in heads])
    roles.columns = pd.Index(["layer", "head", "role", "value", "error", "evidence", "also"])
    curve = pd.DataFrame({"distance": [1, 2], "value": [0.5, 0.25]})
    by_layer = tags.drop(columns="head").groupby(["layer", "direction", "tag"], as_index=False).mean()
    tables = {"distance": distance, "part_of_speech": tags, "exemplars": exemplars, "roles": roles}
    return {**tables, "dependency_by_distance": curve}, {"part_of_speech": by_layer}


def _survey_card() -> dict[str, Any]:
    numbers = {"layers": 2, "heads": 2, "sentences": 9, "tokens": 90}
    names = ["distance", "part_of_speech", "exemplars", "roles", "dependency_by_distance"]
    card = {"model": {"name": "tiny", "fingerprint": "00"}, "corpus": "demo", "statistics": names, "null": "first"}
    return {**card, **numbers, "skipped": {"too long": 1}, "warnings": ["Few."], "left_out": {"x": "a parse"}}


# ---- mutations


def mutated(content: bytes, name: str, dice: random.Random) -> bytes:
    """The content of a file, changed in one to three places, by byte or by what it means."""
    ways: list[Callable[[bytes, random.Random], bytes]] = [_bytes_changed]
    if name.endswith(".safetensors"):
        ways += [_header_changed, _inner_header_changed, _inner_header_changed, _inner_header_changed]
    elif name.endswith(".json"):
        ways += [_json_changed, _json_changed, _json_changed]
    elif name.endswith(".csv"):
        ways += [_cells_changed, _cells_changed]
    for _ in range(dice.choice((1, 1, 2, 3))):
        content = dice.choice(ways)(content, dice)
    return content


def _bytes_changed(content: bytes, dice: random.Random) -> bytes:
    changed = bytearray(content)
    place = dice.randrange(len(changed) + 1)
    match dice.randrange(5):
        case 0:
            for _ in range(dice.randrange(1, 9)):
                if changed:
                    changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
        case 1:
            del changed[place:]
        case 2:
            changed[place:place] = dice.randbytes(dice.randrange(1, 9))
        case 3:
            changed[place : place + dice.randrange(64)] = b""
        case 4:
            changed[place : place + 8] = struct.pack("<Q", dice.choice((0, 1, 2**31, 2**40, 2**63, 2**64 - 1)))
    return bytes(changed)


def _json_changed(content: bytes, dice: random.Random) -> bytes:
    try:
        return _written(_edited(json.loads(content), dice), dice)
    except (ValueError, RecursionError):
        return _bytes_changed(content, dice)


def _written(value: Any, dice: random.Random) -> bytes:
    deep = dice.choice((20, 150, 3000, 100_000))
    text = json.dumps(value).replace(f'"{DEEP}"', "[" * deep + "]" * deep)
    if dice.random() < 0.05:
        text = text.replace("{", '{"model": 1, "causal": "twice", ', 1)  # a name that stands there twice
    return text.encode()


def _edited(value: Any, dice: random.Random) -> Any:
    """The value with one entry somewhere in it replaced, removed, renamed, doubled or added."""
    if not isinstance(value, (dict, list)) or not value or dice.random() < 0.08:
        return dice.choice(NASTY)
    if isinstance(value, list):
        place = dice.randrange(len(value))
        changed = dice.choice(([], [value[place]] * 2, *[[_edited(value[place], dice)]] * 4))
        return [*value[:place], *changed, *value[place + 1 :]]
    key = dice.choice(list(value))
    match dice.randrange(8):
        case 0:
            changed = {}
        case 1:
            changed = {f"{key}x": value[key]}
        case 2:
            changed = {key: value[key], dice.choice(("inputs", "weights", "new", "scaling")): dice.choice(NASTY)}
        case 3:
            changed = {key: value[dice.choice(list(value))]}
        case _:
            changed = {key: _edited(value[key], dice)}
    return {name: entry for name, entry in value.items() if name != key} | changed


def _header(content: bytes) -> tuple[dict[str, Any], bytes]:
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def _with_header(header: bytes, rest: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header + rest


def _header_changed(content: bytes, dice: random.Random) -> bytes:
    """Names, kinds, shapes and places of tensors."""
    try:
        header, rest = _header(content)
        name = dice.choice(list(header))
        if name == "__metadata__" or dice.random() < 0.3:
            return _with_header(_written(_edited(header, dice), dice), rest)
        match dice.randrange(4):
            case 0:
                header[name]["dtype"] = dice.choice(DTYPES)
            case 1:
                dice.shuffle(header[name]["shape"])
            case 2:  # another shape of as many numbers
                header[name]["shape"] = [math.prod(header[name]["shape"]), *[1] * dice.randrange(4)]
            case 3:
                header[dice.choice(("inputs.x", "keys", "unknown", "row_largest", "inputs." + "y" * 200))] = header.pop(
                    name
                )
        return _with_header(_written(header, dice), rest)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return _bytes_changed(content, dice)


def _inner_header_changed(content: bytes, dice: random.Random) -> bytes:
    """The fields of the record."""
    try:
        header, rest = _header(content)
        inner = json.loads(header["__metadata__"]["record"])
        header["__metadata__"]["record"] = _written(_edited(inner, dice), dice).decode()
        return _with_header(json.dumps(header).encode(), rest)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return _bytes_changed(content, dice)


def _cells_changed(content: bytes, dice: random.Random) -> bytes:
    lines = content.decode("utf-8", "replace").split("\n")
    place = dice.randrange(len(lines))
    cells = lines[place].split(",")
    match dice.randrange(4):
        case 0:
            cells[dice.randrange(len(cells))] = str(dice.choice(NASTY)).replace("\ud800", "")
        case 1:
            cells.pop()
        case 2:
            lines.insert(place, lines[dice.randrange(len(lines))])
        case 3:
            lines.pop(place)
    lines[place : place + 1] = [",".join(cells)]
    return "\n".join(lines).encode()


def table_changed(path: Path, dice: random.Random) -> None:
    """A Parquet table with other values, types or columns, or with other bytes."""
    if dice.random() < 0.3:
        path.write_bytes(_bytes_changed(path.read_bytes(), dice))
        return
    table = pd.read_parquet(path)
    column = dice.choice(list(table))
    match dice.randrange(6):
        case 0:
            table = table.drop(columns=column)
        case 1:
            table = table.rename(columns={column: dice.choice(("layer", "head", "value", "tokens", "x", "tag"))})
            table = table.loc[:, ~table.columns.duplicated()]
        case 2:
            table[column] = dice.choice(
                (0, -1, 10**9, 0.5, math.nan, math.inf, "x", None, True, np.datetime64("2020"), b"x")
            )
        case 3:
            table = table.iloc[: dice.randrange(len(table) + 1)]
        case 4:
            table = pd.concat([table, table])
        case 5:
            table[column] = [[dice.choice(("a", "b"))] * dice.randrange(3) for _ in range(len(table))]
    table.to_parquet(path, index=False)


# ---- what is read is used


def use_record(path: Path) -> None:
    record = AttentionRecord.load(path)
    full = record.full() if isinstance(record, VectorRecord) else record
    assert full.weights.dtype == torch.float32
    assert bool(full.weights.isfinite().all())
    for name in ("query_tokens", "key_tokens"):
        assert all(type(token) is str for token in getattr(record, name))
    for name in ("query_special", "key_special", "masked_queries"):
        assert all(type(flag) is bool for flag in getattr(record, name))
    for name in ("query_word_ids", "key_word_ids"):
        assert all(word is None or (type(word) is int and word >= 0) for word in getattr(record, name))
    for name in ("layers", "heads", "grid"):
        assert all(type(number) is int for number in getattr(record, name) or ())
    assert all(type(label) is str and math.isfinite(share) for label, share in record.prediction)
    assert record.target is None or (type(record.target.outcome) is str and str(record.target))
    for field in dataclasses.fields(record):
        assert isinstance(
            getattr(record, field.name),
            (type(None), torch.Tensor, tuple, dict, str, bool, int, float, Target, TokenSegments),
        )
    json.dumps(record.card, allow_nan=False)
    repr(record)
    record._repr_html_()
    if isinstance(record, VectorRecord):
        record.select(0)
        for method in ("rollout", "layerwise_tracing", "value_weighted", "effective", "gradient_rollout"):
            score_what_can_be(record, {method: METHODS[method]}, None)
    else:
        record.words()
        record.select(0, 0)
    attnscope.raw(record).to_frame()
    for level in ("sentence", *(record.segments.levels if record.segments else ())):
        assert abs(attnscope.raw(record).by(level)["score"].sum() - attnscope.raw(record).scores.sum()) < 1e-3
    record.save(path)
    path.read_bytes()[8:].split(b"}}")[0].decode("utf-8", "strict")


def use_survey(folder: Path) -> None:
    survey = Survey.load(folder)
    survey.summary()
    survey._repr_html_()
    if survey.has_map:
        json.dumps(survey.view().payload, default=str)


def use_trust(folder: Path) -> None:
    trust = Trust.load(folder)
    repr(trust)
    scores = attnscope.raw(AttentionRecord.from_weights(torch.eye(2), "ab"))
    attnscope.views.scores(scores, trust=trust)


def use_claims(path: Path) -> None:
    claims = read_claims(path)
    count(claims)
    assert all(type(claim.id) is str and claim.verdict for claim in claims)


USES = {"record": use_record, "survey": use_survey, "trust": use_trust, "claims": use_claims}


def tried(number: int, files: dict[str, Path], folder: Path) -> str:
    """What came of one mutation: "read", "refused", or the traceback of what must not be."""
    dice = random.Random(number)
    kind = dice.choice(KINDS)
    name = dice.choice([name for name in files if name.split()[0] == kind])
    source = files[name]
    if source.is_dir():
        target = folder / "mutation"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.html"))
        chosen = dice.choice(sorted(path for path in target.rglob("*") if path.suffix in (".json", ".csv", ".parquet")))
        if (kind == "survey" and chosen.suffix == ".csv") or dice.random() < 0.5:
            chosen = next(path for path in target.rglob("*.json"))
        if chosen.suffix == ".parquet":
            table_changed(chosen, dice)
        else:
            chosen.write_bytes(mutated(chosen.read_bytes(), chosen.name, dice))
    else:
        target = folder / f"mutation{source.suffix}"
        target.write_bytes(mutated(source.read_bytes(), source.name, dice))
    try:
        USES[kind](target)
    except BadInput as error:
        return "refused" if "\n" not in str(error) and len(str(error)) < 1000 else f"{number} {name}: {error}"
    except Exception:  # noqa: BLE001 - whatever else is raised is what is looked for
        return f"{number} {name}:\n{traceback.format_exc()}"
    return "read"


def main(amount: int, start: int = 0) -> int:
    """Try so many mutations; the number of those that were neither read nor refused."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as made_in:
        folder = Path(made_in)
        files = made(folder)
        for number in range(start, start + amount):
            outcome = tried(number, files, folder)
            outcomes[outcome if outcome in ("read", "refused") else "wrong"] += 1
            if outcome not in ("read", "refused"):
                sys.stdout.write(f"{outcome}\n")
            if (number - start) % 5000 == 4999:
                sys.stdout.write(f"{number + 1}: {dict(outcomes)}\n")
                sys.stdout.flush()
    sys.stdout.write(json.dumps(outcomes) + "\n")
    return outcomes["wrong"]


if __name__ == "__main__":
    sys.exit(min(main(*map(int, sys.argv[1:])), 1))
