"""The price told beforehand: wrong questions, what does not fit into memory, and real peaks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import attnscope
from attnscope.bench import memory

PEAK = """
import json, sys, attnscope
def held(name):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(name))
model = attnscope.load(sys.argv[1])
text = model.tokenizer.decode(model.tokenizer("The" + " the" * 2000)["input_ids"][: int(sys.argv[2])])
model.record("the")  # what is loaded at the first use of a process is no part of a recording
open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew
before = held("VmRSS")
model.record(text, verify="always")
# what an allocator holds on to depends on its mood: tensors are mapped one by one here, as in `attnscope bench memory`
print(json.dumps([held("VmHWM") - before, model.estimate(text).peak_bytes]))
"""


@pytest.mark.parametrize(
    ("asked", "options", "sentence"),
    [
        (-5, {}, "at least 1, not -5"),
        (0, {}, "at least 1, not 0"),
        (2.5, {}, "not float"),
        ([4, 2.5], {}, "whole number, not 2.5"),
        (None, {}, "not NoneType"),
        ([], {}, "nothing to estimate"),
        (5, {"heads": "most"}, "heads is"),
        (5, {"colour": 1}, "estimate takes no colour="),
        (5, {"batch_size": 0}, "batch_size must be at least 1"),
    ],
)
def test_wrong_questions_get_one_sentence(tiny, asked, options, sentence):
    with pytest.raises(attnscope.BadInput, match=sentence):
        tiny.load("bert").estimate(asked, **options)


def test_what_a_record_holds_besides_raises_the_peak(tiny):
    model = tiny.load("llama")
    plain = model.estimate(30).peak_bytes
    for option in ("gradients", "queries_and_keys", "values"):
        more = model.estimate(30, **{option: True})
        assert more.peak_bytes > plain
        assert more.record_bytes == model.estimate(30).record_bytes
    assert model.estimate(30, heads="mean").peak_bytes < plain
    assert model.estimate([30, 30]).peak_bytes > plain


def test_what_does_not_fit_into_memory_is_refused_before_running(tiny, monkeypatch):
    model = tiny.load("gpt2")
    passes = []
    model.model.register_forward_hook(lambda *_: passes.append(1))
    needed = model.estimate("the dogs see").peak_bytes
    monkeypatch.setattr("attnscope.capture.request.available_bytes", lambda: needed - 1)
    for ask in (model.record, lambda text: list(model.records([text]))):
        with pytest.raises(attnscope.BadInput, match=r'Recording 3 tokens takes about .*heads="mean".*window='):
            ask("the dogs see")
    assert passes == []
    monkeypatch.setattr("attnscope.capture.request.available_bytes", lambda: needed)
    assert model.record("the dogs see").tokens == ("the", "dogs", "see")
    monkeypatch.setattr("attnscope.capture.request.available_bytes", lambda: None)
    assert model.record("the dogs see").tokens == ("the", "dogs", "see")


def test_methods_that_run_the_model_again_are_estimated(tiny):
    model = tiny.load("gpt2")
    plain = model.estimate(30, 8, method="blank_out")
    assert "over the loaded model" in str(plain)
    assert plain.forward_passes == 31
    assert not plain.is_bound
    assert model.estimate(30, 16, method="blank_out").peak_bytes > plain.peak_bytes
    steps = model.estimate(30, 8, method="integrated_gradients")
    assert steps.peak_bytes > plain.peak_bytes
    assert "at most" in str(steps)
    with pytest.raises(attnscope.BadInput, match="not of 'rollout'"):
        model.estimate(30, method="rollout")


def test_peaks_of_six_families_are_within_a_quarter_of_what_was_said():
    """Every kind of record, blank-out and integrated gradients, measured in a process of its own."""
    if not memory.CLEAR_PEAK.exists():
        pytest.skip("The peak of a process can be read and begun anew on Linux only.")
    kinds = [*memory.RECORDS, *memory.METHODS]
    found = memory.peaks_of(list(memory.FAMILIES), kinds, tokens=192, layers=2)
    assert len(found) == len(memory.FAMILIES) * len(kinds) == 42
    noise = 2e6  # of what is no tensor
    wrong = [case for case in found if abs(case[2] - case[1]) > memory.NEAR * case[1] + noise]
    assert not wrong
    assert min(measured for _, measured, _ in found) > noise  # each case has more to tell than that


def test_the_peak_of_a_real_model_is_near_the_estimate(real_model):
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("The peak of a process can be read and begun anew on Linux only.")
    command = [sys.executable, "-c", PEAK, str(real_model("minilm")), "500"]
    steady = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(memory.MAPPED_ALONE)}
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=steady)
    seen, said = json.loads(run.stdout)
    assert 0.75 < said / seen < 1.25
