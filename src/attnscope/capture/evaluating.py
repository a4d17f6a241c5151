"""A module in evaluation mode for a while, and afterwards as it was."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

import torch
from torch import nn


class _Locks:
    """One lock for each module, made when it is first needed."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: in a forked child, a lock that another thread held would never be released."""
        self._guard = threading.Lock()
        self._of_module: WeakKeyDictionary[nn.Module, threading.RLock] = WeakKeyDictionary()

    def of(self, owner: nn.Module) -> threading.RLock:
        with self._guard:
            return self._of_module.setdefault(owner, threading.RLock())


_locks = _Locks()
if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_locks.forget)


@contextmanager
def evaluated(module: nn.Module, owner: nn.Module) -> Iterator[None]:
    """Evaluation mode for a while; modes and random state are as before afterwards, come what may.

    One at a time for each `owner`: what two threads switched at once could not be put back.
    """
    with _locks.of(owner):
        modes = [(part, part.training) for part in module.modules()]
        devices = {parameter.device for parameter in module.parameters() if parameter.device.type == "cuda"}
        with torch.random.fork_rng(devices=sorted(devices, key=str)):
            try:
                module.eval()
                yield
            finally:
                for part, mode in modes:
                    part.training = mode
