"""A module in evaluation mode for a while, and afterwards as it was."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

import torch
from torch import nn

_locks: WeakKeyDictionary[nn.Module, threading.RLock] = WeakKeyDictionary()
_locks_lock = threading.Lock()


@contextmanager
def evaluated(module: nn.Module, owner: nn.Module) -> Iterator[None]:
    """Evaluation mode for a while; modes and random state are as before afterwards, come what may.

    One at a time for each `owner`: what two threads switched at once could not be put back.
    """
    with _locks_lock:
        lock = _locks.setdefault(owner, threading.RLock())
    with lock:
        modes = [(part, part.training) for part in module.modules()]
        devices = {parameter.device for parameter in module.parameters() if parameter.device.type == "cuda"}
        with torch.random.fork_rng(devices=sorted(devices, key=str)):
            try:
                module.eval()
                yield
            finally:
                for part, mode in modes:
                    part.training = mode
