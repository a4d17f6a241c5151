"""Whether a change of the house left its results alone: every output that counts, byte for byte.

    python .ci/same_bytes.py run OUT               all five papers, a survey, a trust table, a lexicon study, records
    python .ci/same_bytes.py compare BEFORE AFTER  names every file that differs, is missing or is new

Run it with the package of each commit (`PYTHONPATH=src`), then compare. Pages, reports and figures may be worded and
drawn better, so they are left out; so are the working files of unfinished work.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

PAPERS = ("vig2019", "abnar2020", "wu2020", "sun2020", "snell2021")
COUNTED = ("*.parquet", "*.safetensors", "*.json", "*.csv")
ELSEWHERE = re.compile(rb'\\?"date\\?": ?\\?"[^"]*"|"[^"]*/attnscope/shipped/demo"')
"""When and where something was made is not the same in two runs."""
WORDS = "dog 2.5\ncat -2.5\nkey 0.7\nboy -2.1\ngirl 2.4\ndogs -1.3\nsees 1.1\nsee 0.2\nthe 0.1\na -0.4\n"
RECORD = """
import attnscope, json, sys
model = attnscope.load("demo")
for number, text in enumerate(["the dogs near the house see the cat", "a clever child sleeps"]):
    record = model.record(text, gradients=True, values=True)
    record.save(f"{sys.argv[1]}/{number}.safetensors")
    for method in ("rollout", "flow", "blank_out", "integrated_gradients"):
        scores = attnscope.attribute(record, method, model=model).scores.tolist()
        open(f"{sys.argv[1]}/{number}-{method}.json", "w").write(json.dumps(scores))
"""


def run(out: Path) -> None:
    """Run everything, one after the other, on one thread: the same number gives the same bits."""
    out.mkdir(parents=True)
    lexicon = out / "words.tsv"
    lexicon.write_text("word\tvalue\n" + WORDS.replace(" ", "\t"), encoding="utf-8")
    commands = {paper: ["reproduce", paper, "--scale", "smoke", "--out", str(out / paper)] for paper in PAPERS}
    commands["survey"] = ["survey", "demo", "demo", "--limit", "120", "--out", str(out / "survey")]
    commands["trust"] = ["trust", "demo", "demo", "--limit", "40", "--out", str(out / "trust")]
    study = ["--lexicon", str(lexicon), "--limit", "60", "--out", str(out / "lexicon")]
    commands["lexicon"] = ["lexicon", "demo", "demo", *study]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("ATTNSCOPE_DATA", None)
    for name, command in commands.items():
        begun = time.monotonic()
        code = "from attnscope.cli import main; main()"
        asked = [sys.executable, "-c", code, *command]
        done = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
        print(f"{name}: exit {done.returncode}, {time.monotonic() - begun:.0f} s", flush=True)
        if done.returncode:
            print(done.stderr[-2000:], flush=True)
    (out / "record").mkdir()
    subprocess.run([sys.executable, "-c", RECORD, str(out / "record")], env=environment, check=True)


def digests(out: Path) -> dict[str, str]:
    """The files that count, by their path and their SHA-256."""
    found = {}
    for pattern in COUNTED:
        for path in sorted(out.rglob(pattern)):
            place = path.relative_to(out).as_posix()
            # below a reproduction only what it is judged by: all else are working files
            if place.split("/")[0] in PAPERS and not place.endswith("claims.json") and "/tables/" not in place:
                continue
            found[place] = hashlib.sha256(ELSEWHERE.sub(b"", content_of(path))).hexdigest()
    return found


def content_of(path: Path) -> bytes:
    """The bytes of a file; safetensors writes the entries of a header in any order, so they are put into one."""
    content = path.read_bytes()
    if path.suffix != ".safetensors":
        return content
    end = 8 + int.from_bytes(content[:8], "little")
    return json.dumps(json.loads(content[8:end]), sort_keys=True).encode() + content[end:]


def compare(before: Path, after: Path) -> int:
    """Print what differs; how many files do."""
    old, new = digests(before), digests(after)
    different = [place for place in sorted(old.keys() | new.keys()) if old.get(place) != new.get(place)]
    for place in different:
        state = "is gone" if place not in new else "is new" if place not in old else "differs"
        print(f"{place} {state}")
    print(f"{len(old)} files before, {len(new)} after, {len(different)} differ")
    return len(different) + (not old)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["run", out]:
            run(Path(out))
        case ["compare", before, after]:
            sys.exit(bool(compare(Path(before), Path(after))))
        case _:
            sys.exit(__doc__)
