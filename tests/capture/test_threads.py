"""Recording is isolated: other threads may call the same model meanwhile, and a fork does not hang."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch

import attnscope

RECORDS = 200
OFTEN = 1e-5
"""Seconds until another thread has its turn: five hundred times as often as by default, so that turns end anywhere."""


@pytest.fixture
def turns_end_often() -> Iterator[None]:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(OFTEN)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("turns_end_often")
def test_records_are_right_while_two_threads_call_the_model(tiny: SimpleNamespace) -> None:
    inner = tiny.build("bert")
    model = attnscope.load(inner, tokenizer=tiny.tokenizer("pair"))
    expected = {text: model.record(text).weights for text in tiny.texts}
    batches = [torch.tensor([[2, 7, 8, 9, 3]]), torch.randint(6, 20, (3, 12))]
    with torch.no_grad():
        answers = [inner(batch).logits for batch in batches]
    wrong: list[float] = []
    calls = 0
    done = threading.Event()

    def call(batch: torch.Tensor, answer: torch.Tensor) -> None:
        nonlocal calls
        with torch.no_grad():
            while not done.wait(0.001):
                difference = float((inner(batch).logits - answer).abs().max())
                wrong.extend([difference] if difference > 1e-5 else [])
                calls += 1

    threads = [threading.Thread(target=call, args=pair) for pair in zip(batches, answers, strict=True)]
    for thread in threads:
        thread.start()
    try:
        for number in range(RECORDS):
            text = tiny.texts[number % len(tiny.texts)]
            weights = model.record(text, gradients=number % 50 == 0).weights
            assert torch.allclose(weights, expected[text], atol=1e-6), number
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert calls > 10
    assert wrong == []


def test_embeddings_given_in_one_thread_do_not_reach_another(tiny: SimpleNamespace) -> None:
    model = tiny.load("bert")
    record = model.record(tiny.texts[0])
    other = torch.tensor([[2, 7, 8, 3]])
    with torch.no_grad():
        expected = model.model(other).logits
    found = []

    def meanwhile(*_: object) -> None:
        if not found:
            found.append(None)
            thread = threading.Thread(target=lambda: found.append(model.model(other).logits.detach()))
            thread.start()
            thread.join()

    hook = model.model.bert.embeddings.register_forward_pre_hook(meanwhile)
    attnscope.blank_out(record, model)
    hook.remove()
    torch.testing.assert_close(found[1], expected, atol=1e-6, rtol=0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_fork_while_a_thread_records_does_not_hang(tiny: SimpleNamespace) -> None:
    """The child finds the lock free that another thread of its parent held."""
    from attnscope.capture.watching import in_evaluation

    module = torch.nn.Linear(2, 2)
    held, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with in_evaluation(module, module):
            held.set()
            leave.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    child = os.fork()
    if child == 0:
        with in_evaluation(module, module):
            os._exit(7)
    deadline = time.monotonic() + 60
    status = 0
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        time.sleep(0.02)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
    leave.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 7
